"""A cluster replayed in time: the engine, its view, its log, metrics of the log."""
