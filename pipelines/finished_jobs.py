"""Files by which a training went, named where it cannot go on."""

from collections.abc import Iterator
from contextlib import contextmanager

from jobcast.domain.errors import TrainingError


@contextmanager
def of_file(path: str) -> Iterator[None]:
    """A TrainingError in here names the file that the training went by."""
    try:
        yield
    except TrainingError as error:
        raise TrainingError(f"{path}: {error}") from error
