"""The figures and tables of SIA, made anew: `python -m papers.sia`."""

from pathlib import Path

from papers.driver import Paper, command_of, count, make_figures

ITEMS = ("figure5", "figure24", "figure13", "figure14", "figure15a", "figure15b", "figure16", "table17", "preemption")
NEED_DATA = ("figure13", "figure14", "figure15a", "figure16", "table17", "preemption")
PAPER = Paper("SIA", "reproduce-sia", "sia", ITEMS, "philly", "philly/", NEED_DATA)
RUNS, HOME = ".runs.jsonl", ".home"
"""In the folder of all items, which share runs and predictors; they are not kept in version control."""
SEEDS, DRAWS = 10, 100

ABOUT = """Make the figures and tables of SIA anew, all of them or those named.

\b
ITEM: figure5, figure24 (the potential, on synthetic workloads), figure13 (random draws of four queues), figure14
      (numbers of queues), figure15a (what predictors are worth), figure15b (the virtual clock and the MILP),
      figure16 (locality), table17 (all pools, with figure 18), preemption (of a share of the jobs)
JOBCAST_DATA names the folder of traces; figures 5, 24 and 15b do without. How long each took is told as it is done;
runs that are on file are not made again with --resume.

\b
Example:
  python -m papers.sia figure5 figure13 --seeds 2 --draws 10 --out figures
"""


def reproduce(
    names: tuple[str, ...],
    out: Path,
    data: Path,
    *,
    resume: bool = False,
    seeds: int = SEEDS,
    draws: int = DRAWS,
    jobs: int = 2,
) -> None:
    """Make some of `ITEMS`, see `make_figures`.

    Parameters
    ----------
    resume : whether runs that are on file count; pages are made anew
    seeds, draws : of synthetic workloads, and of random pools (all but Figure 13 take a tenth of them)
    jobs : runs at a time

    Raises ConfigError for an unknown name.
    """
    from papers.run_file import RunFile
    from papers.sia.bench import Bench

    bench = Bench(data, out / HOME, RunFile(out / RUNS, resume=resume), seeds, draws, jobs)

    def make(name: str, data: Path, into: Path) -> None:
        PAPER.item(name)(bench, into)

    make_figures(PAPER, names, out, data, make)


OPTIONS = (
    count("seeds", SEEDS, "Draws of synthetic workloads."),
    count("draws", DRAWS, "Draws of random pools."),
    count("jobs", 2, "Runs at a time."),
)
main = command_of(PAPER, reproduce, ABOUT, OPTIONS, word="ITEM")

if __name__ == "__main__":
    main()
