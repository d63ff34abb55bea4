"""Fingerprints of curves: equal for equal runs, different for any other."""

import json
from dataclasses import replace

import numpy as np
import pytest

from jobcast.domain.errors import RegistryError
from jobcast.pipelines.lifecycle.learning_curves import FILE, fingerprint, read_trained, write_trained
from jobcast.traces.learning_curves import LearningCurve

CURVE = LearningCurve("lm", 32, np.array([1, 2, 4]), np.array([0.1, 0.4, 0.5]))


def test_what_makes_another_curve():
    others = [
        replace(CURVE, app="ml"),
        replace(CURVE, batch_size=64),
        replace(CURVE, epoch=np.array([1, 2, 3])),
        replace(CURVE, metric=np.array([0.1, 0.4, np.nextafter(0.5, 1)])),
        CURVE.prefix(2),
        replace(CURVE, app="lm\0", batch_size=2),
    ]
    found = {fingerprint(one) for one in (CURVE, *others)}
    assert len(found) == 1 + len(others)


def test_what_does_not():
    same = replace(CURVE, lr_milestones=(3,), progress=CURVE.metric, metric=CURVE.metric.copy())
    assert fingerprint(same) == fingerprint(CURVE)


def test_they_are_kept_in_an_order_of_their_own(tmp_path):
    curves = [CURVE, replace(CURVE, app="a"), replace(CURVE, app="b")]
    write_trained(tmp_path, curves)
    first = (tmp_path / FILE).read_bytes()
    write_trained(tmp_path, curves[::-1])
    assert (tmp_path / FILE).read_bytes() == first
    assert json.loads(first)["curves"] == sorted(map(fingerprint, curves))
    assert read_trained(tmp_path) == set(map(fingerprint, curves))


@pytest.mark.parametrize("text", [None, "no JSON", "[]", "{}"])
def test_a_damaged_file_is_named(tmp_path, text):
    if text is not None:
        (tmp_path / FILE).write_text(text)
    with pytest.raises(RegistryError, match=f"{FILE}: cannot be read .* train the predictor again"):
        read_trained(tmp_path)
