"""Profiles from the command line: tables imported and shown, the predictor `epoch-time` trained, scored and asked."""
