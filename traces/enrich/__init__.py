"""What a plain trace lacks, supplied by declared rules: models, scaling, regimes, tasks, profiles, due dates."""
