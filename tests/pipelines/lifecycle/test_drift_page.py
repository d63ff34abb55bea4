"""The page of a drift report, whose weeks come from `four_weeks/`."""

import pytest

from jobcast.pipelines.lifecycle.drift_page import CAPTIONS, GLOSSARY, by_week
from jobcast.pipelines.lifecycle.standards import LIVES


@pytest.mark.parametrize("question", LIVES)
def test_every_figure_that_is_drawn_has_words_of_its_own_below_it(question):
    assert set(LIVES[question].drawn) <= set(CAPTIONS)


def test_limits_are_called_as_the_verdicts_that_they_part():
    verdicts = {name for name, _ in GLOSSARY}
    named = [text.split("limits of ")[1].split(",")[0].rstrip(".") for text in CAPTIONS.values() if "limits of" in text]
    assert named
    assert {word for words in named for word in words.split(" and ")} <= verdicts


def test_the_highest_and_the_lowest_dot_of_a_week_are_whole():
    drawn = by_week("a", ["2024-01-01", "2024-01-08"], {"5min": [0.2, 0.9]}, "coverage", [0.5])
    lines = drawn.spec["layer"][-1]["encoding"]
    assert (
        lines["y"]["scale"]["padding"] == lines["x"]["scale"]["padding"] >= 4
    )  # pixels; a dot has half of 30 square ones
