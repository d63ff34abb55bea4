"""What happens to a predictor after its first training: promotion, retraining, drift, switches."""
