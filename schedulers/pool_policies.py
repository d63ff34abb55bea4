"""Policies over pools of whole jobs: settings and specs."""

from functools import partial
from typing import Any, Literal

from jobcast.domain.settings import (
    AtLeastOne,
    AtLeastZero,
    Count,
    Flag,
    From0To1,
    Minutes,
    Seconds,
    Settings,
    Share,
    Switches,
    Whole,
    setting,
)
from jobcast.domain.switches import ALL_SHARE
from jobcast.schedulers.policies import (
    ARRIVALS,
    CLUSTER,
    DURATIONS,
    FUTURE,
    LOADS,
    POOL,
    POOLS,
    STARTS,
    TIME_LIMITS,
    Local,
    PolicySpec,
    of_class,
)


class QueueSettings(Settings):
    """Of queues."""

    backfill: Flag = setting(False, "start what fits behind a job that does not")


class MmfsSettings(Settings):
    """Of max-min fairness."""

    strict: Flag = setting(False, "the first pool blocks the others if its head does not fit")


class KarmaSettings(Settings):
    """Of Karma."""

    alpha: From0To1 = setting(0.5, "share of each quota that is guaranteed to its pool")
    credits_h: AtLeastZero | None = setting(None, "hours of its quota that a pool can pay for at first; no bound")
    quantum_s: Seconds = setting(60.0, "time for which a start is paid at once")


class ThemisSettings(Settings):
    """Of Themis without preemption."""

    filter: Share = setting(0.2, "share of the pending jobs that idle GPUs are offered to")


class Lending(Settings):
    """Of all that lend."""

    tick_s: Seconds | None = setting(None, "ask again after so long while jobs are pending and GPUs idle")
    switches: Switches = setting(ALL_SHARE, "where sharing is off: pool, horizon, from")


class SiaSettings(Lending, QueueSettings):
    """Of SIA; its tunables, end of section 5.3."""

    windows_min: Minutes | None = setting(None, "horizons used as windows; all")
    slack: From0To1 = setting(0.0, "share of each quota kept free beside what is pending and forecast")
    order: Literal["share", "submission", "shortest", "narrow"] = setting(
        "share", "who gets spare GPUs first: smallest share, first job, shortest bin, fewest GPUs"
    )
    adapt: Flag = setting(False, "the run switches sharing off by itself where the gate misses too many arrivals")


class SiaRiskSettings(Lending):
    """Of SIA with priced risks."""

    # Chosen with `relief_min` on 16 October to 5 November 2017 of Philly, the predictors trained on the two weeks
    # before, with quotas at loads 0.8, 0.9 and 1.0: of the pairs that slowed under 0.1 % of the jobs at each load and
    # came within 1 % of the largest speedup over the three, the one that slowed least;
    # `benchmarks/choose_sia_risk.py`.
    budget_min: AtLeastZero = setting(6.0, "minutes of slowdown that a borrower may be expected to cause")
    relief_min: AtLeastOne = setting(60.0, "mean minutes until others give GPUs back")


class SiaPlanSettings(Lending):
    """Of SIA planned in time."""

    # Chosen on 2 to 15 October 2017 of Philly, learnt until then, and on a campus of another seed than the reported.
    budget_min: AtLeastZero = setting(2.0, "minutes by which an early start may be expected to slow others")
    relief_min: AtLeastOne = setting(60.0, "mean minutes until others give GPUs back")


class SiaPreemptSettings(Settings):
    """Of SIA with preemption."""

    resume_s: AtLeastZero = setting(0.0, "seconds that a job loses which goes on after a stop")
    preemptible_share: From0To1 | None = setting(None, "share of the jobs drawn that may be stopped")


class MilpSettings(Settings):
    """Of the exact schedule."""

    grid_s: Seconds = setting(60.0, "a time step; submissions and run times must lie on this grid")
    beta: AtLeastZero = setting(0.0, "weight of fairness between pools")
    time_limit_s: Seconds = setting(60.0, "of the solver")
    exact: Flag = setting(False, "offer every step as a start")
    starts_per_duration: Count = setting(4, "starts offered in a stretch as long as the job")
    search_tries: Whole = setting(50_000, "changes tried on the orders of the incumbents")
    seed: Whole = setting(0, "of the local search")


class TurnSettings(Settings):
    """Of cells by turns."""

    follow: Flag = setting(True, "pools whose jobs started early keep to their private schedule")


class PartSettings(TurnSettings):
    """The same where parts of cells are lent that are in use."""

    apart: Literal["cell", "buddy", "none"] = setting("buddy", "what spare jobs keep away from")


class BackfillSettings(Settings):
    """Of backfilling."""

    priority: Literal["cluster", "fifo", "multifactor"] = setting(
        "cluster", "order of queues; cluster: multifactor where the cluster file gives weights, else fifo"
    )
    bf_max_job_test: Whole = setting(0, "jobs of a pool that are looked at in order, by easy behind the head; 0: all")


class ReservationSettings(BackfillSettings):
    """Of conservative backfilling."""

    reservations: Literal["kept", "renewed"] = setting(
        "kept", "kept: none is ever moved to later; renewed: all are made anew in order whenever a job comes or ends"
    )


SIA_ASKS = (ARRIVALS, LOADS, DURATIONS)


CELLS = Local("cells.placer:CellPlacer")
BLOCKS = Local("cells.turns:TurnPlacer", TurnSettings, turns=True)
TURNS = Local("cells.turns:TurnPlacer", PartSettings, turns=True)
WHOLE_PLAN = "it plans GPUs ahead by number, and cells may be in pieces then"


def _spec(name: str, place: str, summary: str, settings: type[Settings] = Settings, **rest: Any) -> PolicySpec:
    """Where nothing else is said a policy is of SIA, over pools, stops nobody, and can place jobs in cells."""
    local = None if "not_local" in rest else CELLS
    result: dict[str, Any] = {"paper": "SIA", "scope": POOL, "preempts": False, "local": local, **rest}
    make = of_class(place, given="asks" in rest, without=("preemptible_share",))
    return PolicySpec(name=name, kind=POOLS, make=make, summary=summary, settings=settings, **result)


_ranked, _lends = partial(_spec, asks=(DURATIONS,)), partial(_spec, asks=SIA_ASKS)
_planned = partial(_spec, not_local=WHOLE_PLAN)
POOL_POLICIES = (
    _spec(
        *("fcfs", "pool_rules:Fcfs", "each pool in order of submission; nobody overtakes, by default", QueueSettings),
        paper="",
    ),
    _ranked("ssf", "pool_rules:ShortestServiceFirst", "each pool, the least GPUs x run time first", QueueSettings),
    _ranked("sjf", "pool_rules:ShortestJobFirst", "each pool, the shortest run time first", QueueSettings),
    _ranked(
        *("gssf", "pool_rules:GlobalShortestServiceFirst", "the least GPUs x run time of all pools first"),
        settings=QueueSettings,
        scope=CLUSTER,
    ),
    _spec("mmfs", "pool_rules:MaxMinFair", "the smallest allocation / quota first, beyond its quota too", MmfsSettings),
    _spec(
        *("karma", "pool_rules:Karma", "a guaranteed share each; who has earned credits by lending borrows first"),
        settings=KarmaSettings,
        paper="Karma (OSDI 2023)",
    ),
    _ranked(
        *("themis_np", "themis_np:ThemisNp", "finish-time fairness: the worst off are offered GPUs", ThemisSettings),
        scope=CLUSTER,
    ),
    _spec("hived", "pool_rules:HiveD", "quotas first, then anybody on what idles", paper="HiveD (OSDI 2020)"),
    _lends(
        *("sia", "sia:Sia", "quotas first; what no pool will need is lent to jobs that end in time", SiaSettings),
        local=TURNS,
    ),
    _planned("sia_vc", "sia_vc:SiaVc", "virtual clocks: nobody ends later than in its own pool", asks=(FUTURE,)),
    _lends(
        *("sia_risk", "sia_risk:SiaRisk", "sia that prices what lending may cost the lender", SiaRiskSettings),
        local=BLOCKS,
        paper="ours, after SIA",
    ),
    _planned(
        *("sia_plan", "sia_plan:SiaPlan", "early starts by sampled futures, due ones by virtual clocks"),
        settings=SiaPlanSettings,
        asks=SIA_ASKS,
        paper="ours, after SIA",
    ),
    _lends(
        *("sia_preempt", "sia_preempt:SiaPreempt", "sia that stops jobs which allow it", SiaPreemptSettings),
        preempts=True,
        local=Local("cells.recall:RecallPlacer", PartSettings),
    ),
    _planned("milp", "milp.policy:Milp", "the best schedule of the whole trace", MilpSettings, asks=(FUTURE,)),
    _planned(
        *("easy", "backfill:Easy", "EASY: a reservation for the head by time limits, others behind it"),
        settings=BackfillSettings,
        needs=(TIME_LIMITS,),
        paper="Lifka (JSSPP 1995), Slurm",
    ),
    _planned(
        *("easy_forecast", "backfill:EasyForecast", "easy by forecast run times, where these are shorter than limits"),
        settings=BackfillSettings,
        asks=(DURATIONS,),
        paper="Tsafrir et al. (TPDS 2007)",
    ),
    _planned(
        *("conservative_backfill", "backfill:Conservative", "a reservation by time limits for every waiting job"),
        settings=ReservationSettings,
        needs=(TIME_LIMITS,),
        paper="Mu'alem, Feitelson (TPDS 2001), Slurm",
    ),
    _spec(
        *("as_recorded", "pool_rules:AsRecorded", "each job starts when the trace says that it did"),
        needs=(STARTS,),
        asks=(FUTURE,),
        not_local="it starts jobs whatever nodes are free",
        paper="",
    ),
)
