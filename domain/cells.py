"""Cells: GPUs that lie together on a server. SIA, section 5.5; Zhao et al.: HiveD, OSDI 2020."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """Neighbouring GPUs of one server: those from `first` up to, without, `first + gpus`.

    Attributes
    ----------
    server : position in the cluster's list of servers, from 0
    first : the first of its GPUs, from 0
    gpus : how many
    """

    server: int
    first: int
    gpus: int
