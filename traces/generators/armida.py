"""The eight jobs of ANDREAS's validation (section V.C and Table V), due dates counted from their submissions."""

from typing import NamedTuple

import numpy as np
import polars as pl

from jobcast.domain.jobs import Pool
from jobcast.traces.generators.andreas import APPLICATIONS, ArmidaConfig, fastest, jobs_frame, profile_table

POOL = "armida"


class PrintedJob(NamedTuple):
    """A row of Table V: due dates are printed in seconds from the submission."""

    job_id: str
    model: str
    epochs: int
    batch_size: int
    submit_s: float
    due_s: float
    weight: float


TABLE_V = (
    PrintedJob("J6", "EfficientNet", 80, 4096, 0.0, 3600.0, 4.0),
    PrintedJob("J9", "ConvNet", 160, 8192, 1200.0, 2600.0, 2.0),
    PrintedJob("J10", "ConvNet", 80, 8192, 2400.0, 7600.0, 3.0),
    PrintedJob("J7", "LSTM-big", 160, 8192, 3600.0, 17600.0, 3.0),
    PrintedJob("J8", "LSTM-small", 160, 8192, 4800.0, 7600.0, 3.0),
    PrintedJob("J1", "LSTM-big", 60, 8192, 6000.0, 5600.0, 5.0),
    PrintedJob("J2", "LSTM-small", 60, 8192, 7200.0, 12600.0, 2.0),
    PrintedJob("J3", "EfficientNet", 60, 4096, 8400.0, 11600.0, 1.0),
)


def generate_armida(config: ArmidaConfig, rng: np.random.Generator) -> tuple[pl.DataFrame, list[Pool]]:
    """Canonical table of the eight jobs, nothing of which is drawn, and one pool of the three nodes' GPUs."""
    nodes = config.gpu_nodes()
    quick = [fastest(APPLICATIONS[job.model], job.batch_size, nodes) for job in TABLE_V]
    epochs = np.array([job.epochs for job in TABLE_V], dtype=np.int64)
    submit_s = np.array([job.submit_s for job in TABLE_V])
    frame = jobs_frame(
        ids=[job.job_id for job in TABLE_V],
        pool=POOL,
        start=config.start,
        submit_s=submit_s,
        run_s=epochs * np.array([one.epoch_s for one in quick]),
        gpus=np.array([one.gpus for one in quick], dtype=np.int64),
        model=[job.model for job in TABLE_V],
        batch_size=np.array([job.batch_size for job in TABLE_V], dtype=np.int64),
        epochs=epochs,
        due_s=submit_s + np.array([job.due_s for job in TABLE_V]),
        weight=np.array([job.weight for job in TABLE_V]),
    )
    return frame, [Pool(POOL, nodes.gpus)]


def armida_profiles(config: ArmidaConfig) -> pl.DataFrame:
    """The profiles of all applications on the three nodes."""
    return profile_table(config.gpu_nodes())


def armida_notes(config: ArmidaConfig) -> tuple[str, ...]:
    """What is the paper's and what is assumed."""
    return ("jobs of ANDREAS, Table V; seconds an epoch and watts are assumptions of jobcast's",)
