"""An export: k-anonymous users, orders and lengths kept, no name left."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.clock import DAY_S, HOUR_S, WEEK_S
from jobcast.domain.errors import ConfigError, TraceError
from jobcast.domain.hardware import PoolsTable, Quota
from jobcast.traces.anonymise import DURATION_SHARE, SIGNATURE, anonymised, signatures
from jobcast.traces.generators import generate
from jobcast.traces.table import Trace
from jobcast.traces.table_files import write_trace
from tests.shared import refused

JITTER_S = 1800.0


@pytest.fixture(scope="module")
def campus() -> Trace:
    trace = generate("campus", 3, {"weeks": "2", "pools": "3", "jobs": "3000"})[0]
    start = trace.jobs["submit_time"] + pl.duration(seconds=100)
    jobs = trace.jobs.with_columns(
        start_time=start, account=pl.col("user"), nodes=pl.lit("gpu-node-07"), remark=pl.lit("x")
    )
    return replace(trace, jobs=jobs)


@pytest.mark.parametrize("k", [2, 5, 20])
def test_each_look_of_a_user_is_shared_by_k_or_the_user_is_many(campus, k):
    export = anonymised(campus, k=k, seed=1)
    looks = signatures(export.trace).with_columns(alike=pl.len().over(SIGNATURE))
    alone = looks.filter(~pl.col("user").str.starts_with("common-"))
    assert alone.filter(pl.col("alike") < k).is_empty()
    stands_for = [word for name, word in export.key["words"]["user"].items() if name.startswith("common")]
    assert len(stands_for) == export.done["common_users"]
    assert export.done["k_reached"]
    assert export.done["users_merged"] >= k * export.done["common_users"]
    assert export.done["users"] == campus.jobs["user"].n_unique()


@given(st.integers(0, 10_000), st.integers(2, 6), st.sampled_from([0.0, JITTER_S]))
def test_ties_between_pools_leave_nobody_alone(campus, seed, k, jitter_s):
    """Users of several pools, many with as many jobs in one as in another: by made-up words the order is another."""
    rng, few = np.random.default_rng(seed), campus.between(None, campus.submit_s[200])
    names = {
        name: pl.Series(rng.choice(list(values), len(few))) for name, values in (("user", "stuvwxyz"), ("pool", "abcd"))
    }
    export = anonymised(replace(few, jobs=few.jobs.with_columns(**names)), k=k, jitter_s=jitter_s, seed=seed)
    looks = signatures(export.trace).filter(~pl.col("user").str.starts_with("common-"))
    assert looks.with_columns(alike=pl.len().over(SIGNATURE)).filter(pl.col("alike") < k).is_empty()


def test_signature_by_hand(make_trace):
    week = 7 * DAY_S
    trace = make_trace(
        ("b", 4 * DAY_S, 1.0, 1),
        ("b", 4 * DAY_S + 7 * HOUR_S, 1.0, 6),
        ("a", 4 * DAY_S + 8 * HOUR_S, 1.0, 0),
        ("a", 4 * DAY_S + week, 1.0, 0),
        user=["u", "u", "u", "v"],
    )
    assert signatures(trace).rows() == [("u", "b", 2, 0, 1, 3), ("v", "a", 0, 0, 0, 1)]


def test_names_that_few_share_go_with_their_users(campus):
    """An account of one person would part the common user again."""
    export = anonymised(campus, k=50, seed=1)
    merged = export.trace.jobs.filter(pl.col("user").str.starts_with("common-"))
    assert merged.height == len(campus)
    assert merged["account"].is_null().all()
    assert merged["tag"].is_null().all()


def test_an_account_of_many_of_whom_one_is_merged_parts_nobody(make_trace):
    """Ten look alike, six do not and become one: of these one has the account of the ten."""
    users = [f"plain{one}" for one in range(10)] + ["star"] + [f"odd{one}" for one in range(5)]
    widths = [1] * 10 + [64] + [2 << one for one in range(5)]
    rows = [("p", 60.0 * at, 5.0, width) for at, width in enumerate(widths)]
    trace = make_trace(*rows, user=users, account=["physics"] * 11 + ["law"] * 5, qos=["normal"] * 16)
    made = anonymised(trace, k=5, jitter_s=0.0, seed=0).trace.jobs
    merged = made.filter(pl.col("user").str.starts_with("common-"))
    assert merged.height == 6
    assert merged["account"].is_null().all()
    assert merged["qos"].n_unique() == made["qos"].n_unique() == 1
    assert made["account"].drop_nulls().len() == 10


@given(st.data())
def test_what_is_left_of_names_parts_common_users_into_many(campus, data):
    k, few = data.draw(st.integers(2, 4)), campus.between(None, campus.submit_s[30])
    drawn = st.lists(st.sampled_from(["a", "b", "c", None]), min_size=len(few), max_size=len(few))
    names = {name: pl.Series(data.draw(drawn), dtype=pl.String) for name in ("account", "qos", "tag")}
    users = [f"user{at % 13}" for at in range(len(few))]
    # a width a user, so that all are rare, and no jitter, so that rows of the export are those of the trace
    widths = pl.Series([1 << (at % 13) for at in range(len(few))])
    trace = replace(few, jobs=few.jobs.with_columns(user=pl.Series(users), gpus=widths, pool=pl.lit("p"), **names))
    made = anonymised(trace, k=k, jitter_s=0.0, seed=0).trace.jobs.with_columns(was=pl.Series(users))
    merged = made.filter(pl.col("user").str.starts_with("common-"))
    assert merged.group_by("user", "account", "qos", "tag").agg(pl.col("was").n_unique())["was"].min() >= k


@given(st.integers(0, 10_000), st.sampled_from([0.0, 60.0, JITTER_S]), st.sampled_from(["weeks", "days", "hours"]))
def test_order_and_lengths(campus, seed, jitter_s, shift):
    few = campus.between(None, campus.submit_s[200])
    # a width a job, so that rows can be told
    marked = replace(few, jobs=few.jobs.with_columns(gpus=pl.int_range(1, len(few) + 1)))
    export = anonymised(marked, jitter_s=jitter_s, shift=shift, seed=seed)
    made = export.trace
    pools = {word: name for name, word in export.key["words"]["pool"].items()}
    for word, name in pools.items():
        its, own = made.of_pools([word]), marked.of_pools([name])
        assert its.gpus.tolist() == own.gpus.tolist()
        moved_s = its.submit_s - own.submit_s - export.key["shift_s"]
        assert np.abs(moved_s).max() <= jitter_s + 1e-5
        changed_s = np.abs(its.duration_s - own.duration_s)
        assert (changed_s <= np.minimum(jitter_s, DURATION_SHARE * own.duration_s) + 1e-5).all()
        assert its.start_s - its.submit_s == pytest.approx(own.start_s - own.submit_s, abs=1e-5)
    unit_s = {"weeks": WEEK_S, "days": DAY_S, "hours": HOUR_S}[shift]
    assert export.key["shift_s"] % unit_s == 0
    assert export.key["shift_s"] != 0


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_no_name_of_the_original_is_in_the_file(campus, suffix, tmp_path):
    pools = PoolsTable((Quota(campus.pools[0], 4), Quota("elsewhere", 2, 100.0)))
    export = anonymised(campus, pools, seed=2)
    file = tmp_path / f"shared{suffix}"
    write_trace(export.trace, file)
    text = file.read_bytes()
    names = {name for column in ("pool", "user", "tag", "account") for name in campus.jobs[column].unique()}
    assert not [name for name in (*names, "gpu-node-07", "remark", "campus") if name.encode() in text]
    assert export.done["dropped_columns"] == ["nodes", "remark"]
    assert export.pools is not None
    words = {quota.pool for quota in export.pools.quotas}
    assert export.key["words"]["pool"][campus.pools[0]] in words & set(export.trace.pools)
    assert {quota.from_s for quota in export.pools.quotas} == {-np.inf, 100.0 + export.key["shift_s"]}


def test_the_seed_is_a_secret_of_its_own_unless_given(campus):
    few = campus.between(None, campus.submit_s[100])
    assert anonymised(few, seed=4).trace.jobs.equals(anonymised(few, seed=4).trace.jobs)
    assert anonymised(few).key["seed"] != anonymised(few).key["seed"]


def test_limits_stay_above_run_times(campus):
    limited = replace(campus, jobs=campus.jobs.with_columns(time_limit_s=pl.col("duration") + 1.0, cores=pl.lit(5.0)))
    made = anonymised(limited, seed=0).trace.jobs
    assert (made["time_limit_s"] >= made["duration"]).all()
    assert made["cores"].unique().to_list() == [8.0]


@given(st.integers(0, 10_000))
def test_no_end_comes_before_its_start(campus, seed):
    """Also of elastic jobs, whose duration on one GPU is many times what lies between the two."""
    few = campus.between(None, campus.submit_s[100])
    ends = pl.col("start_time") + pl.duration(microseconds=pl.col("duration") * 1e6 / 16)
    made = anonymised(replace(few, jobs=few.jobs.with_columns(end_time=ends, min_gpus=pl.lit(1))), seed=seed).trace
    assert (made.end_s >= made.start_s).all()
    assert "end_time" in made.jobs.columns


def test_fewer_users_than_k_are_told(make_trace):
    rows = [("p", 60.0 * at, 5.0, 1) for at in range(4)]
    export = anonymised(make_trace(*rows, user=["one", "one", "two", None]))
    assert not export.done["k_reached"]
    assert export.trace.jobs["user"].drop_nulls().n_unique() == 1
    assert anonymised(make_trace(*rows)).done["users"] == 0


def test_nobody_is_common_alone_while_others_could_join(make_trace):
    """Five users of p look unlike one another, and one of q is left, whom they hide."""
    rows = [("p", 60.0 * at, 5.0, 2**at) for at in range(5)]
    export = anonymised(make_trace(*rows, ("q", 400.0, 5.0, 1), user=[*"abcde", "f"]), k=5, jitter_s=0.0)
    assert export.trace.jobs["user"].n_unique() == 1
    assert export.done["users_merged"] == 6
    assert export.done["common_users"] == 1
    assert export.done["k_reached"]


def test_mistakes(make_trace):
    trace = make_trace(("p", 0.0, 1.0, 1))
    for wrong, line in (
        ({"k": 1}, "k must be 2 or more"),
        ({"jitter_s": -1.0}, "jitter must be"),
        ({"shift": "years"}, "one of"),
    ):
        refused(ConfigError, line, anonymised, trace, **wrong)
    refused(TraceError, "no jobs to export", anonymised, trace.between(10.0, None))
