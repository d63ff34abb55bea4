from importlib.metadata import EntryPoint

import pytest

from jobcast.domain.errors import ConfigError
from jobcast.traces import readers
from jobcast.traces.readers import format_names, read_trace, reader_named
from jobcast.traces.readers.canonical import CanonicalReader


class ShoutingReader(CanonicalReader):
    """Another package's format: canonical rows after a line that shouts."""

    name = "shout"

    def recognises(self, path, head):
        return head.startswith(b"JOBS!")

    def read(self, sources, timezone=None, strict=False):
        path = sources[0]
        rest = path.with_name("rest.csv")
        rest.write_text(path.read_text().partition("\n")[2])
        return super().read([rest], timezone, strict)


@pytest.fixture
def plugin(monkeypatch):
    """Puts entry points in the place of those that are installed."""

    def install(name, value):
        entry = EntryPoint(name, value, "jobcast.readers")
        monkeypatch.setattr(readers, "entry_points", lambda *, group, name=entry.name: [entry] * (name == entry.name))
        monkeypatch.setattr("importlib.metadata.EntryPoint.load", lambda self: globals()[self.value])

    return install


def test_the_canonical_form_is_tried_first():
    assert format_names()[0] == "canonical"
    assert all(reader_named(name).name == name for name in format_names())


def test_another_packages_reader_is_found_by_content_and_by_name(plugin, tmp_path):
    plugin("shout", "ShoutingReader")
    path = tmp_path / "jobs.txt"
    path.write_text("JOBS!\njob_id,pool,submit_time,duration,gpus\n1,p,0,1,1\n")
    assert len(read_trace(path)) == 1
    assert len(read_trace(path, format="shout")) == 1
    assert format_names() == ["canonical", "philly", "shout"]


def test_a_reader_that_does_not_load_is_named(plugin, tmp_path):
    plugin("broken", "Nowhere")
    with pytest.raises(ConfigError, match=r"reader 'broken' \(Nowhere\) does not load"):
        read_trace(tmp_path / "jobs.csv", format="broken")


def test_an_unknown_format_lists_the_known(tmp_path):
    with pytest.raises(ConfigError, match="format 'swf2' is not known; give one of canonical, philly"):
        read_trace(tmp_path / "jobs.csv", format="swf2")
