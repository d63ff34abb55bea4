"""Placement learned for completion times alone. Mirhoseini et al., ICML 2017; MLFS, section 2 and section 4.1, RL."""

from jobcast.schedulers.tasks.mlf_h import MlfHSettings
from jobcast.schedulers.tasks.mlf_rl import MlfRl
from jobcast.schedulers.tasks.network import Networks

NAME = "device_rl"


def device_rl(networks: Networks, filled: float = 1.0) -> MlfRl:
    """The learned policy with weights of another reward; nothing leaves overloaded servers.

    Parameters
    ----------
    networks : trained with completion times as the only reward
    filled : share up to which servers and GPUs are filled
    """
    return MlfRl(networks, NAME, MlfHSettings(overload=filled, move_at=filled, migration=False, preempt=False))
