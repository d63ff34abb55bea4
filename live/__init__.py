"""A running cluster in place of a replayed one: the same forecasts, from events as they become known."""
