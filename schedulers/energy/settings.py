"""Settings of policies of energy and due dates."""

from pydantic import Field

from jobcast.schedulers.settings import AtLeastZero, Chance, Count, Flag, Seconds, Settings, Whole

HOLD = 0.1
"""Ours: with 0 the schedule changes at most calls for gains that the next call takes back, and jobs lose what they did
since their last snapshot."""
FORCE_NODES = "constraint 4n: min(N, J) nodes are used, as far as they can be"


class AndreasSettings(Settings):
    """Of the randomised greedy; all but `max_iterations` and `rho` are ours."""

    max_iterations: Count = Field(default=1000, description="schedules that are made at a call; MaxIt_RG, section V")
    rho: AtLeastZero = Field(default=100.0, description="penalty of postponing a job; ANDREAS, section V.B")
    seed: Whole = Field(default=0, description="of random numbers; --seed where it is not set")
    draw: Chance = Field(default=1.0, description="probability that a job draws its candidate, else it takes the best")
    keep: Flag = Field(default=True, description="every second random construction leaves running jobs where they run")
    hold: Chance | None = Field(
        default=None,
        description="share of the objective that a change must gain; 0.1, with thorough 0, which is the paper's",
    )
    caps: Flag = Field(
        default=False, description="two of three random constructions cap the GPUs of jobs at a drawn number"
    )
    force_nodes: Flag = Field(default=False, description=FORCE_NODES)
    thorough: Flag = Field(default=False, description="push the objective of each call down to its optimum")

    @property
    def held(self) -> float:
        """`hold`, or what stands for it."""
        if self.hold is not None:
            return self.hold
        return 0.0 if self.thorough else HOLD


class QueueSettings(Settings):
    """Of queues."""

    strict: Flag = Field(default=False, description="nobody overtakes a job that finds no room; else it is passed over")


EXACT_JOBS = 100
"""A programme is solved at each call: with 20 active jobs on 16 nodes that takes a second, and more with each job."""


class ExactSettings(Settings):
    """Of the mixed integer model."""

    rho: AtLeastZero = Field(default=100.0, description="penalty of postponing a job; ANDREAS, section V.B")
    time_limit_s: Seconds = Field(
        default=60.0, description="of a solve; an answer cut short by it depends on the machine's speed"
    )
    as_printed: Flag = Field(
        default=False, description="a node costs its cheapest job, as printed; else the first-ending one"
    )
    force_nodes: Flag = Field(default=True, description=FORCE_NODES + "; without it what is not due waits for ever")
