"""How much each aim counts in the priorities of MLF-H's tasks."""

from jobcast.domain.settings import AtLeastZero, Flag, From0To1, Seconds, Settings, setting


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
