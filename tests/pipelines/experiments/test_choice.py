"""Choices by what was replayed: by hand, and that none looks ahead."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.pipelines.experiments.choice import DRAWN, FUTURE, NOT_ALL, Replays, choose, rows_of

DAY_S, HOUR_S = 86_400.0, 3_600.0
DAYS = 5


def row(label: str, factors: list[float], late: int = 0, future: bool = False) -> Replays:
    """A row of windows of five days, ten jobs a day of ten hours now; `factors` of those, `late` jobs an hour later."""
    base = [np.full(DAYS * 10, 10 * HOUR_S) for _ in factors]
    ours = [of * factor for of, factor in zip(base, factors, strict=True)]
    for window in ours:
        window[:late] = 11 * HOUR_S
    submit = [(w * DAYS + np.repeat(np.arange(DAYS), 10)) * DAY_S + 1.0 for w in range(len(factors))]
    return Replays(label, label.split()[0], None, {}, ours, base, submit, [float(DAYS)] * len(factors), future)


NOW = row("fcfs", [1.0, 1.0, 1.0])


def test_a_walk_by_hand() -> None:
    """After one window b is sure; a, faster later, is so after two; c slows 2 of 50 and is never taken."""
    a, b, c = row("a", [1.0, 0.25, 0.25]), row("b", [0.5, 0.5, 0.5]), row("c", [0.1, 0.1, 0.1], late=2)
    found = choose([NOW, a, b, c, row("d oracle", [0.1, 0.1, 0.1], future=True)], "fcfs", 1.0, left={"e": NOT_ALL})
    assert [one["used"] for one in found["windows"]] == ["fcfs", "b", "b"]
    # 250 job-hours a window under b.
    assert [one["saved_h_week"] for one in found["windows"]] == pytest.approx([0.0, 350.0, 350.0])
    assert (found["choice"]["label"], found["switch"]) == ("b", True)
    # In hindsight a (0 + 375 + 375 hours in 15 days) or b (three times 250); the walk had 0 + 250 + 250.
    assert found["best_in_hindsight"] in ("a", "b")
    assert found["regret_h_week"] == pytest.approx(250 * 7 / 15)
    why = {one["label"]: one["why"] for one in found["candidates"]}
    assert why["d oracle"] == FUTURE
    assert why["c"] == "slows 4 % of jobs, more than the 1 % that are allowed"
    assert (why["b"], why["e"]) == (None, NOT_ALL)


def test_nobody_beyond_doubt_means_no_switch() -> None:
    """As fast on most days and faster on one: the lower bound is 1."""
    other = row("a", [1.0, 1.0])
    other.jct_s[0][:10] *= 0.9
    now = row("fcfs", [1.0, 1.0])
    found = choose([now, other], "fcfs", 1.0)
    assert (found["choice"]["label"], found["switch"]) == ("fcfs", False)
    assert {one["why"] for one in found["candidates"]} == {None, "not faster than fcfs beyond doubt"}


def test_who_makes_most_faster_and_people_wait_longer_is_not_chosen() -> None:
    """One job in a hundred ends 2,000 hours later, the others in half of their ten hours: 1,510 hours longer in all."""
    slow = row("a", [0.5, 0.5])
    for times, late_h in zip(slow.jct_s, (2010.0, 10.0), strict=True):
        times[:1] = late_h * HOUR_S
    found = choose([row("fcfs", [1.0, 1.0]), slow], "fcfs", 1.0)
    assert (found["choice"]["label"], found["best_in_hindsight"]) == ("fcfs", "fcfs")
    # 1 of 50 is slowed in the first window, 1 of 100 in both.
    assert found["candidates"][1]["why"] == "people wait longer in all: 1.06e+03 h/week"


def test_who_comes_to_slow_too_many_is_given_up() -> None:
    """Nobody is slowed in the first window, 2 of 50 jobs in each that follows: 2 % of all seen so far, then 2.7 %."""
    fast, late = row("a", [0.5, 0.5, 0.5]), row("a", [0.5, 0.5, 0.5], late=2)
    fast.jct_s[1][:2], fast.jct_s[2][:2] = late.jct_s[1][:2], late.jct_s[2][:2]
    found = choose([NOW, fast], "fcfs", 1.0)
    assert [one["used"] for one in found["windows"]] == ["fcfs", "a", "fcfs"]
    assert (found["choice"]["label"], found["switch"]) == ("fcfs", False)


def test_a_folder_gives_the_rows_that_were_replayed() -> None:
    """Job 1 never ran under sia and is compared nowhere, job 2 is of the warm-up, pcs lives by another law."""
    labels = ("fcfs", "sia random", "pcs")
    end_s = {"fcfs": [10.0, 20.0, 30.0, 40.0], "sia random": [5.0, None, 30.0, 44.0], "pcs": [1.0, 1.0, 1.0, 1.0]}
    jobs = pl.DataFrame(
        {
            "label": [label for label in labels for _ in range(4)],
            "window": 0,
            "seed": 0,
            "job": [0, 1, 2, 3] * 3,
            "user": ["ann", "ann", "bob", "bob"] * 3,
            "submit_s": [0.0] * 12,
            "end_s": [end for label in labels for end in end_s[label]],
            "counted": [True, True, False, True] * 3,
        }
    )
    told = {"window": 0, "days": 14.0, "future": False, "law": "runtime", "seed": 0, "figures": {}}
    figures = [{**told, "label": label, "policy": label.split()[0], "forecasts": None} for label in labels]
    figures[1]["forecasts"], figures[2]["law"] = "random", "speedup"
    # Another seed of the second, whose jobs are not looked at.
    figures[1]["figures"] = {"total_eur": 30.0}
    figures.append({**figures[1], "seed": 1, "figures": {"total_eur": 50.0}})
    rows, left = rows_of(jobs, figures, "fcfs")
    assert [row.eur for row in rows] == [[], [30.0]]
    assert [one.get("eur_week") for one in choose(rows, "fcfs", 1.0)["candidates"]] == [None, 15.0]
    assert list(left) == ["pcs"]
    assert [(row.label, row.jct_s[0].tolist(), row.refused) for row in rows] == [
        ("fcfs", [10.0, 40.0], None),
        ("sia random", [5.0, 44.0], DRAWN),
    ]
    # Four seconds later for bob, five sooner for ann.
    late = rows[1].slowed()
    assert (late["people"], late["people_slowed"]) == (2, 1)
    assert late["people_slowed_worst_h"] == pytest.approx(4 / 3600)
    assert rows[1].slowed_pct([0]) == 50.0


@given(
    st.lists(st.lists(st.floats(0.2, 3.0), min_size=3, max_size=3), min_size=1, max_size=4),
    st.lists(st.floats(0.2, 3.0), min_size=4, max_size=4),
)
def test_no_choice_looks_ahead(rows: list[list[float]], last: list[float]) -> None:
    """Whatever the last window brings, what was used until then is the same; the best in hindsight saves no less than a
    row that was allowed throughout."""
    plain = [NOW, *(row(f"p{i}", factors) for i, factors in enumerate(rows))]
    other = [NOW, *(row(f"p{i}", [*factors[:2], last[i]]) for i, factors in enumerate(rows))]
    walks = [[one["used"] for one in choose(given, "fcfs", 1.0)["windows"]] for given in (plain, other)]
    assert walks[0] == walks[1]
    found = choose(plain, "fcfs", 1.0)
    allowed = [one for one in found["candidates"] if one["slowed_pct"] <= 1.0]
    best = next(one for one in found["candidates"] if one["label"] == found["best_in_hindsight"])
    assert best["saved_h_week"] == max(one["saved_h_week"] for one in allowed)
    assert found["regret_h_week"] == pytest.approx(best["saved_h_week"] - found["walk_saved_h_week"])
