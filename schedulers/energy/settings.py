"""Settings of policies of energy and due dates."""

from jobcast.schedulers.settings import AtLeastZero, Chance, Count, Flag, Seconds, Settings, Whole, setting

# Ours: with 0 the schedule changes at most calls for gains that the next call takes back, and jobs lose what they did
# since their last snapshot.
HOLD = 0.1
FORCE_NODES = "constraint 4n: min(N, J) nodes are used, as far as they can be"


class AndreasSettings(Settings):
    """Of the randomised greedy; all but `max_iterations` and `rho` are ours."""

    max_iterations: Count = setting(1000, "schedules that are made at a call; MaxIt_RG, section V")
    rho: AtLeastZero = setting(100.0, "penalty of postponing a job; ANDREAS, section V.B")
    seed: Whole = setting(0, "of random numbers; --seed where it is not set")
    draw: Chance = setting(1.0, "probability that a job draws its candidate, else it takes the best")
    keep: Flag = setting(True, "every second random construction leaves running jobs where they run")
    hold: Chance | None = setting(
        None, "share of the objective that a change must gain; 0.1, with thorough 0, which is the paper's"
    )
    caps: Flag = setting(False, "two of three random constructions cap the GPUs of jobs at a drawn number")
    force_nodes: Flag = setting(False, FORCE_NODES)
    thorough: Flag = setting(False, "push the objective of each call down to its optimum")

    @property
    def held(self) -> float:
        """`hold`, or what stands for it."""
        if self.hold is not None:
            return self.hold
        return 0.0 if self.thorough else HOLD


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
