"""What a front tells in text."""

from jobcast.pipelines.experiments.search.evaluation import parse_objectives
from jobcast.pipelines.experiments.search.front import Front, Row, front_plots, front_table
from jobcast.schedulers.elastic.config import WfqConfig


def test_the_table_takes_rounding_errors_for_nothing_as_the_page_does():
    """FIFO's forecasts are exact but for the last bit of sums."""
    values = (1000.0, 5.75e-17)
    row = Row(0, WfqConfig(), {}, values, values, True)
    lines = front_table(Front(parse_objectives("jct:mean,error:mean"), (row,), {"elastic_fifo": values})).splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [["0", "1,000", "0"], ["elastic_fifo", "1,000", "0"]]


def test_what_is_suggested_lies_on_top_of_what_is_as_good():
    values = (1000.0, 0.0)
    row = Row(0, WfqConfig(), {}, values, values, True)
    front = Front(parse_objectives("jct:mean,error:mean"), (row,), {"elastic_fifo": values})
    (drawn,) = front_plots(front, "front.parquet").values()
    (points,) = drawn.spec["datasets"].values()
    assert [one["series"] for one in points] == ["FIFO, the default", "suggested"]
