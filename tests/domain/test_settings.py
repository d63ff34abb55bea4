"""What settings take and refuse, at their very limits."""

import pytest
from pydantic import TypeAdapter, ValidationError

from jobcast.domain import settings as types

TAKEN = {
    "Flag": {"true": True, "1": True, "YES": True, True: True, "false": False, "0": False, "no": False},
    "Seconds": {"0.001": 0.001, "3162240000": 3_162_240_000.0},
    "RoundLength": {"1": 1.0, "3162240000": 3_162_240_000.0},
    "Delay": {"0": 0.0, "2592000": 2_592_000.0},
    "Positive": {"0.001": 0.001, 1e300: 1e300},
    "AtLeastZero": {"0": 0.0, 1e300: 1e300},
    "AtLeastOne": {"1": 1.0, 1e300: 1e300},
    "From0To1": {"0": 0.0, "1": 1.0},
    "BelowOne": {"0": 0.0, "0.999": 0.999},
    "Chance": {"0": 0.0, "1": 1.0},
    "Belief": {"0.5": 0.5, "0.999": 0.999},
    "Share": {"0.001": 0.001, "1": 1.0},
    "Exponent": {"-100": -100.0, "-0.001": -0.001, "0.999": 0.999},
    "Count": {"1": 1, 12: 12},
    "Whole": {"0": 0, 12: 12},
    "Minutes": {"0.001": (0.001,), "5,60": (5.0, 60.0), (720.0,): (720.0,)},
}
REFUSED = {
    "Flag": ["2", "", "maybe"],
    "Seconds": ["0", "3162240000.1", "soon"],
    "RoundLength": ["0.999", "3162240000.1"],
    "Delay": ["-0.001", "2592000.1", "nan"],
    "Positive": ["0", "inf", "nan"],
    "AtLeastZero": ["-0.001", "inf"],
    "AtLeastOne": ["0.999", "inf"],
    "From0To1": ["-0.001", "1.001"],
    "BelowOne": ["-0.001", "1"],
    "Chance": ["-0.001", "1.001"],
    "Belief": ["0.499", "1"],
    "Share": ["0", "1.001"],
    "Exponent": ["-100.001", "0", "1"],
    "Count": ["0", "-1", "1.0", "1_000", " 1", "\N{SUPERSCRIPT TWO}"],
    "Whole": ["-1", ""],
    "Minutes": ["", "0", "5,0", "-5", "5,", "five", "inf", ()],
}


def test_settings_do_not_change():
    with pytest.raises(ValidationError, match="frozen"):
        types.Settings().name = "another"


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_taken_and_what_is_refused(name):
    reader = TypeAdapter(getattr(types, name))
    assert {given: reader.validate_python(given) for given in TAKEN[name]} == TAKEN[name]
    for given in REFUSED[name]:
        with pytest.raises(ValidationError):
            reader.validate_python(given)
