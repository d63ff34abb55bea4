"""The cases: topics of commands that share inputs, which other commands make.

Commands are typed in a folder of their own, so that files go by bare names; `inputs.TEXTS` lies there. Every draw has
its seed, and what a default may become one day (sources of forecasts, baselines) is said in the command.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Topic:
    """Commands that share inputs.

    Attributes
    ----------
    words : what each of them begins with
    cases : name -> the rest of it
    made : commands that make the inputs, typed once whatever topics share them
    slow, data : whether its cases take long, and need the real traces of JOBCAST_DATA, which stands as `{data}`
    long : cases of it that take long, while shorter ones ask the same policy
    close : how much numbers may differ, relative
    """

    words: str
    cases: Mapping[str, str]
    made: tuple[str, ...] = ()
    slow: bool = False
    data: bool = False
    close: float = 1e-9
    long: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """One command of a topic."""

    name: str
    words: str
    topic: Topic
    slow: bool


SIA = "trace generate sia --out sia.csv --pools-out sia-pools.csv --seed 1 --set days=1.2"
CAMPUS = (
    "trace generate campus --out campus.parquet --pools-out campus-pools.csv --seed 2 --set weeks=1 --set pools=3 "
    "--set jobs=900 --set widest=8 --set load_low=0.9 --set load_high=1.1"
)
LIMITED = "trace enrich campus.parquet --facts limits --seed 1 --out limited"
ELASTIC = (
    "trace generate gavel-elastic --out elastic.csv --seed 1 --set jobs=80 --set gpus=16 --set load=0.9 "
    "--set models=resnet,bert"
)
AUTOML = "trace generate automl --out apps.csv --seed 2 --set apps=60 --set halving=true"
GAVEL = (
    "trace generate gavel --out training.csv --regimes-out regimes.csv --seed 1 --set throughputs=throughputs.csv "
    "--set jobs=24 --set gpus=8 --set contention=2.5 --set longest_h=1 --set mode_shares=0.2,0.4,0.4"
)
MLFS = (
    "trace generate mlfs --out tasks.jobs.parquet --tasks-out tasks.parquet --curves-out curves.parquet --seed 3 "
    "--set jobs=40 --set gpus=8 --set widths=1,2,4 --set epochs=5,20 --set load=0.15 --set longest_h=6 "
    "--set arrivals=sia.csv"
)
ANDREAS = (
    "trace generate andreas --out energy.parquet --profiles-out profiles.csv --cluster-out nodes.yaml --seed 1 "
    "--set nodes=4"
)
ARMIDA = "trace generate armida --out armida.parquet --profiles-out armida.csv --cluster-out armida.yaml"
SPLIT = "2024-01-05"
LEARN = f"--trace campus.parquet --until {SPLIT} --min-jobs 50"
TRAINED = (
    CAMPUS,
    f"train will-jobs-arrive {LEARN} --algorithm lightgbm",
    f"train will-jobs-arrive {LEARN} --algorithm logistic",
    f"train new-load {LEARN} --algorithm sliding-max",
    f"train job-duration {LEARN} --algorithm tag-pool-width",
)

SHOCKWAVE = "--gpus 6 --limit 14 --policy shockwave --set window=5 --set time_limit_s=600"
TABLES = "--set throughputs=throughputs.csv --set regimes=regimes.csv"
TASKS = "--set tasks=tasks.parquet --set curves=curves.parquet"
GREEDY = "--policy andreas --forecasts oracle --set max_iterations=60"
SPEEDUPS = "--gpus 16 --set speedups=speedups.csv --baseline none --predict"
TYPES = "--cluster types.yaml --set speedups=typed-speedups.csv --baseline none --predict"

FAST: Mapping[str, Topic] = {
    "pools": Topic(
        "simulate --trace sia.csv --pools sia-pools.csv --baseline fcfs",
        {
            "fcfs": "--policy fcfs",
            "ssf": "--policy ssf --forecasts oracle",
            "ssf backfill": "--policy ssf --forecasts oracle --set backfill=true",
            "sjf": "--policy sjf --forecasts oracle",
            "gssf": "--policy gssf --forecasts oracle",
            "gssf noisy": "--policy gssf --forecasts noisy:0.4 --seed 5",
            "mmfs": "--policy mmfs",
            "mmfs strict": "--policy mmfs --set strict=true",
            "karma": "--policy karma",
            "karma settings": "--policy karma --set alpha=0.8 --set credits_h=2 --set quantum_s=600",
            "themis_np": "--policy themis_np --forecasts oracle",
            "themis_np filter": "--policy themis_np --forecasts oracle --set filter=0.3",
            "hived": "--policy hived",
            "sia": "--policy sia --forecasts oracle",
            "sia settings": "--policy sia --forecasts oracle --set windows_min=5,60 --set slack=0.2 --set order=narrow",
            "sia tick": "--policy sia --forecasts oracle --set tick_s=900 --set order=shortest",
            "sia switches": "--policy sia --forecasts oracle --set switches=switches.csv",
            "sia conservative": "--policy sia --forecasts conservative",
            "sia random": "--policy sia --forecasts random --seed 3",
            "sia noisy": "--policy sia --forecasts noisy:0.3 --seed 4",
            "sia mixed": "--policy sia --forecasts mixed:arrivals=random,durations=noisy:0.2 --seed 2",
            "sia_vc": "--policy sia_vc --forecasts oracle",
            "sia_risk": "--policy sia_risk --forecasts oracle",
            "sia_risk random": "--policy sia_risk --forecasts random --set budget_min=60 --set relief_min=2",
            "sia_plan": "--policy sia_plan --forecasts oracle",
            "sia_preempt": "--policy sia_preempt --forecasts oracle --set preemptible_share=0.5 --set resume_s=300",
            "sia_preempt random": "--policy sia_preempt --forecasts random --set preemptible_share=0.3 --seed 1",
            "warm-up": "--policy gssf --forecasts oracle --warmup 0.4",
            "window": "--policy sia --forecasts oracle --from 2024-01-01T06:00:00Z --until 2024-01-02 --limit 60",
        },
        (SIA,),
    ),
    "grid": Topic(
        "simulate --trace grid.csv --pools grid-pools.csv --baseline fcfs --forecasts oracle --set time_limit_s=600",
        {"milp": "--policy milp --set grid_s=600", "milp exact": "--policy milp --set grid_s=600 --set exact=true"},
    ),
    "flat": Topic(
        "simulate --trace sia.csv --gpus 24",
        {
            "fcfs": "--policy fcfs --baseline fcfs",
            "gssf": "--policy gssf --forecasts oracle --baseline fcfs",
            "srpt": "--policy srpt --forecasts oracle --baseline none",
            "las": "--policy las --baseline none",
            "gandiva_fair": "--policy gandiva_fair --baseline none --set restart_s=0 --set round_s=600",
        },
        (SIA,),
    ),
    "servers": Topic(
        "simulate --trace sia.csv --baseline fcfs --set locality=true",
        {
            "fcfs": "--policy fcfs --cluster eights.yaml",
            "hived": "--policy hived --cluster eights.yaml",
            "hived pools": "--policy hived --pools sia-pools.csv",
            "sia": "--policy sia --forecasts oracle --cluster eights.yaml",
            "sia cell": "--policy sia --forecasts oracle --cluster eights.yaml --set apart=cell",
            "sia none": "--policy sia --forecasts random --cluster eights.yaml --set apart=none --set follow=false",
            "sia noisy": "--policy sia --forecasts noisy:0.3 --pools sia-pools.csv --seed 2",
        },
        (SIA,),
    ),
    "registry": Topic(
        f"simulate --trace campus.parquet --pools campus-pools.csv --from {SPLIT} --baseline fcfs",
        {
            "sia": "--policy sia --forecasts registry",
            "sia versions": "--policy sia --forecasts registry:will-jobs-arrive=2,new-load=1,job-duration=1",
            "sia mixed": "--policy sia --forecasts mixed:arrivals=registry",
            "sia_risk": "--policy sia_risk --forecasts registry",
            "sia_plan": "--policy sia_plan --forecasts registry",
            "sia_preempt": "--policy sia_preempt --forecasts registry --set preemptible_share=0.4",
            "gssf": "--policy gssf --forecasts registry",
            "loop fcfs": "--policy fcfs --closed-loop",
            "loop mmfs": "--policy mmfs --closed-loop",
            "loop gssf": "--policy gssf --forecasts oracle --closed-loop --max-think 1800",
            "loop sia": "--policy sia --forecasts registry --closed-loop",
            "loop sia random": "--policy sia --forecasts random --seed 1 --closed-loop",
        },
        TRAINED,
    ),
    "backtest": Topic(
        f"backtest --trace campus.parquet --pools campus-pools.csv --from {SPLIT} --jobs 1",
        {
            "sources": "--policies mmfs,sia --forecasts registry,oracle,random,conservative",
            "versions": "--policies sia,gssf --forecasts registry,registry:challenger",
            "settings": "--policies fcfs,sia --forecasts oracle --set slack=0.2 --windows 2",
        },
        TRAINED,
    ),
    "backfill": Topic(
        "simulate --trace limited/jobs.parquet --baseline none --cluster accounts.yaml",
        {
            "easy": "--policy easy --set priority=fifo",
            "easy priority": "--policy easy --set bf_max_job_test=20",
            "easy_forecast": "--policy easy_forecast --forecasts noisy:0.3",
            "conservative": "--policy conservative_backfill --set priority=fifo",
            "conservative renewed": "--policy conservative_backfill --set reservations=renewed",
        },
        (CAMPUS, LIMITED),
    ),
    "rounds": Topic(
        f"simulate --trace training.csv --baseline none {TABLES}",
        {
            "shockwave": f"{SHOCKWAVE} --forecasts restatement",
            "shockwave greedy": f"{SHOCKWAVE} --forecasts greedy --set k=2 --set lam=5",
            "shockwave lazy": f"{SHOCKWAVE} --forecasts oracle --set mode=lazy",
            "shockwave beside": f"{SHOCKWAVE} --forecasts bayes --set solve=beside",
            "ossp": "--gpus 8 --policy ossp --forecasts restatement",
            "allox": "--gpus 8 --policy allox --forecasts restatement",
            "themis_filter": "--gpus 8 --policy themis_filter --forecasts bayes",
            "gavel": "--gpus 8 --policy gavel",
            "gavel water": "--gpus 8 --policy gavel --set fill=water",
            "mst": "--gpus 8 --policy mst",
            "mst steps": "--gpus 8 --policy mst --set unit=steps",
            "gandiva_fair": "--gpus 8 --policy gandiva_fair",
            "gandiva_fair lottery": "--gpus 8 --policy gandiva_fair --set lottery=true --set seed=3",
            "srpt": "--gpus 8 --policy srpt --forecasts oracle",
            "longest_then_srpt": "--gpus 8 --policy longest_then_srpt --forecasts oracle",
            "srpt noise": "--gpus 8 --policy srpt --forecasts greedy --set noise=0.5 --set noise_seed=2",
            "srpt nodes": "--policy srpt --forecasts restatement --cluster fours.yaml",
            "srpt beside": "--gpus 8 --policy srpt --forecasts restatement --set solve=beside",
            "las": "--gpus 8 --policy las",
            "las mechanism": "--gpus 8 --policy las --set mechanism=gavel",
            "gandiva_fair mechanism": "--gpus 8 --policy gandiva_fair --set mechanism=gavel",
            "gavel mechanism": "--gpus 8 --policy gavel --set mechanism=gavel",
            "allox mechanism": "--gpus 8 --policy allox --forecasts oracle --set mechanism=gavel",
            "fcfs": "--gpus 8 --policy fcfs",
        },
        (GAVEL,),
        long=("shockwave",),
    ),
    "goodput": Topic(
        "simulate --trace scaling.csv --baseline none --set step_times=step-times.csv "
        "--set training_curves=noise-curves.csv",
        {
            "pollux": "--policy pollux --gpus 16",
            "pollux nodes": "--policy pollux --cluster fours.yaml --set p=-1",
            "pollux asked": "--policy pollux --gpus 12 --set scale_to=asked --set round_s=30",
            "srpt": "--policy srpt --forecasts oracle --gpus 12",
        },
        close=1e-6,  # seconds a step are fitted: what no step measured hangs on how the processor adds
    ),
    "elastic": Topic(
        "simulate --trace elastic.csv",
        {
            "pcs": f"--policy pcs --set config=wfq.json {SPEEDUPS}",
            "pcs monotone": f"--policy pcs --set config=wfq.json --set caps=monotone {SPEEDUPS}",
            "pcs noise": f"--policy pcs --set config=wfq.json --set noise=0.4 --set noise_seed=7 {SPEEDUPS}",
            "pcs types": f"--policy pcs --set config=wfq.json --set whole_gpus=true {TYPES}",
            "fifo": f"--policy fifo {SPEEDUPS}",
            "fifo types": f"--policy fifo {TYPES} --set preempt_s=60",
            "srsf": "--policy srsf --gpus 16 --set speedups=speedups.csv --baseline fifo --predict",
            "srsf preempt": f"--policy srsf --set preempt_s=120 {SPEEDUPS}",
            "srsf noise": f"--policy srsf --set noise=0.6 {SPEEDUPS}",
            "las": f"--policy las {SPEEDUPS}",
            "afs": f"--policy afs {SPEEDUPS}",
            "afs types": f"--policy afs {TYPES}",
            "themis": f"--policy themis {SPEEDUPS}",
            "themis lease": f"--policy themis --set lease_s=600 --set pending_lease=false {SPEEDUPS}",
            "fair": "--policy fair --gpus 16 --set speedups=speedups.csv --baseline srsf",
            "fair whole": "--policy fair --set whole_gpus=true --cluster types.yaml --set speedups=typed-speedups.csv "
            "--baseline none",
        },
        (ELASTIC,),
    ),
    "stages": Topic(
        "simulate --trace apps.csv --gpus 16 --baseline fifo --predict",
        {name: f"--policy {name}" for name in ("pcs", "srsf", "afs", "themis", "fair")},
        (AUTOML,),
    ),
    "search": Topic(
        "search pcs --trace elastic.csv --gpus 16 --set speedups=speedups.csv --samples 2 --test-samples 1 --jobs 1 "
        "--sample-jobs 60 --out front.parquet",
        {
            "spea2": "--evaluations 24 --objectives jct:mean,error:p90 --space parameters --seed 1",
            "nsga2 raw": "--evaluations 24 --algorithm nsga2 --space raw --seed 2",
        },
        (ELASTIC,),
    ),
    "tasks": Topic(
        f"simulate --trace tasks.jobs.parquet {TASKS}",
        {
            "mlfs": "--gpus 6 --policy mlfs --forecasts oracle --baseline tiresias",
            "mlf_h": "--gpus 6 --policy mlf_h --forecasts oracle --baseline none",
            "mlf_h queue": "--gpus 6 --policy mlf_h --forecasts oracle --baseline none --set evict=queue --set h_r=0.7",
            "mlf_c": "--gpus 6 --policy mlf_c --forecasts oracle --baseline none",
            "mlf_c noisy": "--gpus 6 --policy mlf_c --forecasts noisy:0.5 --baseline none --seed 5",
            "mlf_c registry": "--gpus 6 --policy mlf_c --forecasts registry --baseline none",
            "slaq": "--gpus 6 --policy slaq --forecasts oracle --baseline none",
            "tiresias": "--gpus 6 --policy tiresias --baseline none",
            "srtf": "--gpus 6 --policy srtf --baseline none",
            "tiresias gittins": "--gpus 6 --policy tiresias --baseline none --set index=gittins",
            "gandiva": "--gpus 6 --policy gandiva --baseline none",
            "graphene": "--gpus 6 --policy graphene --baseline none",
            "borg_fair": "--gpus 6 --policy borg_fair --baseline none",
            "hypersched": "--gpus 6 --policy hypersched --forecasts oracle --baseline none",
            "mlfs hosts": "--cluster hosts.yaml --policy mlfs --forecasts oracle --baseline none --set fluctuation=0.1",
        },
        (SIA, MLFS, "train accuracy-curve --trace accuracy-curves.csv"),
        long=("mlf_c noisy", "mlfs hosts"),
    ),
    "energy": Topic(
        "simulate --trace energy.parquet --cluster nodes.yaml --set profiles=profiles.csv "
        "--set segments=segments.parquet",
        {
            "andreas": f"{GREEDY} --baseline edf",
            "andreas seed": f"{GREEDY} --set objective=equation_1 --baseline none --seed 4 --set restart_s=60 "
            "--set snapshot_epochs=3",
            "andreas thorough": f"{GREEDY} --baseline none --set thorough=true",
            "andreas caps": f"{GREEDY} --baseline none --set caps=true --set force_nodes=true",
            "andreas noisy": "--policy andreas --forecasts noisy:0.5 --seed 1 --set max_iterations=60 --baseline none",
            "andreas registry": "--policy andreas --forecasts registry --allow-overlap --set max_iterations=60 "
            "--baseline none",
            "edf": "--policy edf --forecasts oracle --baseline none",
            "edf period": "--policy edf --forecasts oracle --baseline none --set on_events=false --set period_s=1800",
            "edf profile": "--policy edf --forecasts oracle --baseline none --set profile_s=60 --set restart_s=10",
            "ps": "--policy ps --forecasts oracle --baseline none --set price_eur_kwh=0.3 --set pue=1.1",
            "fifo": "--policy fifo --forecasts oracle --baseline none",
        },
        (ANDREAS, "profiles import throughputs.csv --out rates.sqlite", "train epoch-time --trace rates.sqlite"),
    ),
    "armida": Topic(
        "simulate --trace armida.parquet --cluster armida.yaml --set profiles=armida.csv "
        "--set segments=segments.parquet",
        {
            "exact": "--policy exact --forecasts oracle --baseline none --set time_limit_s=600",
            "andreas": "--policy andreas --forecasts oracle --baseline none --set max_iterations=200",
        },
        (ARMIDA,),
    ),
}

PHILLY = "trace convert philly {data}/philly/philly_jobs.csv --out philly.parquet"
PCS = "trace convert pcs {data}/pcs/trace_0e4a51.csv --out pcs.parquet"
PUBLISHED_JOBS = "trace convert shockwave {data}/shockwave/120_jobs.trace --out shockwave.parquet"
PUBLISHED = "--set throughputs={data}/shockwave/throughputs_tacc.csv --set regimes={data}/shockwave/regimes_120"
MLFS_PHILLY = (
    "trace generate mlfs --out week.jobs.parquet --tasks-out week.tasks.parquet --curves-out week.curves.parquet "
    "--seed 1 --set jobs=300 --set arrivals=philly.parquet"
)
ANDREAS_LARGE = (
    "trace generate andreas --out campaign.parquet --profiles-out campaign.csv --cluster-out campaign.yaml --seed 300 "
    "--set nodes=20"
)
REAL: Mapping[str, Topic] = {
    "philly": Topic(
        "simulate --trace philly.parquet --pools {data}/philly/pools_nov06_nov26.csv --pools-only --from 2017-11-06 "
        "--limit 1500 --baseline fcfs",
        {
            "fcfs": "--policy fcfs",
            "mmfs": "--policy mmfs",
            "sia": "--policy sia --forecasts oracle",
            "sia random": "--policy sia --forecasts random",
            "sia_vc": "--policy sia_vc --forecasts oracle",
            "sia_risk": "--policy sia_risk --forecasts noisy:0.2",
            "sia locality": "--policy sia --forecasts oracle --set locality=true",
            "hived locality": "--policy hived --set locality=true",
        },
        (PHILLY,),
        slow=True,
        data=True,
    ),
    "published pcs": Topic(
        "simulate --trace pcs.parquet --gpus 64 --limit 301 --baseline none --predict "
        "--set speedups={data}/pcs/speedups.csv",
        {
            "pcs": "--policy pcs --set config=balanced.json",
            **{name: f"--policy {name}" for name in ("fifo", "srsf", "las", "afs", "themis", "fair")},
        },
        (PCS,),
        slow=True,
        data=True,
    ),
    "published shockwave": Topic(
        "simulate --trace shockwave.parquet --gpus 32 --baseline none",
        {
            "shockwave": f"--policy shockwave --forecasts restatement --set time_limit_s=600 {PUBLISHED}_planned.csv",
            "ossp": f"--policy ossp --forecasts restatement {PUBLISHED}_planned.csv",
            "gandiva_fair": f"--policy gandiva_fair --set mechanism=gavel {PUBLISHED}_executed.csv",
            "gavel": f"--policy gavel --set mechanism=gavel {PUBLISHED}_executed.csv",
        },
        (PUBLISHED_JOBS,),
        slow=True,
        data=True,
    ),
    "measured": Topic(
        "simulate --trace measured.csv --baseline none --set step_times={data}/curves/step_times.csv "
        "--set training_curves={data}/curves/training_curves.csv",
        {
            "pollux": "--policy pollux --gpus 16",
            "pollux nodes": "--policy pollux --cluster fours.yaml",
            "las": "--policy las --gpus 16",
        },
        data=True,
        close=1e-3,  # as above: fits of measured steps differ in the fourth digit where the processor has AVX-512
    ),
    "philly tasks": Topic(
        "simulate --trace week.jobs.parquet --gpus 80 --baseline none --set tasks=week.tasks.parquet "
        "--set curves=week.curves.parquet",
        {name: f"--policy {name} --forecasts oracle" for name in ("mlfs", "mlf_h", "slaq")}
        | {name: f"--policy {name}" for name in ("tiresias", "gandiva", "graphene")},
        (PHILLY, MLFS_PHILLY),
        slow=True,
        data=True,
    ),
    "campaign": Topic(
        "simulate --trace campaign.parquet --cluster campaign.yaml --set profiles=campaign.csv --baseline none",
        {
            "andreas": "--policy andreas --forecasts oracle",
            "andreas thorough": "--policy andreas --forecasts oracle --set thorough=true --set max_iterations=200",
            "edf": "--policy edf --forecasts oracle",
        },
        (ANDREAS_LARGE,),
        slow=True,
    ),
}
TOPICS: Mapping[str, Topic] = {**FAST, **REAL}
CASES: tuple[Case, ...] = tuple(
    Case(f"{title}: {name}", f"{topic.words} {words}", topic, topic.slow or name in topic.long)
    for title, topic in TOPICS.items()
    for name, words in topic.cases.items()
)
