"""Settings of policies of energy and due dates."""

from typing import Literal

from jobcast.domain.settings import AtLeastZero, Chance, Count, Flag, Seconds, Settings, Whole, setting

# Ours: with 0 the schedule changes at most calls for gains that the next call takes back, and jobs lose what they did
# since their last snapshot.
HOLD = 0.1
FORCE_NODES = "constraint 4n: min(N, J) nodes are used, as far as they can be"


TO_GO, EQUATION_1 = "to_go", "equation_1"
# MaxIt_RG of section V; ours where schedules are changed after they are made.
MAX_ITERATIONS, TO_GO_ITERATIONS = 1000, 30


class AndreasSettings(Settings):
    """Of the randomised greedy; all but `max_iterations` and `rho` are ours."""

    objective: Literal["to_go", "equation_1"] = setting(
        TO_GO, "what is made small: the cost of all jobs to their ends, or equation 1 (docs/energy.md)"
    )
    occupancy: AtLeastZero = setting(
        0.3, "to_go: price of an hour of a GPU of the fastest kind, in mean weights of active jobs"
    )
    impatience: AtLeastZero = setting(0.1, "to_go: price of an hour until a job is over, in the same")
    max_iterations: Count | None = setting(
        None, "schedules that are made at a call; 30, with equation_1 1000, MaxIt_RG of section V"
    )
    rho: AtLeastZero = setting(100.0, "equation_1: penalty of postponing a job; ANDREAS, section V.B")
    seed: Whole = setting(0, "of random numbers; --seed where it is not set")
    draw: Chance = setting(1.0, "probability that a job draws its candidate, else it takes the best")
    keep: Flag = setting(True, "every second random construction leaves running jobs where they run")
    hold: Chance | None = setting(
        None, "share of the objective that a change must gain; equation_1 0.1, else and with thorough the paper's 0"
    )
    caps: Flag = setting(False, "two of three random constructions cap the GPUs of jobs at a drawn number")
    force_nodes: Flag = setting(False, FORCE_NODES + "; by equation_1")
    thorough: Flag = setting(False, "push equation_1 down to its optimum at each call")

    @property
    def to_go(self) -> bool:
        """Whether the cost-to-go is made small: not where something is asked for that only equation 1 has."""
        return self.objective == TO_GO and not (self.thorough or self.force_nodes)

    @property
    def held(self) -> float:
        """`hold`, or what stands for it."""
        if self.hold is not None:
            return self.hold
        return 0.0 if self.thorough or self.to_go else HOLD

    @property
    def made(self) -> int:
        """`max_iterations`, or what stands for it."""
        return self.max_iterations or (TO_GO_ITERATIONS if self.to_go else MAX_ITERATIONS)


class QueueSettings(Settings):
    """Of queues."""

    strict: Flag = setting(False, "nobody overtakes a job that finds no room; else it is passed over")


# A programme is solved at each call: with 20 active jobs on 16 nodes that takes a second, and more with each job.
EXACT_JOBS = 100


class ExactSettings(Settings):
    """Of the mixed integer model."""

    rho: AtLeastZero = setting(100.0, "penalty of postponing a job; ANDREAS, section V.B")
    time_limit_s: Seconds = setting(60.0, "of a solve; an answer cut short by it depends on the machine's speed")
    as_printed: Flag = setting(False, "a node costs its cheapest job, as printed; else the first-ending one")
    force_nodes: Flag = setting(True, FORCE_NODES + "; without it what is not due waits for ever")
