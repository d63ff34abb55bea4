"""How the networks of a learned scheduler learn: from another's choices, then by policy gradient. PyTorch.

After MLFS, section 3.4. The gradient is that of clipped PPO (Schulman et al. 2017, equation 7). One thread, 64 bits
and PyTorch's deterministic kernels, the same on every processor: equal seeds give equal weights.

Which weights of the reward to train with: Bayesian optimisation, then small changes. MLFS, section 3.4.

Weights that learn from random changes of themselves: policy gradient with parameter-based exploration, Sehnke et al.,
Neural Networks 23 (2010), with symmetric changes: what a change gained over its opposite on the same workload. A whole
run is one sample, so that nothing of it has to be a drawn pick.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jobcast.domain.arrays import Bools, Floats
from jobcast.domain.errors import ConfigError
from jobcast.models.scheduling.policy import Picks

BETAS = (0.5, 0.55, 0.25, 0.15, 0.15)
"""beta_1 to beta_5: completion time, deadlines, bandwidth, accuracy requirements, mean accuracy. Section 4.1."""
LOWEST, HIGHEST = 0.05, 1.0
VARIATION = 0.1
"""By which share each weight of the best is changed afterwards, up and down in turn."""


@dataclass(frozen=True, slots=True)
class Tried:
    """Weights, and what training with them was worth."""

    betas: tuple[float, ...]
    value: float


def search_betas(value_of: Callable[[tuple[float, ...]], float], rounds: int, seed: int = 0) -> tuple[Tried, ...]:
    """Everything that was tried, in order; the first are the weights of section 4.1.

    After the search small changes of the best are tried, one a weight, and kept where they are better.

    Parameters
    ----------
    value_of : what training with weights is worth on a scale that does not depend on the weights, the more the better
    rounds : of Bayesian optimisation, the first one included
    seed : of the search
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    names = [f"beta_{number}" for number in range(1, len(BETAS) + 1)]
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=4))
    # The paper's weights first: the search cannot end worse than they.
    study.enqueue_trial(dict(zip(names, BETAS, strict=True)))
    tried: list[Tried] = []

    def tell(trial: optuna.Trial) -> float:
        betas = tuple(trial.suggest_float(name, LOWEST, HIGHEST) for name in names)
        tried.append(Tried(betas, value_of(betas)))
        return tried[-1].value

    study.optimize(tell, n_trials=rounds)
    rng = np.random.default_rng(seed)
    for number in range(len(BETAS) if rounds else 0):
        # Chosen anew each time: an improvement is varied further.
        best = max(tried, key=lambda each: each.value)
        changed = list(best.betas)
        # One weight after another, so that a change's effect is its own.
        changed[number] *= 1.0 + VARIATION * rng.choice([-1.0, 1.0])
        betas = tuple(float(np.clip(beta, LOWEST, HIGHEST)) for beta in changed)
        tried.append(Tried(betas, value_of(betas)))
    return tuple(tried)


HEADS = ("jobs", "hosts")
LAYERS = ("first", "first_bias", "second", "second_bias", "last")
HIDDEN: Mapping[str, int] = {"jobs": 32, "hosts": 16}
"""Units of each hidden layer."""
CLIP = 0.2
ENTROPY = 0.003
"""Share of the choices' entropy that is added to what is maximised."""
MOST_NORM = 0.5
"""Of a gradient."""


@dataclass(frozen=True, slots=True)
class Fit:
    """How well choices are told: mean cross-entropy, and the share whose highest score is the one chosen."""

    loss: float
    accuracy: float


def need_torch() -> Any:
    """PyTorch, made deterministic; ConfigError where it is not installed."""
    # Kernels that are chosen by the processor sum in another order each, and both choices are made at the first call.
    os.environ.update(MKL_CBWR="COMPATIBLE", ATEN_CPU_CAPABILITY="default")
    try:
        import torch
    except ImportError as error:
        raise ConfigError(
            "training a scheduler needs the extra rl: pip install 'jobcast[rl]'; where there is no GPU, PyTorch's CPU "
            "build is the smaller one"
        ) from error
    # Sums over threads would depend on how many there are.
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    return torch


class Learner:
    """Two scoring networks and their optimiser.

    Parameters
    ----------
    features : by head, how many columns its rows have
    blank : columns of the jobs' rows that are not read
    seed : of the first weights

    Raises ConfigError without PyTorch.
    """

    def __init__(self, features: Mapping[str, int], *, blank: Sequence[int] = (), seed: int = 0) -> None:
        self._torch = torch = need_torch()
        rng = np.random.default_rng(seed)
        self._blank = tuple(blank)
        self._weights: dict[str, Any] = {}
        for head in HEADS:
            for name, values in _first_weights(features[head], HIDDEN[head], rng).items():
                if head == "jobs" and name == "first":
                    # Blank columns start at nothing and get no gradient, so they are never read.
                    values[list(self._blank)] = 0.0
                self._weights[f"{head}.{name}"] = torch.tensor(values, dtype=torch.float64, requires_grad=True)
        # The rate is set with each step.
        self._optimiser = torch.optim.Adam(list(self._weights.values()))

    def arrays(self) -> dict[str, Floats]:
        """Weights by name, `jobs.first` to `hosts.last`."""
        return {name: values.detach().numpy().copy() for name, values in self._weights.items()}

    def assign(self, arrays: Mapping[str, Floats]) -> None:
        """Take weights over; the optimiser forgets its moments."""
        with self._torch.no_grad():
            for name, values in self._weights.items():
                values.copy_(self._torch.tensor(arrays[name], dtype=self._torch.float64))
        self._optimiser = self._torch.optim.Adam(list(self._weights.values()))

    def imitate(self, picks: Mapping[str, Picks], rate: float) -> dict[str, Fit]:
        """One step towards another's choices: cross-entropy, the mean over each head's choices."""
        found: dict[str, Fit] = {}
        total = self._torch.zeros((), dtype=self._torch.float64)
        for head in HEADS:
            if len(picks[head]):
                chances = self._log_chances(head, picks[head])
                loss = -chances.taken.mean()
                total = total + loss
                found[head] = Fit(loss.item(), chances.right)
        self._step(total, rate)
        return found

    def fit_of(self, head: str, picks: Picks) -> Fit:
        """How well choices are told, nothing learnt."""
        with self._torch.no_grad():
            chances = self._log_chances(head, picks)
            return Fit(-chances.taken.mean().item(), chances.right)

    def log_chances(self, head: str, picks: Picks) -> Floats:
        """Log-probability of each choice, (n,)."""
        with self._torch.no_grad():
            return self._log_chances(head, picks).taken.numpy().copy() if len(picks) else np.empty(0)

    def improve(
        self, picks: Mapping[str, Picks], before: Mapping[str, Floats], advantage: Mapping[str, Floats], rate: float
    ) -> None:
        """One step of clipped PPO.

        Parameters
        ----------
        before : by head, (n,) log-probability of each choice when it was made
        advantage : by head, (n,) how much better it went than expected
        rate : Adam's learning rate
        """
        torch, count = self._torch, 0
        gain = torch.zeros((), dtype=torch.float64)
        for head in HEADS:
            if not len(picks[head]):
                continue
            chances = self._log_chances(head, picks[head])
            # How much likelier the choice is now than when it was made.
            ratio = torch.exp(chances.taken - torch.tensor(before[head]))
            good = torch.tensor(advantage[head])
            kept = torch.clamp(ratio, 1.0 - CLIP, 1.0 + CLIP)
            gain = gain + torch.minimum(ratio * good, kept * good).sum() + ENTROPY * chances.entropy.sum()
            count += len(picks[head])
        if count:
            self._step(-gain / count, rate)

    def save(self, path: Path) -> None:
        """Weights and the optimiser's moments, so that training goes on as if it had not stopped."""
        state = {"weights": {name: values.detach() for name, values in self._weights.items()}}
        self._torch.save(state | {"optimiser": self._optimiser.state_dict()}, path)

    def restore(self, path: Path) -> None:
        """Take over what `save` wrote."""
        state = self._torch.load(path, weights_only=True)
        self.assign({name: values.numpy() for name, values in state["weights"].items()})
        self._optimiser.load_state_dict(state["optimiser"])

    def _log_chances(self, head: str, picks: Picks) -> "_Chances":
        torch = self._torch
        rows = torch.tensor(picks.rows)
        weight = {name: self._weights[f"{head}.{name}"] for name in LAYERS}
        low = torch.tanh(rows @ weight["first"] + weight["first_bias"])
        scores = torch.tanh(low @ weight["second"] + weight["second_bias"]) @ weight["last"]
        plain = scores.detach().numpy()
        # Taken off before the exponential; a constant of the choice, so no gradient is lost.
        highest = np.maximum.reduceat(plain, picks.begins[:-1])
        choice = torch.tensor(np.repeat(np.arange(len(picks)), picks.sizes))
        shifted = scores - torch.tensor(highest)[choice]
        sums = torch.zeros(len(picks), dtype=torch.float64).index_add(0, choice, torch.exp(shifted))
        logs = shifted - torch.log(sums)[choice]
        spread = torch.zeros(len(picks), dtype=torch.float64).index_add(0, choice, -torch.exp(logs) * logs)
        at = picks.begins[:-1] + picks.chosen
        return _Chances(logs[torch.tensor(at)], spread, float(np.mean(plain[at] >= highest)))

    def _step(self, loss: Any, rate: float) -> None:
        for group in self._optimiser.param_groups:
            group["lr"] = rate
        self._optimiser.zero_grad()
        loss.backward()
        if self._blank:
            self._weights["jobs.first"].grad[list(self._blank)] = 0.0
        # After blank columns were cleared, so that these do not count in the norm.
        self._torch.nn.utils.clip_grad_norm_(list(self._weights.values()), MOST_NORM)
        self._optimiser.step()


@dataclass(frozen=True, slots=True, eq=False)
class _Chances:
    """Of choices: log-probability of what was taken, entropy, and how often the highest score was taken."""

    taken: Any
    entropy: Any
    right: float


def _first_weights(features: int, hidden: int, rng: np.random.Generator) -> dict[str, Floats]:
    """Glorot's uniform draws; the last layer near zero, so that at first all choices are about as likely."""

    def drawn(rows: int, columns: int) -> Floats:
        most = np.sqrt(6.0 / (rows + columns))
        return rng.uniform(-most, most, (rows, columns))

    return {
        "first": drawn(features, hidden),
        "first_bias": np.zeros(hidden),
        "second": drawn(hidden, hidden),
        "second_bias": np.zeros(hidden),
        "last": drawn(hidden, 1)[:, 0] / 10.0,
    }


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
