"""The predictor `epoch-time`: seconds an epoch on any GPU type and number, from few profiled points."""
