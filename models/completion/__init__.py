"""When a job will finish: forecasts of sizes and of arrivals, from which futures are drawn, and their calibration."""
