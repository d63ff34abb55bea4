"""MLFS: a learned policy or else the heuristic, under load control. MLFS, sections 3.3 to 3.5."""

from jobcast.domain.tasks import TaskPolicy
from jobcast.schedulers.tasks.load_control import LoadControl, LoadControlSettings
from jobcast.schedulers.tasks.mlf_h import MlfH, MlfHSettings


def mlf_c(heuristic: MlfHSettings, control: LoadControlSettings) -> TaskPolicy:
    """MLF-H under load control."""
    return LoadControl(MlfH(heuristic), "mlf_c", control)


def mlfs(learned: TaskPolicy | None, heuristic: MlfHSettings, control: LoadControlSettings) -> TaskPolicy:
    """MLF-RL under load control, MLF-H where no policy has been learned: the switch waits for a well trained one."""
    return LoadControl(MlfH(heuristic) if learned is None else learned, "mlfs", control)
