"""Multifactor priority: pure formulas, as Slurm documents them (priority/multifactor, Fair Tree); docs/backfill.md.

Every factor lies in [0, 1], and a job's priority is the sum of factors times weights, in whole points.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import inf, log

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.rounding import rounded, rounded_all


def age_factor(waited_s: Floats, max_age_s: float) -> Floats:
    """Share of the oldest age that counts, (n,); 0 before the submission.

    >>> age_factor(np.array([-5.0, 50.0, 500.0]), 200.0).tolist()
    [0.0, 0.25, 1.0]
    """
    return np.clip(waited_s / max_age_s, 0.0, 1.0)


def size_factor(gpus: float, total_gpus: float, favor_small: bool = False) -> float:
    """Share of the cluster's GPUs that a job asks for; the rest of them where narrow jobs go first.

    >>> size_factor(8, 32), size_factor(8, 32, favor_small=True)
    (0.25, 0.75)
    """
    share = min(1.0, gpus / total_gpus) if total_gpus > 0 else 0.0
    return 1.0 - share if favor_small else share


def relative(name: str, priorities: Mapping[str, float]) -> float:
    """A QOS's or partition's priority over the largest of all; 0 of one that nobody named.

    >>> relative("high", {"high": 50.0, "top": 200.0}), relative("", {"high": 50.0})
    (0.25, 0.0)
    """
    own = priorities.get(name, 0.0)
    return own / max(priorities.values()) if own > 0.0 else 0.0


def points(weighted: Floats) -> Floats:
    """Whole points of weighted sums, (n,): rounded down, once noise of the last bits is off."""
    return np.floor(rounded_all(weighted))


def decayed_use(gpus: float, from_s: float, until_s: float, at_s: float, half_life_s: float) -> float:
    """GPU-seconds held in [from, until], each worth half for every half-life that lies between it and `at_s`.

    >>> decayed_use(2.0, 0.0, 100.0, 100.0, inf)
    200.0
    >>> round(decayed_use(1.0, 0.0, 100.0, 200.0, 100.0) * log(2.0), 6)
    25.0
    """
    if half_life_s == inf:
        return gpus * (until_s - from_s)
    late: float = 0.5 ** ((at_s - until_s) / half_life_s)
    early: float = 0.5 ** ((at_s - from_s) / half_life_s)
    return gpus * half_life_s / log(2.0) * (late - early)


@dataclass(frozen=True, slots=True)
class Association:
    """A user in an account, or an account with those below it (`children`, None of a user).

    Attributes
    ----------
    name : of a user's association what its factor is told under
    shares : against its siblings
    use : decayed GPU-seconds, of an account all of those below it
    """

    name: tuple[str, str]
    shares: float
    use: float
    children: "tuple[Association, ...] | None" = None

    def ranked(self) -> "list[tuple[float, Association]]":
        """(level fair-share, child) of each child."""
        assert self.children is not None
        shares, use = (sum(getattr(one, name) for one in self.children) for name in ("shares", "use"))
        return [(level_fair_share(one.shares, shares, one.use, use), one) for one in self.children]


def level_fair_share(shares: float, all_shares: float, use: float, all_use: float) -> float:
    """LF = S / U: share of the siblings' shares over share of their use, infinite where nothing was used.

    >>> level_fair_share(1.0, 4.0, 30.0, 60.0), level_fair_share(1.0, 4.0, 0.0, 60.0), level_fair_share(0, 4, 0, 60)
    (0.5, inf, 0.0)
    """
    if not shares:
        return 0.0
    return rounded((shares / all_shares) / (use / all_use)) if use > 0.0 else inf


def fair_tree(root: Association) -> dict[tuple[str, str], float]:
    """Fair-share factors of all users' associations: ranks over their number. Slurm, Fair Tree Fairshare Algorithm.

    From the root down siblings are visited by level fair-share, the largest first; the first user has rank n, the next
    one n - 1. Users that are level share the better rank. Accounts that are level are visited as one, their children
    sorted together; where the sibling before them is level too, their first child shares its rank.

    >>> users = tuple(Association(("lab", name), 1.0, use) for name, use in (("a", 5.0), ("b", 1.0), ("c", 5.0)))
    >>> fair_tree(Association(("", ""), 1.0, 11.0, users))
    {('lab', 'b'): 1.0, ('lab', 'a'): 0.6666666666666666, ('lab', 'c'): 0.6666666666666666}
    """
    order = list(_ranks(root.ranked(), tied=False))
    factors: dict[tuple[str, str], float] = {}
    rank = count = len(order)
    for place, (tied, name) in enumerate(order):
        if not tied:
            rank = count - place
        factors[name] = rank / count
    return factors


def _ranks(siblings: Sequence[tuple[float, Association]], tied: bool) -> "list[tuple[bool, tuple[str, str]]]":
    """(level with the user before it, name) of users below siblings; `tied`: whether the first sibling is."""
    found: list[tuple[bool, tuple[str, str]]] = []
    before: float | None = None
    # Sorting is stable, and users go before accounts that are level with them.
    for (level, is_account), group in groupby(sorted(siblings, key=_order), key=_order):
        tied = tied if before is None else level == before
        before = level
        if is_account:
            found += _ranks([child for _, one in group for child in one.ranked()], tied)
        else:
            found += [(tied or behind > 0, one.name) for behind, (_, one) in enumerate(group)]
    return found


def _order(one: tuple[float, Association]) -> tuple[float, bool]:
    level, association = one
    return -level, association.children is not None
