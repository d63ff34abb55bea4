"""What GPUs of a type are assumed to draw and to do where no measurement says.

Watts are the makers' board powers (NVIDIA's data sheets): K80 300 for its two GPUs, P100 and V100 PCIe 250, V100 SXM2
300, T4 70, A10 150. Speeds are ours, as shares of a V100's. G1, G2 and G3 are types whose names openb's owners keep to
themselves: their watts and speeds are ours too, between a V100 and twice its speed.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

HOST_W = 100.0
"""Of a node with any GPU in use, beside its GPUs: ours. Jobs that train leave most of a host's processors idle."""


class GpuType(NamedTuple):
    """Watts of a GPU in use, and how fast it computes, as a share of a V100."""

    power_w: float
    speed: float


GPU_TYPES: Mapping[str, GpuType] = MappingProxyType(
    {
        "k80": GpuType(150.0, 0.25),
        "p100": GpuType(250.0, 0.6),
        "v100": GpuType(250.0, 1.0),
        "v100m16": GpuType(300.0, 1.0),
        "v100m32": GpuType(300.0, 1.0),
        "t4": GpuType(70.0, 0.4),
        "a10": GpuType(150.0, 0.9),
        "g1": GpuType(250.0, 1.0),
        "g2": GpuType(300.0, 1.5),
        "g3": GpuType(400.0, 2.0),
    }
)
"""By name in small letters."""


def known_type(name: str) -> GpuType | None:
    """What is assumed of a type, whatever the case of its letters; None where nothing is.

    >>> known_type("V100M32").power_w
    300.0
    """
    return GPU_TYPES.get(name.lower())


def linear_power_w(gpus: int, node_w: float, gpu_w: float, idle_w: float = 0.0) -> tuple[float, ...]:
    """Watts of a node by GPUs in use, from 0: it idles with none, and draws `node_w` and `gpu_w` a GPU with any.

    >>> linear_power_w(2, 170.0, 250.0)
    (0.0, 420.0, 670.0)
    """
    # With none in use a node may be switched off: its idle power is told apart.
    return (idle_w, *(node_w + gpu_w * used for used in range(1, gpus + 1)))
