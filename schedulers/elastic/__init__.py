"""Rules that share GPUs among elastic jobs; compiled, and asked afresh at every event."""
