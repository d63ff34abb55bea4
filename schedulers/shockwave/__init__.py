"""Shockwave: fair and efficient rounds for training jobs whose batch size changes. Zheng et al., NSDI 2023."""

from jobcast.schedulers.shockwave.policy import Shockwave

__all__ = ["Shockwave"]
