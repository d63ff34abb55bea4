"""What happened: the canonical job table, readers, generators, checks and splits."""
