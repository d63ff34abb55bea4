"""Jobs of tasks replayed: a decision a minute, every iteration as slow as its slowest path through the servers."""
