"""What forecasts of regimes need of a job."""

from jobcast.domain.errors import RegistryError
from jobcast.domain.jobs import Job
from jobcast.domain.training import Training


def training_of(job: Job) -> Training:
    """What the job trains; RegistryError for one that trains nothing."""
    if job.training is None:
        raise RegistryError(f"job {job.job_id}: is no training job, it has no regimes; give the trace's throughputs")
    return job.training
