"""Jobs on nodes of unlike GPUs replayed, with what they draw and what that costs accounted exactly."""
