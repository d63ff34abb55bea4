-- Slurm's CliFilterPlugins=lua: tells who has just called sbatch when the job is expected to start and to end.
--
-- Runs in sbatch, after the job has its id. It asks `jobcast serve` for at most 0.4 s; a server that is dead, slow or
-- refuses prints nothing, and no submission ever fails by it. Lua 5.1 to 5.4. Settings are lines `name = value` of
-- /etc/jobcast/hook.conf, over them the environment (JOBCAST_URL, JOBCAST_SOCKET, JOBCAST_TOKEN_FILE):
--   url          http://127.0.0.1:8765; empty: nothing is asked
--   socket       file of a unix socket that the server listens on, else by TCP
--   token_file   file that holds a token of the role read and nothing else; who submits must be able to read it
--   pool_by      account (default), qos or partition: the option that names a job's pool

local ASK_S, END_S = 0.4, 0.03
local MOST = 400 -- bytes of an answer
local LONGEST_S = 366 * 86400 -- more is Slurm's way to say that no limit was asked for
local ASKED = { url = "JOBCAST_URL", socket = "JOBCAST_SOCKET", token_file = "JOBCAST_TOKEN_FILE" }
local FORMS = {
  url = "^https?://[%w%.:%[%]%-]+$",
  socket = "^/[%w%._/%-]+$",
  token_file = "^/[%w%._/%-]+$",
  pool_by = "^%l+$",
}
local submitted = {} -- by component of a heterogeneous job

local function settings()
  local found = {}
  local file = io.open(os.getenv("JOBCAST_HOOK_CONF") or "/etc/jobcast/hook.conf")
  if file then
    for line in file:lines() do
      local name, value = line:match("^%s*([%w_]+)%s*=%s*(.-)%s*$")
      if name then found[name] = value end
    end
    file:close()
  end
  for name, variable in pairs(ASKED) do found[name] = os.getenv(variable) or found[name] end
  for name, form in pairs(FORMS) do
    if not (found[name] or ""):match(form) then found[name] = nil end
  end
  return found
end

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

-- GPUs of "4", "a100:4", "gres:gpu:a100:2,gres:shard:1"; nil where none are named.
local function gpus_in(text, of)
  local sum
  for item in (text or ""):gmatch("[^,]+") do
    if not of or (":" .. item .. ":"):find("[:/]" .. of .. "[:=]") then
      sum = (sum or 0) + (tonumber(item:match("(%d+)$")) or 1)
    end
  end
  return sum
end

local function gpus(options)
  local nodes = tonumber((options["nodes"] or ""):match("^(%d+)")) or 1
  local tasks = tonumber(options["ntasks"]) or 1
  local by_node = gpus_in(options["gpus-per-node"]) or gpus_in(options["gres"], "gpu")
  local by_task = gpus_in(options["gpus-per-task"])
  return gpus_in(options["gpus"]) or (by_node and by_node * nodes) or (by_task and by_task * tasks)
end

-- Seconds of Slurm's "D-HH:MM:SS"; nil where no limit was asked for.
local function seconds(text)
  local days, rest = (text or ""):match("^(%d+)%-(.+)$")
  local hours, minutes, secs = (rest or text or ""):match("^(%d+):(%d+):(%d+)$")
  if not hours then return nil end
  local sum = (tonumber(days) or 0) * 86400 + hours * 3600 + minutes * 60 + secs
  return sum > 0 and sum < LONGEST_S and sum or nil
end

-- Whether a job waits for something else than GPUs, which one like it would not.
local function held(options)
  return options["hold"] == "set" or options["dependency"] or (options["begin"] or ""):match("^%d")
end

local function question(options, pool)
  local count, limit_s = gpus(options), seconds(options["time"])
  if held(options) or not count or not (pool or ""):match("^[%w_%.%-]+$") then return nil end
  local limit = limit_s and string.format(',"time_limit_s":%d', limit_s) or ""
  return string.format('{"pool":"%s","gpus":%d%s}', pool, count, limit)
end

-- Asks for the job, and where the server does not know it yet (curl's exit code 22) for one like it.
local function command(set, job_id, body)
  local curl = "curl -q -s -f -g -m " .. ASK_S .. " --noproxy '*'"
  if set.socket then curl = curl .. " --unix-socket " .. quoted(set.socket) end
  -- A token goes by a pipe: command lines are there for everybody to read.
  if set.token_file then
    curl = "{ printf 'Authorization: Bearer '; cat " .. quoted(set.token_file) .. "; } | " .. curl .. " -H @-"
  end
  local ask = "ask() { " .. curl .. ' "$@"; }; '
  ask = ask .. "ask " .. quoted(string.format("%s/v1/jobs/%d/eta?format=hook", set.url, job_id))
  if body then
    ask = ask .. "; [ $? -ne 22 ] || ask -H 'Content-Type: application/json' -d " .. quoted(body)
    ask = ask .. " " .. quoted(set.url .. "/v1/eta?format=hook")
  end
  return string.format("timeout -k %s %s sh -c %s 2>/dev/null", END_S, ASK_S, quoted(ask))
end

local function tell(job_id)
  local set, first = settings(), submitted[0]
  if not set.url or not first or first["quiet"] == "set" or (tonumber(first["quiet"]) or 0) > 0 then return end
  local pool = first[set.pool_by or "account"]
  local answer = io.popen(command(set, job_id, not submitted[1] and question(first, pool) or nil))
  local text = answer:read(MOST)
  answer:close()
  local line = (text or ""):match("^([^\n]+)\n") -- one that was cut is none
  -- What moves a terminal's cursor does not reach it.
  if line then io.stderr:write("jobcast: ", (line:gsub("%c", "?"):gsub("\194[\128-\159]", "?")), "\n") end
end

function slurm_cli_setup_defaults(options, early_pass) return slurm.SUCCESS end

function slurm_cli_pre_submit(options, pack_offset)
  pcall(function()
    if options["type"] ~= "sbatch" then return end
    local kept = {}
    for _, name in ipairs({
      "account", "qos", "partition", "gpus", "gpus-per-node", "gpus-per-task", "gres", "nodes", "ntasks", "time", "quiet",
      "hold", "begin", "dependency",
    }) do
      kept[name] = options[name]
    end
    submitted[pack_offset] = kept
  end)
  return slurm.SUCCESS
end

function slurm_cli_post_submit(pack_offset, job_id, step_id)
  if pack_offset == 0 then pcall(tell, job_id) end
  return slurm.SUCCESS
end

return slurm.SUCCESS
