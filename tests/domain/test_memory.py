"""Limits of memory: how they are written, which one is in force."""

import pytest

from jobcast.domain import memory
from jobcast.domain.errors import ConfigError, MemoryLimitError
from jobcast.domain.memory import memory_limit, need_memory, parse_memory
from tests.shared import refused


@pytest.mark.parametrize(
    ("text", "size"),
    [("4GB", 4 * 10**9), ("512 mb", 512 * 10**6), ("1.5GiB", 1_500_000_000), ("7", 7), ("2T", 2 * 10**12)],
)
def test_sizes(text, size):
    assert parse_memory(text) == size


@pytest.mark.parametrize("text", ["", "lots", "-4GB", "0", "4 gigabytes", "1e9", "nan"])
def test_what_is_no_size(text):
    refused(ConfigError, "write a size such as 4GB", parse_memory, text)


def test_the_nearest_limit_holds(monkeypatch):
    monkeypatch.setenv(memory.VARIABLE, "2KB")
    need_memory(2000, "a")
    refused(MemoryLimitError, r"^a needs about 2\.0 KB of memory, the limit is 2\.0 KB; narrow", need_memory, 2001, "a")
    with memory_limit(3000):
        need_memory(2500, "a")
        with memory_limit(10), pytest.raises(MemoryLimitError):
            need_memory(11, "a")
        need_memory(2500, "a")
    refused(MemoryLimitError, "", need_memory, 2500, "a")


def test_the_default_is_half_of_what_is_free(monkeypatch, tmp_path):
    monkeypatch.delenv(memory.VARIABLE, raising=False)
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    need_memory(1e18, "where the system tells nothing, anything")
    (tmp_path / "meminfo").write_text("MemTotal:       16 kB\nMemAvailable:    8 kB\n")
    need_memory(4096, "a")
    refused(MemoryLimitError, r"the limit is 4\.1 KB", need_memory, 4097, "a")
