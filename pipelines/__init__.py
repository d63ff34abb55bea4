"""The stages, the command line, backtests and reports: the only room that wires, reads, writes and logs."""
