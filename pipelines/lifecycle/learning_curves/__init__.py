"""The predictor `accuracy-curve` from the command line: curves in, versions, figures and forecasts out."""
