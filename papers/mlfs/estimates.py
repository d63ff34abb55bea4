"""MLFS, section 3.1: what it costs that run times of jobs that never ran are known less well, and sample runs."""

from papers.mlfs.bench import TESTBED, Bench, Workload
from papers.mlfs.measures import ACCURATE, DEADLINE, JCT
from papers.mlfs.plotting import over_x, tables_over_x
from papers.mlfs.rows import MLF_H, SRTF, Row
from papers.mlfs.terms import DRAWS, FIVE_MINUTES, JOBS
from papers.results import Page, draws_text, means

LOAD, SAMPLE_MIN = ("load", 1.0), 10.0
CASES = {
    "all ran before": (),
    "half never ran": (("unseen", 0.5),),
    "half, sample runs": (("unseen", 0.5), ("sample_min", SAMPLE_MIN)),
    "none ran before": (("unseen", 1.0),),
    "none, sample runs": (("unseen", 1.0), ("sample_min", SAMPLE_MIN)),
}
MEASURES = (JCT, DEADLINE, ACCURATE)


def estimates(bench: Bench, page: Page) -> None:
    """Write the page, its table and its plot into a folder."""
    cases = [Workload(name, JOBS, TESTBED, (LOAD, *settings)) for name, settings in CASES.items()]
    rows, seeds = (Row(MLF_H, "mlf_h", FIVE_MINUTES), Row(SRTF, "srtf", FIVE_MINUTES)), bench.seeds[:DRAWS]
    done = page.runs(bench.run(cases, rows, seeds))
    found = means(done)
    over_x(page, "How well run times are known", found, MEASURES)
    tables = tables_over_x(found, MEASURES)
    page.write(draws=draws_text(len(seeds)), jobs=JOBS, minutes=f"{SAMPLE_MIN:g}", tables=tables)
