"""What hooks tell: a file for slurmctld, anew or taken away, and answers that are empty where nothing is sure."""

import subprocess
import time

from jobcast.live.event_log import CHANGE, Event
from jobcast.live.server import told
from jobcast.models.registry import open_registry
from tests.live.server.site import NOW_S, Site, filled
from tests.live.slurm.test_hooks import CONTROLLING, HOOKS, LUA, interpreted


def test_the_last_who_waits_is_told_by_pool_and_until_when(site, tmp_path):
    file = tmp_path / "run" / "told"
    told.write_told(file, site.service, NOW_S)
    first, busy, calm = file.read_text().splitlines()
    assert first == f"until {int(NOW_S + told.TOLD_S)}"
    assert busy.startswith("busy as of ")
    assert busy.endswith(": 32 of 32 GPUs are idle")
    assert "2 wait before you, and the last of them is expected to start " in calm
    assert file.stat().st_mode & 0o777 == 0o644
    # Nobody waits behind one that may start only tomorrow.
    site.post(("submit", "begins", NOW_S, {"pool": "calm", "gpus": 1}))
    later = {"held": True, "waits_for": "BeginTime", "eligible_s": NOW_S + 86_400.0}
    site.service.take([Event(NOW_S, CHANGE, "begins", NOW_S, later)])
    site.service.refresh()
    told.write_told(file, site.service, NOW_S)
    assert "calm as of" in file.read_text()
    assert ": 2 wait before you" in file.read_text()
    assert [path.name for path in file.parent.iterdir()] == ["told"]


def test_what_is_old_is_told_to_nobody(site, tmp_path):
    file = tmp_path / "told"
    told.write_told(file, site.service, NOW_S)
    told.write_told(file, site.service, NOW_S + 61.0)
    told.write_told(file, site.service, NOW_S + 61.0)
    assert not file.exists()
    site.now_s = NOW_S + 61.0
    assert site.ask("/v1/jobs/next/eta?format=hook") == (204, b"")
    assert b"nothing was heard" in site.ask("/v1/jobs/next/eta?format=text")[1]


def test_an_empty_registry_says_nothing_at_submission(tmp_path):
    """Futures are played all the same, and told to who asks."""
    with Site(open_registry(tmp_path)) as site:
        filled(site)
        assert told.told(site.service, NOW_S) is None
        assert site.ask("/v1/jobs/next/eta?format=hook") == (204, b"")
        assert site.ask("/v1/eta?format=hook", {"pool": "calm", "gpus": 1}) == (204, b"")
        assert site.ask("/v1/jobs/next/eta?format=text")[1].startswith(b"job next: expected to start ")


def test_a_hook_is_told_without_asides(site):
    line = site.ask("/v1/jobs/next/eta?format=hook")[1].decode()
    assert line.startswith("job next: expected to start ")
    assert line.count("\n") == 1


@interpreted
def test_the_hook_reads_it(site, tmp_path):
    script, file = tmp_path / "controlling.lua", tmp_path / "told"
    script.write_text(CONTROLLING)
    # By the interpreter's clock: the server's stands elsewhere.
    text = told.told(site.service, NOW_S)
    file.write_text(text.replace(f"until {int(NOW_S + told.TOLD_S)}", f"until {int(time.time()) + 60}"))
    command = [LUA, str(script), str(HOOKS / "job_submit.lua"), "busy"]
    said = subprocess.run(command, capture_output=True, text=True, env={"JOBCAST_TOLD_FILE": str(file)}, check=True)
    assert said.stdout.startswith("jobcast: as of ")
    assert ": 32 of 32 GPUs are idle\n" in said.stdout
    file.write_text(text)
    said = subprocess.run(command, capture_output=True, text=True, env={"JOBCAST_TOLD_FILE": str(file)}, check=True)
    assert "idle" not in said.stdout
