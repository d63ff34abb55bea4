"""CPU seconds of forecasting 5,000 training curves: fits of all families, their combination, intervals, targets.

    python benchmarks/bench_curves.py [--curves 5000]

Curves are made up: rising and falling, 20 to 200 epochs, a tenth to four fifths of them seen. Everything runs once on a
few curves before it is measured, so that compiling is not. One process, one core.
"""

import argparse
import time

import numpy as np

from jobcast.models.curves.accuracy_curve import AccuracyCurve

ROUNDS = 3
LATER_EPOCHS = 20
TARGET = 0.85


def made_up(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Metric (n, L), epochs seen (n,) and epochs of the run (n,)."""
    rng = np.random.default_rng(0)
    epochs = rng.integers(20, 200, count)
    seen = np.maximum(1, (epochs * rng.uniform(0.1, 0.8, count)).astype(int))
    epoch = np.arange(1, seen.max() + 1)
    metric = 0.9 - 0.6 * epoch ** -rng.uniform(0.3, 1, (count, 1)) + 0.01 * rng.normal(size=(count, epoch.size))
    return np.where(rng.random((count, 1)) < 0.5, metric, 1 - metric), seen, epochs


def main() -> None:
    """Print one row a round."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--curves", type=int, default=5000)
    count = asked.parse_args().curves
    metric, seen, epochs = made_up(count)
    later = np.linspace(seen + 1, epochs, LATER_EPOCHS, axis=1)
    model = AccuracyCurve.from_numbers()
    model.forecast_arrays(metric[:3], seen[:3], epochs[:3]).reach_epoch(TARGET)
    print(f"{count} curves, CPU s: {'fits':>6} {'finals':>7} {f'{LATER_EPOCHS} epochs':>10} {'target':>7}")
    for _ in range(ROUNDS):
        at = [time.process_time()]
        forecast = model.forecast_arrays(metric, seen, epochs)
        at.append(time.process_time())
        _ = forecast.final_mean, forecast.final_low, forecast.final_high
        at.append(time.process_time())
        forecast.interval(0.9, later)
        at.append(time.process_time())
        forecast.reach_epoch(TARGET)
        at.append(time.process_time())
        fits, finals, path, target = np.diff(at)
        print(f"{'':{len(str(count))}}                {fits:6.3f} {finals:7.3f} {path:10.3f} {target:7.3f}")


if __name__ == "__main__":
    main()
