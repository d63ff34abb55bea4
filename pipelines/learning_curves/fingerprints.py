"""Which curves a version was trained on, kept among its files: scoring it on one of them would flatter it."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from jobcast.domain.errors import RegistryError
from jobcast.traces.learning_curves import LearningCurve

FILE = "trained_curves.json"


def fingerprint(curve: LearningCurve) -> str:
    """SHA-256 of a curve's application, batch size, epochs and metric, in hex.

    >>> import numpy as np
    >>> curve = LearningCurve("LM", 32, np.array([1, 2]), np.array([0.1, 0.4]))
    >>> fingerprint(curve) == fingerprint(curve.prefix(2)), fingerprint(curve) == fingerprint(curve.prefix(1))
    (True, False)
    """
    digest = hashlib.sha256(f"{curve.app}\0{curve.batch_size}\0{len(curve)}\0".encode())
    digest.update(curve.epoch.astype("<i8").tobytes())
    digest.update(curve.metric.astype("<f8").tobytes())
    return digest.hexdigest()


def write_trained(folder: Path, curves: Iterable[LearningCurve]) -> None:
    """Write the curves' fingerprints, ascending, into a predictor's folder."""
    found = sorted(fingerprint(curve) for curve in curves)
    (folder / FILE).write_text(json.dumps({"curves": found}, indent=1) + "\n", encoding="utf-8")


def read_trained(folder: Path) -> frozenset[str]:
    """Fingerprints of the curves that the predictor in a folder was trained on.

    Raises
    ------
    RegistryError
        The file is not there or damaged.
    """
    path = folder / FILE
    try:
        return frozenset(str(one) for one in json.loads(path.read_text(encoding="utf-8"))["curves"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RegistryError(f"{path}: cannot be read ({error!r}); train the predictor again") from error
