"""The words of jobcast: jobs, the view of a cluster, decisions, forecasts, errors. Imports nothing of ours."""
