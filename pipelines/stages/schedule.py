"""Stage schedule: a scheduler that learns by replays of the enriched jobs, and is judged by them; needs PyTorch."""

from jobcast.pipelines.stages import judge, learn
from jobcast.pipelines.stages.context import Context


def work(context: Context, item: str) -> None:
    """Stages learn and judge in one."""
    learn.work(context, item)
    judge.work(context, item)
