"""Settings of any policy at random, by what its model says that they may be."""

from typing import Literal, get_args, get_origin

from jobcast.domain.settings import values_of
from jobcast.schedulers.registry import find_policy
from tests.contract.random_jobs import rng_of

BY_KIND = {
    "true or false": (True, False),
    "a share in (0, 1]": (0.2, 0.8, 1.0),
    "a number from 0 to 1": (0.0, 0.3, 1.0),
    "a number from 0 to below 1": (0.0, 0.3, 0.99),
    "a probability from 0 to 1": (0.0, 0.3, 1.0),
    "a probability from 0.5 to below 1": (0.5, 0.9, 0.9999),
    "a number >= 0": (0.0, 0.3, 10.0),
    "a number >= 1": (1.0, 4.0),
    "a number > 0": (0.5, 3250.0),
    "seconds, above 0, at most a century": (60.0, 3600.0),
    "a whole number >= 1": (1, 2, 4),
    "a whole number >= 0": (0, 3),
    "a number from -100 to below 1 and not 0": (-3.0, 0.5),
}
BY_NAME = {
    "noise": (0.0, 0.4),
    "hold": (None,),  # of andreas and MLF-H: what stays put for ever where it is drawn beside others
    "h_r": (0.9,),
    "move_at": (None,),
    "interval_s": (300.0, 3600.0),
    "resume_s": (None,),  # a cost, which the world tells
}
FIXED = {
    "milp": {"time_limit_s": 600.0, "search_tries": 200, "grid_s": 60.0},
    "exact": {"time_limit_s": 600.0, "force_nodes": True},
    "shockwave": {"time_limit_s": 600.0},
}
"""No solver is cut short; an exact schedule that need not use its nodes may leave for ever what is never due."""


def drawn(name, seed):
    """Settings of a policy, each drawn or left as it is; those that the world tells (files, scenarios) are left."""
    (bare, *how), rng, found = name.split(), rng_of(f"settings {name}", seed), {}
    spec = find_policy(bare)
    fields = spec.settings.model_fields | (spec.local.settings.model_fields if how == ["locality"] else {})
    for key, field in fields.items():
        values = BY_NAME.get(key) or (
            get_args(field.annotation)
            if get_origin(field.annotation) is Literal
            else BY_KIND.get(values_of(field.annotation, field.metadata), ())
        )
        if values and rng.random() < 0.5 and (value := rng.choice(values)) is not None:
            found[key] = value
    found |= {key: value for key, value in FIXED.get(bare, {}).items() if key in fields}
    if how == ["locality"] and spec.local.turns:
        found.pop("backfill", None)  # refused: nobody overtakes there
    if found.get("thorough"):
        found["force_nodes"] = True
    return found
