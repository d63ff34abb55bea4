"""What a server knows: the events so far, what the champions say about now, and what was promised."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jobcast.domain.bad_answers import BadAnswers
from jobcast.domain.errors import JobcastError
from jobcast.domain.horizons import horizon_label
from jobcast.domain.jobs import Pool
from jobcast.live.champions import ARRIVALS, LOADS, Champions, ChampionWatch
from jobcast.live.event_log import Event
from jobcast.live.forecasts import Asked, guarded, source_of
from jobcast.live.growing_history import Window
from jobcast.live.promises import Promises
from jobcast.live.server.access import Asker, Role
from jobcast.live.server.etas import Eta, Etas, Question
from jobcast.live.server.shadow import LEVELS, Shadow
from jobcast.live.slurm_side import SlurmSide
from jobcast.live.state import STALE_S, WEEK_S, LogReader, State
from jobcast.models.forecasts import GRID_S, RegistryForecasts
from jobcast.models.promise_ledger import END, START
from jobcast.models.registry import Registry

CHALLENGER = "challenger"
LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answers:
    """Forecasts of one instant.

    Attributes
    ----------
    pools : pool -> horizon -> figures
    versions : of the predictors that were asked, by name
    degraded : why some of them are conservative; empty where none is
    """

    pools: Mapping[str, Mapping[str, Mapping[str, Any]]]
    versions: Mapping[str, int]
    degraded: tuple[str, ...]


class Service:
    """Takes events and answers questions, from several threads.

    Parameters
    ----------
    known : of the cluster, with the log of events
    pools : of the cluster, with their quotas
    registry : of the champions; its home has the promise ledger
    clock : the instant now, seconds from the epoch
    policy : that futures are played under; see `etas.Basis.of`
    private : whether who may only read sees nothing of others' jobs
    advisor : None where nobody advises
    quotas : pools as they are now, looked up again and again; None: as given
    backfill : of `etas.Etas`
    stale_s : after which what is known of the cluster is old
    """

    def __init__(
        self,
        known: LogReader,
        pools: Sequence[Pool],
        registry: Registry,
        clock: Callable[[], float],
        policy: str = "",
        private: bool = False,
        advisor: SlurmSide | None = None,
        quotas: Callable[[], Sequence[Pool]] | None = None,
        backfill: bool = False,
        stale_s: float = STALE_S,
    ) -> None:
        self.stale_s = stale_s
        self.pools, self.clock, self.advisor, self._quotas = tuple(pools), clock, advisor, quotas
        self._private, self.known, self._lock = private, known, threading.Lock()
        self.watch = ChampionWatch(registry, self._shadow)
        self.challengers = ChampionWatch(registry, lambda predictors: None, CHALLENGER, needed=())
        self._held: tuple[tuple[Any, ...], Answers] | None = None
        self._unread = ""
        self.etas = Etas(self.pools, lambda: self.state, lambda: self.watch.current, clock, policy, backfill)
        self.promises, self.shadow = Promises(registry.home, clock(), LOG.warning), Shadow(self.pools)
        self.shadow.recall(self.state.record.taken, clock())
        for kind, learnt in ((START, self.etas.futures.starts), (END, self.etas.futures.ends)):
            learnt.tracker.known = self.promises.positions(kind, self.state)

    @property
    def state(self) -> State:
        """What is known now."""
        return self.known.state

    def take(self, events: Sequence[Event]) -> int:
        """Keep events; how many were new comes back, once they are kept for good."""
        return self.known.keep(events)

    def hear(self, job_id: str) -> None:
        """Look at the cluster where it may have a job that nobody has heard of."""
        if self.advisor is not None and self.state.job(job_id) is None:
            self.advisor.hear()

    def look(self) -> None:
        """Read what others have written to the log, look quotas and versions up, and ask these on trial."""
        self.known.read()
        self._look_quotas_up()
        self.watch.poll()
        self.challengers.poll()
        asked = {"champion": self.watch.current, CHALLENGER: self.challengers.current}
        scores = self.shadow.look(self.state, self.clock(), asked)
        if scores:
            self.take(scores)

    def _look_quotas_up(self) -> None:
        try:
            pools = self.pools if self._quotas is None else tuple(self._quotas())
        except JobcastError as error:  # a file that is being written; those of before stand
            if not self._unread:
                LOG.warning("quotas stay as they were: %s", error)
            self._unread = "quotas cannot be read, and stay as they were; the server's log tells more"
            return
        self._unread = ""
        if pools != self.pools:
            self.pools = self.etas.pools = self.shadow.pools = pools

    def refresh(self) -> float:
        """Play futures, and see what became of promises; the CPU seconds that futures took."""
        took_s = self.etas.refresh()
        self.promises.look(self.state, self.clock())
        return took_s

    def age_s(self, now_s: float) -> float:
        """Seconds since something was last known of the cluster."""
        return now_s - self.state.known_s

    def degraded(self, now_s: float) -> tuple[str, ...]:
        """Why answers about jobs are worse than they might be; empty where they are not."""
        known = (self._stale(now_s), self.watch.trouble, self._unread, self.etas.trouble, self.etas.doubt)
        return tuple(one for one in known if one)

    def sure(self, now_s: float) -> bool:
        """Whether champions answer, the cluster was just heard of and futures were played: what hooks tell unasked."""
        return bool(self.watch.current.versions) and not self._stale(now_s) and not self.etas.trouble

    def eta(self, job_id: str, asker: Asker) -> Eta | None:
        """When a job starts and ends, which is a promise; None for one that the asker knows nothing of."""
        eta = self.etas.of(job_id) if self.may_see(job_id, asker) else None
        if eta is not None and eta.answer is not None:
            job, answer, basis = eta.known.job, eta.answer, eta.basis
            about = {"job_id": job.job_id, "submit_s": job.submit_s, "pool": job.pool, "gpus": job.gpus}
            about |= {"at_s": eta.now_s, "policy": basis.policy, "version": basis.version, "sizes": basis.sizes}
            spreads = {START: answer.start, END: answer.end}
            told = {kind: one for kind, one in spreads.items() if one is not None}
            self.promises.tell(about, told, self.etas.rounds)
        note = "" if eta is None or self.advisor is None else self.advisor.waits_for(job_id)
        return eta if eta is None or not note else replace(eta, why="; ".join(filter(None, (note, eta.why))))

    def asked(self, question: Question, asker: Asker) -> Eta | None:
        """When a job would start and end that is not submitted yet: no promise; see `Etas.asked`."""
        # How long others' jobs run is theirs, too.
        return self.etas.asked(question if self.sees_all(asker) else question._replace(user=asker.user))

    def may_see(self, job_id: str, asker: Asker) -> bool:
        """Whether somebody may know anything of a job."""
        known = self.state.job(job_id)
        return self.sees_all(asker) or (known is not None and known.job.user == asker.user != "")

    def parts(self, job_id: str, asker: Asker) -> list[str]:
        """Tasks of a job array, or components of a job, that have not ended: who submits them is told one number."""
        names = (f"{job_id}_", f"{job_id}+")
        return [name for name in self.state.active if name.startswith(names) and self.may_see(name, asker)]

    def sees_all(self, asker: Asker) -> bool:
        """Whether somebody may know of everybody's jobs."""
        return not self._private or asker.role >= Role.ADVISE

    def held(self, answers: Answers) -> dict[str, dict[str, float]]:
        """GPUs by pool.

        Of its quota; held by its jobs, and of these lent to them beyond it; idle of the quota, and of these kept back
        for who is forecast to arrive within the shortest window; asked for by jobs that wait.
        """
        pools = [pool for pool in self.pools if pool.name in answers.pools]
        found = {pool.name: dict.fromkeys(("held", "lent", "pending"), 0) for pool in pools}
        for one in self.state.active.values():
            if one.came and one.facts["pool"] in found:
                of, gpus = found[one.facts["pool"]], one.facts["gpus"]
                of["held" if one.runs else "pending"] += gpus
                of["lent"] += 0 if one.dedicated else gpus
        return {pool.name: _gpus(pool, found[pool.name], answers.pools[pool.name]) for pool in pools}

    def forecasts(self, now_s: float) -> Answers:
        """Arrivals and loads of all pools and horizons, as of an instant."""
        state, champions = self.state, self.watch.current
        stale = self._stale(now_s)
        key = (state.number, now_s // GRID_S, stale, tuple(champions.versions.items()), self.watch.trouble, self.pools)
        held = self._held
        # One reference, replaced as a whole: no lock for who only reads.
        if held is not None and held[0] == key:
            return held[1]
        with self._lock:
            result = self._asked(state, champions, stale, now_s)
            self._held = (key, result)
            return result

    def waits_s(self, now_s: float) -> list[float]:
        """Seconds that jobs which started within the last 7 days had waited."""
        return self.state.waits_s(now_s - WEEK_S, now_s)

    def _stale(self, now_s: float) -> str:
        stale = self.age_s(now_s) > self.stale_s
        return f"nothing was heard of the cluster for more than {self.stale_s:g} s" if stale else ""

    def _asked(self, state: State, champions: Champions, stale: str, now_s: float) -> Answers:
        predictors, known = champions.predictors, self.pools
        why = [one for one in (stale, self.watch.trouble) if one]
        tally = BadAnswers()
        nobody = stale or not predictors
        source = None if nobody else self._source(state, predictors, now_s)
        forecasts = guarded(Asked(source, {}, tuple(why)), known, now_s, tally)
        pools = {pool.name: _of_pool(forecasts, pool.name) for pool in known}
        bad = {} if nobody else {kind: one for kind, one in tally.figures().items() if one["reasons"]}
        for kind, one in bad.items():
            # What a predictor raised may name files, which readers need not know.
            LOG.warning("%s: %s", kind, one["first"])
        told = (*why, *(f"{kind}: {', '.join(one['reasons'])}" for kind, one in bad.items()))
        return Answers(pools, champions.versions, told)

    def _source(self, state: State, predictors: Mapping[str, Any], now_s: float) -> RegistryForecasts:
        asked = {name: predictors[name] for name in (ARRIVALS, LOADS)}
        return source_of(Window(self.pools, state.past, now_s), asked, self.pools)

    def _shadow(self, predictors: Mapping[str, Any]) -> None:
        """Ask predictors about now, unguarded. Raises what they raise."""
        now_s = self.clock()
        source = self._source(self.state, predictors, now_s)
        source.advance(now_s)
        for pool in self.pools:
            _of_pool(source, pool.name)


def _gpus(pool: Pool, jobs: Mapping[str, float], windows: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    idle = max(0.0, pool.quota - (jobs["held"] - jobs["lent"]))
    first = next(iter(windows.values()), {})
    reserved = min(idle, first["load_gpus"]) if first.get("arrives") else 0.0
    return {"quota": pool.quota, **jobs, "idle": idle, "reserved": reserved}


def _of_pool(source: Any, pool: str) -> dict[str, dict[str, Any]]:
    return {horizon_label(horizon): _figures(source, pool, 60.0 * horizon) for horizon in source.horizons_min}


def _figures(source: Any, pool: str, horizon_s: float) -> dict[str, Any]:
    quantiles = source.load_quantiles(pool, horizon_s, LEVELS)
    return {
        "probability": source.arrival_probability(pool, horizon_s),
        "arrives": source.will_jobs_arrive(pool, horizon_s),
        "load_gpus": source.new_load(pool, horizon_s),
        "load_quantiles_gpus": {f"{level:g}": gpus for level, gpus in zip(LEVELS, quantiles, strict=True)},
    }
