"""Every page in a real browser, wide and narrow: nothing cut, no mistake, no request, charts drawn, tables sort."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from jobcast.domain.clock import Clock
from jobcast.domain.jobs import Pool
from jobcast.pipelines.experiments.search.front import front_page, front_plots
from jobcast.pipelines.report.advice import choice_page
from jobcast.pipelines.report.backtest_page import render_report
from jobcast.pipelines.report.completion import Curve, write_plot
from jobcast.pipelines.report.layout import Finding, Table, render
from jobcast.pipelines.report.trace_page import write_description
from jobcast.traces.describe import describe
from jobcast.traces.table import Trace
from tests.live.server.browser import OVERFLOW, Browser, needed
from tests.papers.pcs.test_pcs_fronts import front
from tests.pipelines.report.test_backtest_page import sample
from tests.pipelines.report.test_trace_page import made_trace

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("pages"), needed]  # what they share is made once
DRAWN = "[...document.querySelectorAll('figure[data-chart]')].every((one) => one.dataset.chart === 'drawn')"
MARKS = "[...document.querySelectorAll('.plot')].map((one) => one.querySelectorAll('svg path').length)"
CUT = """[...document.querySelectorAll('.plot svg')].flatMap((svg) => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter((text) => {
    const at = text.getBoundingClientRect();
    const besides = at.left < box.left - 1 || at.right > box.right + 1;
    return at.width && (besides || at.top < box.top - 1 || at.bottom > box.bottom + 1);
  }).map((text) => text.textContent);
})"""


def report(path: Path) -> None:
    path.write_text(render_report(sample()), encoding="utf-8")


def choice(path: Path) -> None:
    told = {**sample().choice, "skipped": [{"policy": "pcs", "lacks": "sizes"}], "remedy": ""}
    path.write_text(
        choice_page(told, [("trace", "jobs.parquet")], {"mmfs": "--trace jobs.parquet"}, "jobcast choose"), "utf-8"
    )


def description(path: Path) -> None:
    trace = made_trace()
    write_description(describe(trace, [Pool("a", 8), Pool("c", 64)]).to_dict(), path, trace.submit_s)


def odd(path: Path) -> None:
    """One job, which does not wait, of a pool with a long name."""
    columns = {
        "job_id": ["0"], "pool": ["a <b>very</b> long name of a pool & all that it is there for"], "user": ["Käthe"],
        "submit_time": [1.5e9], "start_time": [1.5e9], "end_time": [1.5e9 + 600.0], "duration": [600.0], "gpus": [2],
    }  # fmt: skip
    write_description(describe(Trace.from_frame(pl.DataFrame(columns), name="odd")).to_dict(), path, [1.5e9])


def search(path: Path) -> None:
    found = front((100_000.0, 40.0), (112_000.0, 30.0), (158_000.0, 10.0), (398_000.0, 5.0))
    path.write_text(front_page(found, front_plots(found, "front.parquet"), "front.parquet"), encoding="utf-8")


def completion(path: Path) -> None:
    drawn = np.random.default_rng(0).lognormal(9.0, 0.7, 200)
    told = [Curve("2 GPUs", kind, drawn * times, 900.0 * times, 40_000.0) for kind, times in (("start", 1), ("end", 2))]
    write_plot(path, "When job 7 ends", told, Clock(0.0), "job 7 ends by 23:10 with 90 %")


PAGES = {
    "report": report,
    "choice": choice,
    "description": description,
    "odd": odd,
    "search": search,
    "completion": completion,
}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for name, write in PAGES.items():
        write(folder / f"{name}.html")
    return folder


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [1300, 500, 400])
def test_a_page_is_whole_at_any_width(browser, pages, name, width):
    del browser.errors[:], browser.requests[:]
    address = (pages / f"{name}.html").as_uri()
    browser.open(address, width)
    browser.wait(DRAWN)
    browser.picture(f"{name}-{width}")
    assert browser.run(OVERFLOW) <= 0
    assert min(browser.run(MARKS)) > 0
    assert browser.run(CUT) == []
    assert browser.errors == []
    assert set(browser.requests) == {address}


def test_a_column_sorts_by_what_it_holds_and_a_key_turns_it_around(browser, pages):
    browser.open((pages / "choice.html").as_uri(), 1300)
    head = "document.querySelectorAll('table')[0].tHead.rows[0].cells[2]"
    column = "[...document.querySelectorAll('table')[0].tBodies[0].rows].map((row) => row.cells[2].textContent)"

    def numbers():
        return [float(text.replace(",", "").replace("+", "").replace("\u2212", "-")) for text in browser.run(column)]

    browser.run(f"{head}.querySelector('button').click()")
    assert numbers() == sorted(numbers())
    assert len(set(numbers())) > 5
    browser.run(f"{head}.querySelector('button').focus()")
    browser.press("Enter")
    assert numbers() == sorted(numbers(), reverse=True)
    assert browser.run(f"{head}.getAttribute('aria-sort')") == "descending"


def test_small_numbers_sort_as_numbers_and_names_that_begin_with_digits_as_names(browser, tmp_path):
    rows = [("b2", "0.002"), ("2869", "under 0.0001"), ("0e4a51", "+1.00"), ("b10", "over \u22120.0001"), ("6c71", "–")]
    page = tmp_path / "table.html"
    page.write_text(a_table(rows), encoding="utf-8")
    browser.open(page.as_uri(), 1300)

    def sorted_by(column):
        browser.run(f"document.querySelectorAll('thead button')[{column}].click()")
        return browser.run(f"[...document.querySelectorAll('tbody tr')].map((row) => row.cells[{column}].textContent)")

    assert sorted_by(1) == ["over \u22120.0001", "under 0.0001", "0.002", "+1.00", "–"]
    assert sorted_by(0) == ["2869", "0e4a51", "6c71", "b2", "b10"]


def a_table(rows: list[tuple[str, ...]]) -> str:
    """A page of one table."""
    table = Table("t", ("pool", "figure"), rows)
    return render(
        "description.html.j2",
        title="t",
        finding=Finding("", ()),
        tiles=[("hours saved", "12,339,873")],
        sections=[],
        pools_table=table,
        share_tables=[],
        facts=[("submitted", "")],
        dropped=[],
        notes=[],
    )


def test_a_long_number_in_a_tile_is_on_one_line(browser, tmp_path):
    page = tmp_path / "tile.html"
    page.write_text(a_table([("a", "1")]), encoding="utf-8")
    for width in (1300, 400):
        browser.open(page.as_uri(), width)
        height = browser.run("document.querySelector('.tiles dd').getBoundingClientRect().height")
        assert height < 1.5 * browser.run(
            "parseFloat(getComputedStyle(document.querySelector('.tiles dd')).lineHeight)"
        )


def test_a_point_of_a_front_tells_the_command_that_takes_it(browser, pages):
    browser.open((pages / "search.html").as_uri(), 1300)
    browser.wait(DRAWN)
    browser.run(
        "[...document.querySelectorAll('.plot path[aria-label]')].find((one) => one.ariaLabel.includes('pick 2'))"
        ".dispatchEvent(new MouseEvent('click', { bubbles: true }))"
    )
    told = browser.run("document.querySelector('figure output').textContent")
    assert told == "jobcast search apply front.parquet --pick 2 --out config.json"


@pytest.mark.parametrize("name", PAGES)
def test_charts_are_drawn_for_paper_while_a_page_is_printed_from_a_wide_window(browser, pages, name):
    browser.open((pages / f"{name}.html").as_uri(), 1500)
    browser.wait(DRAWN)
    widths = "[...document.querySelectorAll('.plot svg')].map((svg) => Math.round(svg.width.baseVal.value))"
    on_screen = browser.run(widths)
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert set(browser.run(widths)) == {round(17 / 2.54 * 96)}  # a CSS inch is 96 pixels; A4 is 21 cm wide
    browser.run("dispatchEvent(new Event('afterprint'))")
    assert browser.run(widths) == on_screen


def test_names_of_columns_are_plain_text_on_paper_so_that_each_page_repeats_them(browser, pages):
    # Chromium leaves buttons, and what is sticky, blank where a head is repeated.
    browser.open((pages / "choice.html").as_uri(), 1300)
    browser.paper()
    styles = "[...document.querySelectorAll('th button, th, caption span')].map((one) => getComputedStyle(one))"
    assert browser.run(f"{styles}.filter((one) => one.position === 'sticky').length") == 0
    heads = "[...document.querySelectorAll('th button')].map((one) => getComputedStyle(one).display)"
    assert set(browser.run(heads)) == {"contents"}
