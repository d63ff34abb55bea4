"""Inputs of the cases that are written as they stand: tables, clusters, a configuration."""

import json
from collections.abc import Mapping

SAMPLES = {"LM": 59_675, "ResNet-18": 50_000}
SIZES = {"LM": (5, 10, 20, 40, 80), "ResNet-18": (16, 32, 64, 128, 256)}
WIDTHS = (1, 2, 4, 8)


def _throughputs() -> str:
    """Steps a second that grow with GPUs and fall with the batch size, each less than in proportion."""
    lines = ["gpu_type,model,batch_size,gpus,steps_per_second"]
    for model, sizes in SIZES.items():
        pace = SAMPLES[model] / sizes[0] / 90.0
        lines += [
            f"v100,{model},{size},{gpus},{pace * gpus**0.9 * (sizes[0] / size) ** 0.7:.6f}"
            for size in sizes
            for gpus in WIDTHS
        ]
    return "\n".join([*lines, ""])


def _speedups() -> str:
    """Two models on two types of GPUs, and the apps of PCS's first workload, which scale perfectly."""
    powers = {"resnet": 0.9, "bert": 0.7, "LinearModel": 1.0}
    rows = [f"{model},{gpus},{gpus**power:.6f}" for model, power in powers.items() for gpus in (1, 2, 4, 8, 16, 32)]
    return "\n".join(["model,gpus,speedup", *rows, ""])


def _typed_speedups() -> str:
    rows = [
        f"{model},{gpus},{speed * gpus**power:.6f},{kind}"
        for model, power in {"resnet": 0.9, "bert": 0.7}.items()
        for kind, speed in {"slow": 1.0, "fast": 2.5 if model == "bert" else 1.8}.items()
        for gpus in (1, 2, 4, 8)
    ]
    return "\n".join(["model,gpus,speedup,gpu_type", *rows, ""])


def _step_times() -> str:
    """Seconds a step on nodes of four GPUs: samples a GPU, and synchronisation that grows with nodes."""
    rows = [
        f"{app},{-(-gpus // 4)},{gpus},{size},{pace * (size + 4):.6f},"
        f"{1e-6 + 0.02 * pace * size * (gpus > 1) * nodes:.6f}"
        for app, pace in {"net": 0.01, "bert": 0.03}.items()
        for gpus, nodes in ((1, 1), (2, 1), (4, 1), (8, 2))
        for size in (8, 16, 32, 64)
    ]
    return "\n".join(["app,num_nodes,num_replicas,local_bsz,step_time,sync_time", *rows, ""])


def _noise_curves() -> str:
    rows = [
        f"{app},{size},{epoch},{400 * epoch},1,{0.5 + 0.1 * epoch - size / 1000:.6f},1,{noise * epoch}"
        for app, noise in {"net": 200, "bert": 40}.items()
        for size in (16, 64, 256)
        for epoch in (1, 2, 3)
    ]
    return "\n".join(["app,batch_size,epoch,progress,iteration,metric,grad_sqr,grad_var", *rows, ""])


def _grid_jobs() -> str:
    """Jobs whose times are multiples of ten minutes, of two pools."""
    rows = [
        f"{at:02},{'ab'[at % 3 // 2]},{600 * (at + at // 5)},{600 * (1 + at * 7 % 11)},{(1, 2, 4, 1)[at % 4]}"
        for at in range(24)
    ]
    return "\n".join(["job_id,pool,submit_time,duration,gpus", *rows, ""])


def _scaling_jobs(*models: str) -> str:
    """Thirty jobs that scale, in bursts; of two models with their batch sizes, two of three of the first."""
    rows = [
        f"{at:02},p,{90 * at + 400 * (at // 6)},600,{(1, 2, 1, 4)[at % 4]},{models[at % 3 // 2]},{1 + at % 3}"
        for at in range(30)
    ]
    return "\n".join(["job_id,pool,submit_time,duration,gpus,model,batch_size,epochs", *rows, ""])


def _accuracy_curves() -> str:
    """Validation accuracies that rise as a power of the epoch, with ripples."""
    rows = [
        f"vision,{size},{epoch},{0.9 - 0.5 * epoch ** -(0.5 + size / 200) + 0.004 * (epoch * 7 % 5 - 2):.6f}"
        for size in (16, 32, 64, 96)
        for epoch in range(1, 31)
    ]
    return "\n".join(["app,batch_size,epoch,metric", *rows, ""])


def _wfq(thresholds: list[object], rates: list[str], clip: float, delta: float) -> str:
    """A configuration of PCS."""
    queues = {
        "num_classes": len(rates),
        "class_thresholds": thresholds,
        "class_rates": [{"frac": rate} for rate in rates],
    }
    return json.dumps({**queues, "clip_demand_factor": clip, "delta": delta})


TEXTS: Mapping[str, str] = {
    "throughputs.csv": _throughputs(),
    "speedups.csv": _speedups(),
    "typed-speedups.csv": _typed_speedups(),
    "step-times.csv": _step_times(),
    "noise-curves.csv": _noise_curves(),
    "grid.csv": _grid_jobs(),
    "grid-pools.csv": "pool,gpus\na,4\nb,4\n",
    "scaling.csv": _scaling_jobs("net,16", "bert,16"),
    "measured.csv": _scaling_jobs("cifar10,128", "deepspeech2,20"),
    "accuracy-curves.csv": _accuracy_curves(),
    "wfq.json": _wfq([8000, 60000, "inf"], ["12/20", "5/20", "3/20"], 0.8, 0.1),
    "balanced.json": _wfq([2139, 1533489, "inf"], ["313/333", "19/333", "1/333"], 0.6326, 0.50166),
    "servers.yaml": "nodes: [{count: 2, gpus: 8}, {count: 4, gpus: 4}]\npools: {q0: 8, q1: 8, q2: 8, q3: 8}\n",
    "eights.yaml": "nodes: [{count: 4, gpus: 8}]\npools: {q0: 8, q1: 8, q2: 8, q3: 8}\n",
    "fours.yaml": "nodes: [{count: 2, gpus: 4, gpu_type: v100}]\n",
    "accounts.yaml": "nodes: [{count: 7, gpus: 4}]\npools: {production-1: 3, research-1: 2, wide-1: 23}\n"
    "priority: {age: 1000, fairshare: 2000, job_size: 500, favor_small: true, half_life_s: 86400}\n"
    "accounts: {production-1: {shares: 3, user_gpus: 2}, wide-1: {grp_jobs: 6}}\n",
    "types.yaml": "nodes: [{count: 2, gpus: 4, gpu_type: slow}, {count: 2, gpus: 4, gpu_type: fast}]\n",
    "hosts.yaml": "nodes: [{count: 2, gpus: 2, cpus: 8, memory_gb: 60, bandwidth_mb_s: 600}, {count: 1, gpus: 4}]\n",
    "switches.csv": "pool,horizon_min,from,sharing\nq0,60,,off\nq1,5,2024-01-01T06:00:00Z,off\n"
    "q1,5,2024-01-01T12:00:00Z,on\nq2,720,2024-01-01T03:00:00Z,off\n",
}
"""Inputs that are written as they stand."""
