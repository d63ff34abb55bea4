"""jobcast forecasts what a GPU cluster's queues will do next and measures what each forecast is worth."""

__version__ = "0.1.0"
