"""Weights that learn from random changes of themselves: policy gradient with parameter-based exploration. PyTorch.

Sehnke et al.: Parameter-exploring policy gradients, Neural Networks 23 (2010), with symmetric changes: what a change
gained over its opposite on the same workload. A whole run is one sample, so that nothing of it has to be a drawn pick.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from jobcast.domain.arrays import Bools, Floats
from jobcast.models.scheduling.learner import need_torch


class Explorer:
    """Weights by name, all 0 at first, and their optimiser, Adam.

    Parameters
    ----------
    spreads : by name, the standard deviation of changes of each weight; 0 where nothing is learnt

    Raises ConfigError without PyTorch.
    """

    def __init__(self, spreads: Mapping[str, Floats]) -> None:
        self._torch = need_torch()
        self._spreads = {name: np.asarray(values, dtype=np.float64) for name, values in spreads.items()}
        self._flat = np.concatenate([values.ravel() for values in self._spreads.values()])
        # In units of their spreads: one rate serves all.
        self._weights = self._torch.zeros(len(self._flat), dtype=self._torch.float64, requires_grad=True)
        self._optimiser = self._torch.optim.Adam([self._weights])

    def arrays(self) -> dict[str, Floats]:
        """The weights by name."""
        return self.changed(np.zeros(len(self._flat)))

    def changed(self, change: Floats) -> dict[str, Floats]:
        """The weights by name, changed by so many (n_weights,) spreads each."""
        ends = np.cumsum([values.size for values in self._spreads.values()])[:-1]
        parts = np.split((self._weights.detach().numpy() + change) * self._flat, ends)
        pairs = zip(self._spreads.items(), parts, strict=True)
        return {name: part.reshape(shape.shape) for (name, shape), part in pairs}

    def changes(self, rng: np.random.Generator, count: int) -> Floats:
        """(count, n_weights) changes to try, each with its opposite; 0 where nothing is learnt."""
        return rng.standard_normal((count, len(self._flat))) * self._learnt

    def learn(self, changes: Floats, gains: Floats, rate: float) -> None:
        """One step towards changes (n, n_weights) by what each gained (n,) over its opposite; Adam's rate."""
        # In units of their root mean square: what is at stake differs from iteration to iteration.
        spread = float(np.sqrt(np.mean(gains**2))) or 1.0
        self._optimiser.param_groups[0]["lr"] = rate
        self._weights.grad = self._torch.tensor(-(gains / spread @ changes) / len(gains))
        self._optimiser.step()

    def assign(self, arrays: Mapping[str, Floats]) -> None:
        """Take weights over; the optimiser forgets its moments."""
        flat = np.concatenate([np.ravel(arrays[name]) for name in self._spreads])
        plain = np.divide(flat, self._flat, out=np.zeros_like(flat), where=self._learnt)
        with self._torch.no_grad():
            self._weights.copy_(self._torch.tensor(plain))
        self._optimiser = self._torch.optim.Adam([self._weights])

    def save(self, path: Path) -> None:
        """Weights and the optimiser's moments, so that training goes on as if it had not stopped."""
        self._torch.save({"weights": self._weights.detach(), "optimiser": self._optimiser.state_dict()}, path)

    def restore(self, path: Path) -> None:
        """Take over what `save` wrote."""
        state = self._torch.load(path, weights_only=True)
        with self._torch.no_grad():
            self._weights.copy_(state["weights"])
        self._optimiser.load_state_dict(state["optimiser"])

    @property
    def _learnt(self) -> Bools:
        return self._flat > 0.0
