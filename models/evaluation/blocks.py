"""What the evaluations share: blocks of figures, one a horizon."""

from typing import Any

from jobcast.domain.errors import TrainingError


def checked(blocks: dict[str, Any]) -> dict[str, Any]:
    """Blocks by horizon, of which one at least has rows (`n`); the others' figures are None.

    Raises
    ------
    TrainingError
        None has rows.
    """
    if not any(block["n"] for block in blocks.values()):
        raise TrainingError(
            f"there is nothing to score: no pool has a window of {' or '.join(blocks)} within the time to score; "
            f"widen --from and --until"
        )
    return blocks
