"""Promotion: a candidate beside the version that it would replace, on data that neither saw, before the alias moves."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jobcast import __version__
from jobcast.domain.errors import PromotionError, RegistryError, TrainingError
from jobcast.models.registry import Registry, open_registry
from jobcast.models.registry.cards import ModelVersion
from jobcast.models.registry.evaluations import log_evaluation
from jobcast.models.registry.references import CHAMPION as CHAMPION_ALIAS
from jobcast.pipelines.experiments.seen_data import refuse_overlap
from jobcast.pipelines.lifecycle.comparison import CANDIDATE, CHAMPION, RULES, compare_rows, why_worse
from jobcast.pipelines.lifecycle.forecast_rows import Blocks, Sample
from jobcast.pipelines.lifecycle.job_rows import gain_rows
from jobcast.pipelines.lifecycle.learning_curves import refuse_trained
from jobcast.pipelines.lifecycle.predictors.traces import scored_pools, stretch_of
from jobcast.pipelines.lifecycle.replay_judges import Contest, Judge, Replayed, Window, replay_both
from jobcast.pipelines.lifecycle.standards import Standards, judged, standards_of
from jobcast.pipelines.report.console import Step
from jobcast.pipelines.report.files import to_json, write_json
from jobcast.pipelines.report.formatting import between, brief, iso, number, signed
from jobcast.pipelines.report.model_tables import made_from
from jobcast.traces.learning_curves import CurveTable
from jobcast.traces.owners import scratch_room
from jobcast.traces.profiles import ProfileTable
from jobcast.traces.splits import check_tests
from jobcast.traces.table import Trace

KIND = "promotion"
TAG = "promotion"
"""Tag of a version: what its comparison came to."""


def compare(
    registry: Registry,
    candidate: ModelVersion,
    champion: ModelVersion,
    window: Window,
    facts: Any = None,
    progress: Step | None = None,
) -> dict[str, Any]:
    """Figures of both versions, and replays of the policies that judge their predictor with each.

    Parameters
    ----------
    facts : table of the trace's jobs, for a predictor that learns from one

    Raises ConfigError, OverlapError, TrainingError for a window that cannot be used, RegistryError for versions
    that cannot be compared.
    """
    life = standards_of("models promote --trace", candidate.name)
    trace = life.jobs(window.trace)
    # Others that the judges ask count as well: none of them may have seen the window.
    contest = Contest.of(registry, candidate, champion, life.judges)
    why = "--from (the latest end of a training, where it is not given) must lie before --until (the end of the trace)"
    begin, end = stretch_of(trace, window.from_s, window.until_s, contest.unseen_from_s(trace), "compare on", why)
    sha256, allowed = trace.source.sha256, window.allow_overlap
    overlap = [refuse_overlap(version, begin, end, allowed, sha256) for version in (candidate, champion)]
    check_tests(trace, begin, end)
    known = trace.between(None, end)
    # Only who learns from pools knows some better than others.
    pools = _pools(known, candidate, champion) if life.by_pools else tuple(known.pools)
    sample = Sample(trace=known, from_s=begin, until_s=end, known_s=end, pools=pools, facts=facts, given=window.given)
    models = registry.load(candidate), registry.load(champion)
    # Learned policies forecast nothing: replays tell what they gain.
    forecast = () if life.rows is None else life.forecasts_of_both(models, sample)
    if forecast and not set(forecast[0]) & set(forecast[1]):
        ours, theirs = (", ".join(rows) for rows in forecast)
        raise RegistryError(
            f"{candidate} forecasts {ours} ahead, {champion} {theirs}: they share no horizon to compare; train with "
            "the same --horizons or promote without --trace"
        )
    # After the forecasts, which take seconds; replays take minutes.
    replays = _replays(life, contest, window, (begin, end), registry, progress)
    rows = forecast or _gained(life.judges[0], contest, replays)
    figures = compare_rows(rows[0], rows[1], (CANDIDATE, CHAMPION))
    return {
        "window": {"from": iso(begin), "until": iso(end)},
        "pools": list(pools),
        "figures": figures,
        "backtests": {policy: one.figures for policy, one in replays.items()},
        "rules": RULES,
        "reasons": [*why_worse(figures), *out_of_bounds(life, figures), *_worse_replays(replays)],
        "overlap_allowed": any([*overlap, *(one.overlap for one in replays.values())]),
        "simulated": bool(replays),
        **made_from(trace.source, (*trace.notes, *_left_out(contest, life)), trace.dropped),
    }


def out_of_bounds(life: Standards, figures: Mapping[str, Any]) -> list[str]:
    """In which ways a candidate's other figures lose more than they may, of `compare_rows`."""
    blocks = figures["blocks"].values()
    return [why for bound in life.bounds for one in blocks for why in bound.broken(one[CANDIDATE], one[CHAMPION])]


def compare_tables(
    registry: Registry, candidate: ModelVersion, champion: ModelVersion, table: Any, allow_overlap: bool = False
) -> dict[str, Any]:
    """Figures of both versions on a table without a calendar; nothing is replayed, for it has no jobs.

    Raises OverlapError where a version was trained on curves of the file, TrainingError where nothing can be scored.
    """
    life, versions = standards_of("models promote --trace", candidate.name), (candidate, champion)
    assert life.table is not None, "only who learns from tables is compared on them"
    overlap = [refuse_seen(registry, version, table, allow_overlap) for version in versions]
    rows = [life.table.rows(registry.load(version), table) for version in versions]
    check_rows(rows[0], table, life)
    figures = compare_rows(rows[0], rows[1], (CANDIDATE, CHAMPION))
    return {
        "figures": figures,
        "backtests": {},
        "rules": RULES,
        "reasons": why_worse(figures),
        "overlap_allowed": any(overlap),
        "simulated": False,
        **made_from(table, (*table.notes, f"no backtest: a file of {life.table.name} has no jobs to replay")),
    }


def refuse_seen(registry: Registry, version: ModelVersion, table: CurveTable | ProfileTable, allowed: bool) -> bool:
    """`refuse_trained` of curves; applications of profiles that were seen are forecast by twins that did not."""
    return isinstance(table, CurveTable) and refuse_trained(registry, version, table, allowed)


def check_rows(rows: Blocks, table: Any, life: Standards) -> None:
    """Raise a TrainingError where nothing of a file could be scored."""
    if life.table is not None and not any(len(block) for block in rows.values()):
        raise TrainingError(f"{table.path}: no {life.table.one} can be scored; give longer ones")


def _replays(
    life: Standards,
    contest: Contest,
    window: Window,
    span: tuple[float, float],
    registry: Registry,
    progress: Step | None,
) -> dict[str, Replayed]:
    """By judge, of those that can run."""
    able = [judge for judge in life.judges if not contest.missing(judge)]
    if not able:
        return {}
    experiment = window.experiment(*span, window.place(*span))
    how: dict[str, Any] = {"home": registry.home, "allow_overlap": window.allow_overlap, "progress": progress}
    return {judge.policy: replay_both(judge, contest, experiment, **how) for judge in able}


def _gained(judge: Judge, contest: Contest, replays: Mapping[str, Replayed]) -> list[Blocks]:
    """What a learned policy gained with each version."""
    if judge.policy not in replays:
        raise RegistryError(
            f"{contest.candidate}: {judge.policy} cannot be replayed, {', '.join(contest.missing(judge))} not trained "
            "yet; train it, or promote without --trace"
        )
    return [gain_rows(replays[judge.policy].runs[label]) for label in (CANDIDATE, CHAMPION)]


def _worse_replays(replays: Mapping[str, Replayed]) -> list[str]:
    """Each way in which a judge fares worse, with its name where there are several."""
    # One judge needs no name.
    several = len(replays) > 1
    return [
        f"{policy} {reason}" if several else reason
        for policy, one in replays.items()
        for reason in one.figures["reasons"]
    ]


def promote(
    name: str,
    number: int,
    alias: str,
    compare: Callable[[Registry, ModelVersion, ModelVersion], dict[str, Any]] | None,
    *,
    force: bool,
    home: Path,
) -> dict[str, Any]:
    """Move an alias to a version unless it did worse than the one that holds it; what to tell the user.

    A version that did worse is told by `promoted` = False; see `refuse`.

    Parameters
    ----------
    compare : figures of the version beside those of the one that holds the alias, else of the champion, with `reasons`
        why it is worse; None compares nothing
    """
    registry = open_registry(home)
    candidate = registry.resolve(name, number)
    result = {"model": name, "version": number, "alias": alias, "compared": False, "promoted": True, "forced": False}
    # A new alias has nobody to be compared with but the champion.
    held = alias if alias in registry.show(name).aliases else CHAMPION_ALIAS
    champion = None if compare is None else registry.resolve(name, held)
    # A version is not compared with itself.
    if compare is not None and champion is not None and champion.version != number:
        result |= {"compared": True, "against": champion.version, **compare(registry, candidate, champion)}
        result |= {"promoted": force or not result["reasons"], "forced": bool(force and result["reasons"])}
        # Kept whatever the verdict, and before the alias moves.
        _record(registry, candidate, result)
    if result["promoted"]:
        registry.promote(name, number, alias=alias)
    return {**result, "home": str(home), "jobcast": __version__}


def refuse(figures: Mapping[str, Any]) -> None:
    """Raise a PromotionError where the version was not promoted."""
    if figures["promoted"]:
        return
    window = figures.get("window")
    where = f"from {window['from']} to {window['until']}" if window else f"on {figures['inputs']['trace']['path']}"
    raise PromotionError(
        f"{figures['model']}:{figures['version']} is worse than {figures['alias']} {figures['against']} {where}: "
        f"{'; '.join(figures['reasons'])}; {figures['alias']} stays version {figures['against']}, "
        "--force promotes all the same"
    )


def _pools(trace: Trace, candidate: ModelVersion, champion: ModelVersion) -> tuple[str, ...]:
    """Pools that both have learnt from; the candidate's where there is none."""
    ours, theirs = (scored_pools(trace, one.train_from_s, one.train_until_s) for one in (candidate, champion))
    return tuple(pool for pool in ours if pool in theirs) or ours


def _left_out(contest: Contest, life: Standards) -> list[str]:
    return [
        f"no backtest of {judge.policy}: {', '.join(missing)} not trained yet"
        for judge in life.judges
        if (missing := contest.missing(judge))
    ]


def _record(registry: Registry, candidate: ModelVersion, figures: Mapping[str, Any]) -> None:
    """Keep a comparison as a tag of the version, and one on a window in MLflow too: a run beside the version's."""
    # Tables have no window: their file is told in its place.
    of = "window" if "window" in figures else "inputs"
    verdict = {key: figures[key] for key in ("alias", "against", "promoted", "forced", "reasons", of)}
    if of == "window":
        with scratch_room("promotion") as room:
            file = room / "comparison.json"
            write_json(file, figures)
            verdict["run_id"] = log_evaluation(registry.home, candidate, figures, [file], kind=KIND)
    registry.tag(candidate, {TAG: to_json(verdict).strip()})


LABEL_COLUMNS = 30
BACKTEST_ROWS: Mapping[str, str] = {
    "speedup_gmean": "speedup (geometric mean)",
    "slowed_pct": "jobs slowed (%)",
    "slowdown_total_min": "total slowdown (min)",
    "mean_jct_s": "mean JCT (s)",
}


def promotion_table(figures: Mapping[str, Any]) -> str:
    """What `models promote` says to a person; the last line says where the alias points."""
    lines = _compared(figures) if figures["compared"] else []
    if figures["forced"]:
        lines.append(f"worse, promoted by --force: {'; '.join(figures['reasons'])}")
    if figures["promoted"]:
        lines.append(f"{figures['model']}: {figures['alias']} is version {figures['version']}")
    return "\n".join(lines)


def _compared(values: Mapping[str, Any]) -> list[str]:
    figures, window = values["figures"], values.get("window")
    where = f"{window['from']} to {window['until']}" if window else values["inputs"]["trace"]["path"]
    lines = [f"{values['model']}, {where}, which neither saw"]
    if values["overlap_allowed"]:
        lines[0] = lines[0].replace("which neither saw", "WHICH A MODEL HAS SEEN (--allow-overlap)")
    lines.append(_row("", f"version {values['version']}", f"{values['alias']} {values['against']}", "difference"))
    for block, both in figures["blocks"].items():
        for name in judged(values["model"]).columns:
            ours, theirs = both[CANDIDATE].get(name), both[CHAMPION].get(name)
            extra = _interval(both["interval"]) if name == figures["figure"] else ""
            lines.append(_row(f"{block} {name}", brief(ours), brief(theirs), _change(ours, theirs) + extra))
    mean = signed(figures["difference"]) + _interval(figures["interval"])
    lines.append(_row(f"mean {figures['figure']}", "", "", mean))
    replays = [line for backtest in values["backtests"].values() for line in _backtest(backtest)]
    return [*lines, *replays, *values["notes"]]


def _backtest(backtest: Mapping[str, Any]) -> list[str]:
    ours, theirs, gains = backtest[CANDIDATE], backtest[CHAMPION], backtest["gains"]
    lines = [f"backtest of {backtest['policy']} on {ours['jobs']:,} jobs; quotas {backtest['quotas']}"]
    # What the judge bounds comes first; a figure that is told anyway is told once.
    bounded = {figure: bound["label"] for figure, bound in backtest["bounds"].items()}
    for key, label in {**bounded, **BACKTEST_ROWS}.items():
        lines.append(
            _row(label, number(ours.get(key)), number(theirs.get(key)), _change(ours.get(key), theirs.get(key)))
        )
    paired = f"{number(gains['ratio'])} ({between(gains['low'], gains['high'])})"
    lines.append(_row("times as fast, job by job", "", "", paired))
    lines += [f"dropped {count:,}: {why}" for why, count in backtest["dropped"].items() if count]
    return lines


def _row(label: str, ours: str, theirs: str, difference: str) -> str:
    return f"{label:<{LABEL_COLUMNS}}{ours:>14}{theirs:>14}  {difference}".rstrip()


def _change(ours: float | None, theirs: float | None) -> str:
    return "" if ours is None or theirs is None else signed(float(ours - theirs), brief)


def _interval(interval: Sequence[float] | None) -> str:
    return f" ({between(interval[0], interval[1], signed)})" if interval else ""
