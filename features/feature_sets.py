"""The features of arrivals in the order in which an ablation adds them: the paper's four sets, then ours."""

from collections.abc import Mapping, Sequence

from jobcast.features.arrivals import feature_names

PAPER_SETS = ("periodic", "+ recent arrivals", "+ recent completions", "+ future completions")
"""SIA, Tables 9, 20 and 23, in their order; the last one is Table 9 whole."""
REST = "+ all others"
_PREFIXES: Mapping[str, tuple[str, ...]] = {
    "periodic": tuple(f"arrivals_{back}{unit}_ago" for unit in ("h", "d") for back in (1, 2, 3)),
    "+ recent arrivals": ("arrivals_last_1k", "arrivals_last_10k", "arrivals_last_100k"),
    "+ recent completions": ("completions_last_",),
    "+ future completions": ("expected_completions_",),
    "+ calendar": ("hour_", "week_", "weekend"),
    "+ gaps and renewal": ("log_since_", "log_mean_gap", "log_median_gap", "log_last_gap", "cv_gap", "renewal_"),
}
"""What the names of a set's own columns begin with."""


def feature_sets(names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Cumulative sets of columns, each holding the one before; what no set names comes last, as "+ all others".

    Parameters
    ----------
    names : columns that there are, in their order

    Returns
    -------
    Set -> columns in the order of `names`; a set that adds nothing is left out.

    Examples
    --------
    >>> feature_sets(["weekend", "arrivals_1h_ago", "log_gpus_last_1k"])
    {'periodic': ('arrivals_1h_ago',), '+ calendar': ('weekend', 'arrivals_1h_ago'), '+ all others': ('weekend', \
'arrivals_1h_ago', 'log_gpus_last_1k')}
    """
    taken: set[str] = set()
    sets: dict[str, tuple[str, ...]] = {}
    for label, prefixes in (*_PREFIXES.items(), (REST, ("",))):
        # Each column goes to the first set that claims it; the empty prefix claims the rest.
        added = {name for name in names if name.startswith(prefixes)} - taken
        if added:
            taken |= added
            sets[label] = tuple(name for name in names if name in taken)
    return sets


FEATURE_SETS: Mapping[str, tuple[str, ...]] = feature_sets(feature_names())
"""Set -> columns of `features.arrivals.arrival_features`, cumulative. SIA, Table 9, then ours."""
TABLE_9: tuple[str, ...] = FEATURE_SETS[PAPER_SETS[-1]]
"""The columns that SIA describes."""
