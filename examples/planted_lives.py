"""Concepts with known lives: activations over checkpoints in which features come, go, turn, widen.

Every token has one sparse code for the whole run. What changes from checkpoint to checkpoint is
how strongly each feature is written, and in which direction. A method that is given the
activations alone should find the features, and say when each of them was born.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ontogeny.errors import ArgumentError, check_number, check_whole
from planted_recovery import Recovered, recovered

DENSE_SCORES = 8  # background directions that every token uses
MEAN_SIZE = 2.0  # length of the mean, in standard deviations of the signal
# Before the last checkpoint, by when widening features have all of their tokens.
WIDEN_BY = 3


@dataclass(frozen=True, eq=False)
class PlantedLives:
    """Activations over checkpoints, and the lives that were planted in them.

    Attributes
    ----------
    activations
        (S, n, m) float32: n tokens with m features at S checkpoints.
    texts
        (n,): the text of every token.
    codes
        (n, f) float32: how strongly each of the f planted features fires on each token, at full
        strength.
    strength
        (S, f): 0 where a feature is absent, 1 where it is there in full.
    kind
        (f,): ``"steady"``, ``"born"``, ``"dying"``, ``"turning"``, ``"born and turning"`` or
        ``"widening"``.
    born
        (f,): index of the first checkpoint at half of its greatest strength, of features that are
        born during the run; -1 of others.
    gone
        (f,): index of the first checkpoint at which it is absent again; -1 if it never is.
    """

    activations: np.ndarray
    texts: np.ndarray
    codes: np.ndarray
    strength: np.ndarray
    kind: np.ndarray
    born: np.ndarray
    gone: np.ndarray

    def recovered(self, codes: np.ndarray, born: np.ndarray) -> Recovered:
        """Return how much of what was planted is in codes (n, r) and in their births (r,).

        `born` holds the index of the checkpoint at which each latent is said to be born, -1 for
        those that are not.

        Examples
        --------
        >>> run = planted_lives(n=600)
        >>> run.recovered(run.codes, run.born)
        Recovered(found=1.0, recall=1.0, said=36, exact=1.0, steady=0, widening=0)
        """
        return recovered(self.codes, self.born, self.kind, codes, born)

    def permuted(self, random_state: int = 0) -> np.ndarray:
        """Return the activations with the tokens of each checkpoint in another random order.

        Nothing is shared by the checkpoints, and so nothing is born.
        """
        rng = np.random.default_rng(random_state)
        return np.stack(
            [values[rng.permutation(len(values))] for values in self.activations]
        )

    def jittered(self, noise: float = 0.3, random_state: int = 0) -> np.ndarray:
        """Return S copies of the last checkpoint with fresh noise: nothing changes, ever.

        `noise` is a standard deviation, against that of the activations.
        """
        rng = np.random.default_rng(random_state)
        last = self.activations[-1]
        size = np.float32(noise * last.std())
        shape = self.activations.shape
        return last + size * rng.standard_normal(shape, dtype=np.float32)


def planted_lives(
    n: int = 5000,
    m: int = 64,
    *,
    steady: int = 32,
    born: int = 24,
    dying: int = 12,
    turning: int = 16,
    born_turning: int = 12,
    widening: int = 0,
    nested: float = 0.0,
    n_steps: int = 10,
    noise: float = 0.25,
    dense: float = 0.25,
    growth: float = 8.0,
    tokens_per_text: int = 25,
    random_state: int = 0,
) -> PlantedLives:
    """Make activations over checkpoints from sparse features whose lives are known.

    A feature fires on a share of the tokens between 1 % and 10 % (log-uniform), with values
    ``0.5 + Exp(0.5)`` and an amplitude between 0.7 and 1.4 (log-uniform), in a random direction.
    Dense Gaussian scores with fresh directions at every checkpoint, isotropic noise and a mean are
    added, and everything grows.

    Parameters
    ----------
    n, m
        Tokens and features of the activations.
    steady, born, dying, turning, born_turning, widening
        Planted features of each kind. Born ones begin at checkpoints 1, 2, ... in turn (those that
        also turn, by 60° over their life, no later than the third last but one); dying ones are
        gone from checkpoints 3, 4, ... on; turning ones turn by 90° over the run; widening ones
        fire on half of their tokens at first, and on all of them later.
    nested
        Share of the features that fire only where another one does.
    n_steps
        Number S of checkpoints.
    noise, dense
        Variance of the isotropic noise and of the dense scores, against that of the features.
    growth
        How many times longer the activations are at the end.
    tokens_per_text
        Tokens of each text.
    random_state
        Seed of everything.

    Raises
    ------
    ArgumentError
        If a number is out of range, or there are fewer than six checkpoints.

    Examples
    --------
    >>> run = planted_lives(n=600, random_state=1)
    >>> run.activations.shape, run.codes.shape, int((run.born >= 0).sum())
    ((10, 600, 64), (600, 96), 36)
    """
    counts = {
        "steady": steady,
        "born": born,
        "dying": dying,
        "turning": turning,
        "born and turning": born_turning,
        "widening": widening,
    }
    for name, count in counts.items():
        check_whole(name.replace(" and ", "_"), count, 0)
    _check(
        n,
        m,
        n_steps,
        nested,
        noise,
        dense,
        growth,
        tokens_per_text,
        sum(counts.values()),
    )
    rng = np.random.default_rng(random_state)
    kind = np.repeat(np.array(list(counts)), list(counts.values()))
    codes = _codes(n, kind, nested, rng)
    strength = _strength(kind, n_steps, rng)
    signal = _signal(codes, strength, _directions(kind, strength, m, rng), kind, rng)
    first = (strength >= 0.5 * strength.max(axis=0) - 1e-9).argmax(axis=0)
    return PlantedLives(
        activations=_observed(signal, noise, dense, growth, rng),
        texts=np.arange(n) // tokens_per_text,
        codes=codes,
        strength=strength,
        kind=kind,
        born=np.where(np.isin(kind, ("born", "born and turning")), first, -1),
        gone=np.where(kind == "dying", (strength > 0).sum(axis=0), -1),
    )


def _check(
    n: int,
    m: int,
    n_steps: int,
    nested: float,
    noise: float,
    dense: float,
    growth: float,
    tokens_per_text: int,
    features: int,
) -> None:
    check_whole("n", n, 10)
    check_whole("m", m, 2)
    check_whole("n_steps", n_steps, 6)
    check_whole("tokens_per_text", tokens_per_text)
    check_number("nested", nested, 0, 1)
    check_number("noise", noise)
    check_number("dense", dense)
    check_number("growth", growth, above=True)
    if features < 2:
        raise ArgumentError(
            f"there must be at least two planted features; got {features}."
        )


def _codes(
    n: int, kind: np.ndarray, nested: float, rng: np.random.Generator
) -> np.ndarray:
    """Return codes (n, f); those of nested features are 0 where their parent's are."""
    f = len(kind)
    share = np.exp(rng.uniform(np.log(0.01), np.log(0.1), f))
    amplitude = np.exp(rng.uniform(np.log(0.7), np.log(1.4), f))
    fires = rng.uniform(size=(n, f)) < share
    children = rng.permutation(f)[: round(nested * f)]
    others = np.setdiff1d(np.arange(f), children)
    for child in children if len(others) else ():
        inside = rng.uniform(size=n) < rng.uniform(0.3, 0.7)
        fires[:, child] = fires[:, rng.choice(others)] & inside
    values = 0.5 + rng.exponential(0.5, (n, f))
    return (fires * values * amplitude).astype(np.float32)


def _strength(kind: np.ndarray, n_steps: int, rng: np.random.Generator) -> np.ndarray:
    """Return strengths (S, f) between 0 and 1."""
    t = np.arange(n_steps)
    strength = np.ones((n_steps, len(kind)))
    last = {"born": n_steps - 2, "born and turning": n_steps - 4}
    for name, latest in last.items():
        for i, j in enumerate(np.flatnonzero(kind == name)):
            ramp = rng.choice([1, 3])
            strength[:, j] = np.clip((t - (1 + i % latest) + 1) / ramp, 0, 1)
    for i, j in enumerate(np.flatnonzero(kind == "dying")):
        strength[:, j] = t < 3 + i % (n_steps - 4)
    return strength


def _directions(
    kind: np.ndarray, strength: np.ndarray, m: int, rng: np.random.Generator
) -> np.ndarray:
    """Return unit directions (S, f, m): turning ones go steadily from one to another."""
    f = strength.shape[1]
    start, aside = (_unit(rng.standard_normal((f, m))) for _ in range(2))
    aside = _unit(aside - (aside * start).sum(1, keepdims=True) * start)
    age = np.cumsum(strength > 0, axis=0) - 1.0
    life = np.maximum(age.max(axis=0), 1)
    whole = {"turning": 90.0, "born and turning": 60.0}
    angle = np.array([np.deg2rad(whole.get(str(k), 0.0)) for k in kind])
    turned = (np.clip(age / life, 0, 1) * angle)[:, :, None]
    return np.cos(turned) * start + np.sin(turned) * aside


def _signal(
    codes: np.ndarray,
    strength: np.ndarray,
    directions: np.ndarray,
    kind: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return what the features write (S, n, m)."""
    n_steps = len(strength)
    late = (
        rng.uniform(size=codes.shape) < 0.5
    )  # tokens on which a widening feature fires late
    late &= kind == "widening"
    from_step = rng.integers(2, n_steps - WIDEN_BY + 1, len(kind))
    return np.stack(
        [
            np.where(late & (t < from_step), 0, codes)
            @ (strength[t][:, None] * directions[t])
            for t in range(n_steps)
        ]
    )


def _observed(
    signal: np.ndarray,
    noise: float,
    dense: float,
    growth: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return activations (S, n, m): the signal with background, noise, a mean and a size."""
    n_steps, n, m = signal.shape
    scores = rng.standard_normal((n, DENSE_SCORES))
    found = np.empty(signal.shape, dtype=np.float32)
    for t, clean in enumerate(signal):
        variance = clean.var(axis=0).sum()
        background = _unit(rng.standard_normal((DENSE_SCORES, m)))
        background *= np.sqrt(dense * variance / DENSE_SCORES)
        rest = rng.standard_normal((n, m)) * np.sqrt(noise * variance / m)
        mean = _unit(rng.standard_normal((1, m))) * MEAN_SIZE * np.sqrt(variance)
        size = growth ** (t / (n_steps - 1))
        found[t] = size * (clean + scores @ background + rest + mean)
    return found


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)
