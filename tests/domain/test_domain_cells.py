"""Cells as values: told apart by where they lie."""

import pytest

from jobcast.domain.cells import Cell


def test_cells_lie_by_server_then_by_their_first_gpu():
    cells = [Cell(1, 0, 8), Cell(0, 4, 2), Cell(0, 0, 4), Cell(0, 4, 1)]
    assert sorted(cells) == [Cell(0, 0, 4), Cell(0, 4, 1), Cell(0, 4, 2), Cell(1, 0, 8)]


def test_cells_are_values():
    assert len({Cell(0, 0, 4), Cell(0, 0, 4), Cell(0, 4, 4)}) == 2
    with pytest.raises(AttributeError):
        Cell(0, 0, 4).gpus = 8
