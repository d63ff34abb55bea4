"""Why a job waited, was helped or was slowed: told from the table of jobs that a run wrote and the record beside it."""
