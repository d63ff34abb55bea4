"""Predictors in the manner of scikit-learn, and the registry that keeps their versions."""
