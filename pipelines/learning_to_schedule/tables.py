"""What a training of a scheduler found, for a person."""

from collections.abc import Mapping
from typing import Any


def scheduler_table(result: Mapping[str, Any]) -> str:
    """The version, how well MLF-H was imitated, and what the policy reached against it; a line each."""
    lines = [f"{result['predictor']} {result['version']} ({', '.join(result['aliases'])}): {result['algorithm']}"]
    lines += [f"imitation, {name:<12} {value:.3f}" for name, value in result["training"]["imitation"].items()]
    found = result["against_mlf_h"]
    if found:
        lines.append(f"against MLF-H on {found['workloads']} workloads, mean change (95 %):")
        for name, mean in found["means"].items():
            lines.append(f"  {name:<16} {mean:+.4f} ({found['lows'][name]:+.4f} to {found['highs'][name]:+.4f})")
    lines.append("mlfs uses it" if result["better"] else "not measured to be better than MLF-H: mlfs goes on with that")
    return "\n".join(lines)
