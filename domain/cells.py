"""Cells: GPUs that lie together on a server. SIA, section 5.5; Zhao et al.: HiveD, OSDI 2020."""

from dataclasses import dataclass

ANYWHERE = -1
"""In place of a first GPU: whichever of the server are free."""


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """GPUs of one server: neighbours from `first` up to, without, `first + gpus`, or any.

    Attributes
    ----------
    server : position in the cluster's list of servers, from 0
    first : the first of its GPUs, from 0, or `ANYWHERE`
    gpus : how many
    """

    server: int
    first: int
    gpus: int
