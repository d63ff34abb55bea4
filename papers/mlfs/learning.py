"""MLFS, section 3.4: how MLF-RL learned, and what it reaches on workloads that it was not trained on."""

from matplotlib.figure import Figure

from jobcast.models.registry import open_registry
from jobcast.pipelines.experiments.sources import loaded_version
from jobcast.schedulers.tasks.policies import MLF_POLICY
from papers.mlfs.bench import Bench
from papers.plotting import save
from papers.results import Page, grid, number

SHOWN = {
    "mean_jct_s": ("mean JCT, %", 100.0),
    "bandwidth_tb": ("bandwidth, %", 100.0),
    "deadline_ratio": ("deadlines kept, points", 100.0),
    "accuracy_ratio": ("required accuracies, points", 100.0),
    "accuracy_mean": ("accuracy by deadline", 1.0),
}


def learning(bench: Bench, page: Page) -> None:
    """Write the page and plot of the champion of `mlf-policy`; raises RegistryError where there is none."""
    version = open_registry(bench.home).resolve(MLF_POLICY)
    model = loaded_version(bench.home, MLF_POLICY, version.version)
    training, found = model.training_, model.measured_

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        axes.plot(*zip(*training.checks, strict=True), marker="o", markersize=3)
        axes.axhline(0.0, linewidth=0.8, linestyle=":")
        axes.set(xlabel="iteration", ylabel="reward beyond MLF-H's")

    save(page, "Reward on workloads kept apart", paint)
    rows = [
        (title, *(number(scale * ends[key], 2) for ends in (found.means, found.lows, found.highs)))
        for key, (title, scale) in SHOWN.items()
    ]
    table = grid(("change against MLF-H", "mean", "from", "to"), rows)
    betas = ", ".join(f"{beta:.3g}" for beta in training.betas)
    facts = {"iterations": training.iterations, "jobs": training.jobs, "seed": training.seed, "betas": betas}
    page.write(**facts, workloads=found.workloads, table=table)
