"""Settings of MLFS's policies."""

from typing import Literal

from jobcast.domain.settings import (
    AtLeastOne,
    AtLeastZero,
    Belief,
    BelowOne,
    Flag,
    From0To1,
    Seconds,
    Settings,
    Share,
    setting,
)


class Weights(Settings):
    """Of equations 2 to 6 of MLFS, section 3.3.1; the numbers are those of section 4.1."""

    alpha: From0To1 = setting(0.3, "weight of what is worth to accuracy, against time")
    gamma: From0To1 = setting(0.8, "weight of dependent tasks")
    gamma_d: AtLeastZero = setting(0.3, "weight of the deadline")
    gamma_r: AtLeastZero = setting(0.3, "weight of the remaining time")
    gamma_w: AtLeastZero = setting(0.35, "weight of the waiting time")
    unit_s: Seconds | None = setting(None, "seconds in which equation 4 counts; means over the queue")
    sums: Flag = setting(False, "dependent tasks add up, as printed, in place of a weighted mean")
    urgency: Flag = setting(True, "urgency counts")
    deadline: Flag = setting(True, "deadlines count")
    late: Flag = setting(False, "the term of the deadline stays when it has passed")


class HeuristicSettings(Weights):
    """Of MLF-H. MLFS, sections 3.3 and 4.1."""

    h_r: Share = setting(0.9, "share of a resource beyond which a server is overloaded")
    move_at: Share | None = setting(None, "share beyond which tasks migrate; h_r")
    p_s: Share = setting(0.1, "share of the tasks of overloaded GPUs that may leave")
    bandwidth: Flag = setting(True, "communication counts in the choice of hosts")
    migration: Flag = setting(True, "tasks leave overloaded servers")
    evict: Literal["stay", "queue"] = setting("stay", "what becomes of a task that no server takes")
    part: Flag = setting(False, "a leaving task may go far from those that it communicates with")
    preempt: Flag = setting(True, "running jobs give way to waiting ones of higher priority")
    hold: AtLeastOne = setting(2.0, "times the priority of a running job that a waiting one must have")
    slow_servers: Literal["ignore", "move", "replicate", "both"] = setting(
        "ignore", "what is done about servers that are slow, or may become so"
    )

    @property
    def leave_at(self) -> float:
        """Share beyond which tasks migrate."""
        return self.h_r if self.move_at is None else self.move_at


class ControlSettings(HeuristicSettings):
    """Of MLF-H under load control. MLFS, section 3.5."""

    h_s: AtLeastZero = setting(0.9, "overload degree beyond which the system is overloaded")
    confidence: Belief = setting(0.9999, "a run is given up when it misses its target with that probability")
    tolerance: BelowOne = setting(0.01, "share of the metric that a run for the best may miss")
    give_up: Flag = setting(True, "runs end that will miss their targets")
