"""Which versions answer while a registry is away, or what it has cannot be read, and what is lent then."""

import pytest

from jobcast.domain.errors import RegistryError
from jobcast.live import champions
from jobcast.live.champions import ChampionWatch
from jobcast.live.forecasts import ChampionForecasts
from jobcast.live.recorded_jobs import ClusterRecord
from jobcast.models.registry.cards import ModelVersion


class Elsewhere:
    """A registry in memory that may be away, or lack files."""

    def __init__(self):
        self.number, self.away_since_s, self.damaged, self.empty = 1, None, False, False

    def resolve(self, name, alias):
        if name == champions.COMPLETIONS or self.empty:
            raise RegistryError("no such model")
        return ModelVersion(
            **{**dict.fromkeys(ModelVersion.__dataclass_fields__, ""), "name": name, "version": self.number}
        )

    def load(self, version):
        if self.damaged:
            raise RegistryError("its files are missing")
        return version

    def staleness(self):
        return {} if self.away_since_s is None else {"registry": {"seen_s": self.away_since_s}}


@pytest.fixture
def there():
    registry = Elsewhere()
    watch = ChampionWatch(registry, lambda _: None)
    assert watch.poll()
    return registry, watch


def test_a_registry_that_is_away_is_told_and_its_versions_stay(there):
    registry, watch = there
    registry.away_since_s = 1_800_000_000.0
    assert not watch.poll()
    assert watch.trouble == "the registry has not answered since 2027-01-15T08:00:00Z"
    assert set(watch.current.versions.values()) == {1}
    registry.away_since_s = None
    watch.poll()
    assert watch.trouble == ""


def test_a_registry_without_champions_is_not_called_away():
    registry = Elsewhere()
    registry.empty = True
    watch = ChampionWatch(registry, lambda _: None)
    assert not watch.poll()
    assert watch.trouble == "the registry has no champion that could answer (RegistryError)"
    registry.resolve = lambda name, alias: 1 / 0
    watch.poll()
    assert watch.trouble == "the registry cannot be asked (ZeroDivisionError)"


def test_nothing_new_is_lent_by_versions_of_a_registry_that_is_away(there):
    registry, watch = there
    registry.away_since_s = 0.0
    watch.poll()
    asked = ChampionForecasts(watch)(ClusterRecord(), [], 0.0)
    assert asked.source is None
    assert asked.versions == watch.current.versions
    assert asked.trouble == (watch.trouble,)


def test_versions_that_were_refused_are_tried_again_after_a_while(there, monkeypatch):
    registry, watch = there
    now_s = [100.0]
    monkeypatch.setattr(champions, "monotonic", lambda: now_s[0])
    registry.number, registry.damaged = 2, True
    watch.poll()
    assert watch.trouble.startswith("refused will-jobs-arrive:2")
    registry.damaged = False
    now_s[0] += champions.AGAIN_S - 1.0
    assert not watch.poll()
    assert watch.trouble.startswith("refused will-jobs-arrive:2")
    now_s[0] += 1.0
    assert watch.poll()
    assert (watch.trouble, set(watch.current.versions.values())) == ("", {2})
