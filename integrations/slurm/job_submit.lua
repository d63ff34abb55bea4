-- Slurm's JobSubmitPlugins=lua: keeps users out of the QOS of leases, which `jobcast advise` alone gives, and has a line
-- for who submits, where the login nodes cannot ask `jobcast serve` themselves.
--
-- Runs in slurmctld, under its locks: it reads one small file of a local disk, and asks nobody. The file is
-- /run/jobcast/told (or JOBCAST_TOLD_FILE of slurmctld's environment), renamed into place by who writes it:
--   until 1764000000           seconds from the epoch; from then on nothing of it is told
--   vision 8 GPUs: ...         a pool's name, a space, what is told to its users

local FILE = os.getenv("JOBCAST_TOLD_FILE") or "/run/jobcast/told"
local MOST = 65536 -- bytes of the file

local function told(pool)
  local file = io.open(FILE)
  if not file then return nil end
  local text = file:read(MOST) or ""
  file:close()
  local ends = tonumber(text:match("^until (%d+)\n"))
  if not ends or os.time() >= ends then return nil end
  for name, line in text:gmatch("\n(%S+) ([^\n]+)") do
    if name == pool then return (line:gsub("%c", "?"):gsub("\194[\128-\159]", "?")) end
  end
end

local function lent(qos) return (qos or ""):lower():match("^lent_") end

local function refused()
  slurm.log_user("jobcast: a QOS lent_... is not asked for; jobs are put into it when GPUs are lent to them")
  return slurm.ESLURM_ACCESS_DENIED
end

function slurm_job_submit(job_desc, part_list, submit_uid)
  if lent(job_desc.qos) then return refused() end
  local found, line = pcall(told, job_desc.account or job_desc.default_account)
  if found and line then slurm.log_user("jobcast: %s", line) end
  return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  if lent(job_desc.qos) and modify_uid == job_rec.user_id then return refused() end
  return slurm.SUCCESS
end

return slurm.SUCCESS
