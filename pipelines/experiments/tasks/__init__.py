"""Jobs of tasks from files to figures: workloads, simulations, forecasts of accuracies."""
