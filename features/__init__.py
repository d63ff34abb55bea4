"""What was knowable at time t: pure functions over a history that ends at t."""
