"""What holds of every run of every policy in every law that it can live in, whatever is drawn.

Capacity (cluster, nodes, each GPU where they are named, quotas where nothing is lent), conservation of work, no
starvation, the same bits twice, and meters that tell what spans tell: all recomputed from the log, not from the
engine's books. One seed is one experiment, jobs, cluster and settings: what fails names law, policy and seed, and
`CHECKS[law, policy](policy, seed)` makes it again. `worlds` holds the experiments of laws that policies of several
kinds share, `rigid`, `elastic`, `energy` and `tasks` those of one kind, with what only it can break.
"""

from contextlib import suppress
from dataclasses import replace

import pytest

from jobcast.domain.errors import DecisionError
from jobcast.domain.law import EPOCHS, GOODPUT, RUNTIME, SPEEDUP, TASKS
from jobcast.pipelines.experiments.worlds import LIVING
from jobcast.schedulers import policies as kinds
from jobcast.schedulers.registry import BUILT_IN, local_policies, names_of
from tests.contract import elastic, energy, rigid, tasks, worlds
from tests.contract.random_jobs import check_held

RUNS = 10_000
FEW, MANY = 1, 115
SLOWER = {
    **dict.fromkeys(("shockwave", "ossp", "shockwave gavel", "ossp gavel"), 25),
    **dict.fromkeys(("milp", "exact", "andreas", "sia_risk", "sia_plan", "sia_risk locality"), 25),
    **dict.fromkeys(names_of(kinds.TASKS), 40),
}
"""Fewer experiments of policies that solve programmes, search, or are looked at task by task."""
NO_GRID = "milp"
"""Plans on a grid on which all run times must lie; those of epochs and tasks do not."""
OWN = {
    (RUNTIME, kinds.POOLS): rigid.check_pools,
    (RUNTIME, kinds.ROUNDS): rigid.check_rounds,
    (GOODPUT, kinds.GOODPUT): rigid.check_scaling,
    (SPEEDUP, kinds.ELASTIC): elastic.check_elastic,
    (EPOCHS, kinds.ENERGY): energy.check_energy,
    (TASKS, kinds.TASKS): tasks.check_tasks,
}
SHARED = {
    EPOCHS: lambda name, seed: worlds.check(worlds.of_epochs(name, seed)),
    TASKS: lambda name, seed: worlds.check(worlds.of_tasks(name, seed)),
}
CHECKS = {
    **{
        (law, name): OWN.get((law, spec.kind)) or SHARED[law]
        for law, living in LIVING.items()
        for name, spec in BUILT_IN.items()
        if spec.kind in living and (law == RUNTIME or name != NO_GRID)
    },
    **{(RUNTIME, f"{name} locality"): rigid.check_pools for name in local_policies()},
    **{(RUNTIME, f"{name} gavel"): rigid.check_rounds for name in names_of(kinds.ROUNDS)},
    **{
        (f"{SPEEDUP} by the engine", name): lambda name, seed: worlds.check(worlds.of_speedup(name, seed))
        for name in names_of(kinds.ELASTIC)
    },
}
"""(law, policy) -> what makes an experiment of a seed, runs it and asserts; the compiled twin is a law of its own."""


def check_many(law, name, seeds):
    for seed in seeds:
        try:
            with suppress(*[DecisionError] * (name in tasks.LEARNED)):
                CHECKS[law, name](name, seed)
        except Exception as error:
            error.add_note(f"law {law}, policy {name}, seed {seed}")
            raise


def many(law, name):
    """Seeds of the slow tier."""
    return range(FEW, FEW + SLOWER.get(name, MANY))


@pytest.mark.parametrize(("law", "name"), CHECKS)
def test_a_few_experiments(law, name):
    check_many(law, name, range(FEW))


@pytest.mark.parametrize("name", [name for name in names_of(kinds.POOLS) if name != NO_GRID])
def test_a_run_that_begins_amid_things(name):
    for seed in range(12):
        rigid.check_begun(name, seed)


@pytest.mark.slow
@pytest.mark.parametrize(("law", "name"), CHECKS)
def test_many_experiments(law, name):
    check_many(law, name, many(law, name))


@pytest.mark.parametrize(
    ("made", "name"), [(worlds.of_epochs, "las"), (worlds.of_tasks, "las"), (worlds.of_speedup, "srsf")]
)
def test_what_does_not_hold_is_found(made, name):
    """Half of the time held, or so many GPUs as there are not, in an otherwise sound log."""
    experiment = made(name, 3)
    log = experiment.run()
    spans = log.spans
    short = replace(spans, until_s=spans.from_s + 0.5 * (spans.until_s - spans.from_s))
    with pytest.raises(AssertionError):
        experiment.work(replace(log, spans=short))
    with pytest.raises(AssertionError, match="more GPUs than there are"):
        check_held(replace(log, spans=replace(spans, gpus=spans.gpus + log.total_gpus)))


def test_they_are_as_many_as_they_should_be():
    assert {name for _, name in CHECKS} >= set(BUILT_IN)
    assert sum(len(many(*pair)) for pair in CHECKS) >= RUNS
