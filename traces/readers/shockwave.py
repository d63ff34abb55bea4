"""Shockwave's traces: Gavel's, with the mode of adaptation and a nominal duration (uw-mad-dash/shockwave)."""

from jobcast.traces.readers.gavel import GavelReader, TrainingJobs


class ShockwaveReader(TrainingJobs):
    """Reads a trace. The duration is the nominal one of the trace, without changes of the batch size."""

    name = "shockwave"
    # Gavel's fields up to the width, then Shockwave's own order.
    columns = (*GavelReader.columns[:7], "adaptation", "weight", "slo", "duration", "submit_time")
