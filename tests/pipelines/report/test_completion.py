"""Starts and ends in words: days, zones, jobs that wait, run or ran."""

import time
import xml.etree.ElementTree as ET
from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from jobcast.pipelines.report.completion import Clock, Curve, queue_table, sentence, write_plot
from tests.shared import time_zone

BERLIN = ZoneInfo("Europe/Berlin")
NOON_S = datetime(2026, 3, 28, 12, 0, tzinfo=BERLIN).timestamp()
"""The day before clocks are put forward."""


def ends(low_h, high_h, gpus=4, **more):
    return {"gpus": gpus, "p5_h": low_h, "p95_h": high_h, **more}


def job(*answers, **changed):
    told = {"job_id": "4711", "user": "alice", "pool": "vision", "state": "queued", "started": None}
    return {**told, **changed, "answers": list(answers)}


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (
            job(ends(3.0, 14.0, start=ends(2.09, 3.66)), ends(2.0, 4.5, gpus=2)),
            "job 4711 (alice, 4 GPUs, pool vision): starts between 14:05 and 15:40, ends by 03:00 (tomorrow) with "
            "90 %; with 2 GPUs instead of 4: ends by 16:30",
        ),
        (
            job(ends(1.0, 50.0), state="running", started="2026-03-27T08:15:00Z"),
            "job 4711 (alice, 4 GPUs, pool vision): runs since 09:15 (yesterday), ends between 13:00 and "
            "2026-03-30 15:00 with 90 %",
        ),
        (
            job(ends(1.0, 2.0, gpus=1), state="queued", started="2026-03-28T10:00:00Z", user="", pool=""),
            "job 4711 (1 GPU): ran from 11:00 on and waits again, ends by 14:00 with 90 %",
        ),
        (
            job(ends(2.0, 2.0, start=ends(0.0, 0.0))),
            "job 4711 (alice, 4 GPUs, pool vision): starts within a minute, ends at 14:00 if nothing else comes",
        ),
        (
            job(ends(0.5, 9.99, start=ends(0.0, 0.25))),
            "job 4711 (alice, 4 GPUs, pool vision): starts by 12:15, ends by 22:00 with 90 %",
        ),
    ],
)
def test_a_sentence(asked, told):
    assert sentence(asked, Clock(NOON_S, BERLIN)) == told


def test_the_night_in_which_clocks_are_put_forward():
    """14 hours after noon it is 3 o'clock in summer: an hour was left out."""
    assert Clock(NOON_S, BERLIN).said(NOON_S + 14 * 3600.0) == "03:00 (tomorrow)"
    assert Clock(NOON_S, ZoneInfo("UTC")).said(NOON_S + 14 * 3600.0) == "01:00 (tomorrow)"


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="no time zones of the environment")
def test_without_a_zone_times_are_those_of_this_computer():
    with time_zone("Asia/Tokyo"):
        here = Clock(NOON_S)
        assert (here.said(NOON_S), here.name) == ("20:00", "JST")
        assert here.said(NOON_S + 5 * 3600.0) == "01:00 (tomorrow)"


def test_instants_beyond_the_calendar_are_told_as_its_end():
    assert Clock(NOON_S, BERLIN).said(1e300).startswith("9999-12-")


def test_a_table_of_the_queue():
    jobs = [
        job(ends(3.0, 14.0, start=ends(2.09, 3.66))),
        job(ends(1.0, 2.0), job_id="7", state="running", started="2026-03-28T10:00:00Z"),
    ]
    assert queue_table(jobs, Clock(NOON_S, BERLIN)).splitlines() == [
        "job   user   pool    GPUs  state    starts                   ends by",
        "4711  alice  vision  4     queued   between 14:05 and 15:40  03:00 (tomorrow)",
        "7     alice  vision  4     running  runs since 11:00         14:00",
    ]


def test_shares_are_none_below_nothing_and_an_interval_of_one_instant_is_seen(tmp_path):
    told = [
        Curve(f"{width} GPUs", "end", np.full(9, 60.0 * width), 60.0 * width, 60.0 * width) for width in range(1, 9)
    ]
    write_plot(tmp_path / "when.svg", "When?", told, Clock(0.0), "")
    root = ET.parse(tmp_path / "when.svg").getroot()
    shares = ["".join(node.itertext()) for node in root.iter() if node.tag.endswith("text")]
    assert [text for text in shares if text.endswith("%")] == ["0%", "20%", "40%", "60%", "80%", "100%"]
    assert len([node for node in root.iter() if node.get("stroke-linecap") == "round"]) >= len(told)
