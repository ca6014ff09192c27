"""Names of components by what the places share at which they are strong, each with its test.

A rule is chosen on one half of the texts and judged on the other, beside places shuffled within
each text.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.stats import norm

from ...concepts.beyond_token import indicator
from .places import ATTRIBUTES, Places, Rule

LISTED = 12  # words that a rule may list
SHOWN = 4  # words that its name shows
FEWEST = 3  # strong places of a word that a rule lists
SPARE = 0.02  # correlation that rare words of a list add at least, all together
POSITION = "position"
BETTER = 0.05  # correlation that a second condition adds at least
DRAWS = 200  # of texts, for the interval of the detection score


class Name(NamedTuple):
    """What a component answers to.

    Attributes
    ----------
    about
        One of the words, a position, or another place.
    label
        In words.
    phi
        Correlation of the rule with the strong places, on texts that it was not chosen on.
    p_value
        That it is not larger than with the places shuffled within their texts; not corrected.
    auc
        How well the rule tells strong places from others on these texts, `low` to `high`.
    holds
        (n,) where the rule holds.
    """

    about: str
    label: str
    phi: float
    p_value: float
    auc: float
    low: float
    high: float
    holds: np.ndarray


class Namer:
    """Finds names for components of the same rows.

    Parameters
    ----------
    places
        The rows.
    half
        (n,) True for the half of the texts that rules are chosen on.
    unit
        (n,) units of texts.
    """

    def __init__(
        self, places: Places, half: np.ndarray, unit: np.ndarray, seed: int
    ) -> None:
        self.half = half
        self.unit = unit
        self.seed = seed
        self._fixed = [
            rule for rule in places.rules() if 0 < rule.holds.sum() < len(half)
        ]
        held = np.stack([rule.holds[half] for rule in self._fixed])
        # On the half that rules are chosen on.
        self._holds = sparse.csr_array(held.astype(np.float32))
        self._words = {
            name: places.words(offset) for name, offset in ATTRIBUTES.items()
        }
        self._words[POSITION] = places.sample.position + 1
        self._names = places.names

    def name(self, fires: np.ndarray) -> Name:
        """Return the best name of a component that is strong at `fires` (n,)."""
        train = self.half
        chosen = self._best(fires[train], np.ones(train.sum(), dtype=bool))
        within = self._best(fires[train], chosen.holds[train], apart=chosen)
        label = f"{chosen.label} and {within.label}"
        both = Rule(chosen.about, label, chosen.holds & within.holds)
        gain = phi(both.holds[train], fires[train]) - phi(
            chosen.holds[train], fires[train]
        )
        return self.judged(both if gain >= BETTER else chosen, fires)

    def judged(self, rule: Rule, fires: np.ndarray) -> Name:
        """Return a rule with what it says of places on the other half of the texts."""
        rows = ~self.half
        holds = rule.holds[rows]
        aim = fires[rows]
        by_unit = indicator(self.unit[rows]).astype(np.float64)
        sizes, held, hits, true = (
            by_unit @ values.astype(np.float64)
            for values in (np.ones(len(aim)), holds, aim, holds & aim)
        )
        # Shuffled within a text, hits and places of the rule meet as balls drawn from an urn.
        expected = held * hits / sizes
        variance = (
            expected
            * (sizes - held)
            * (sizes - hits)
            / (sizes * np.maximum(sizes - 1, 1))
        )
        z = (true - expected).sum() / np.sqrt(max(float(variance.sum()), 1e-30))
        rng = np.random.default_rng(self.seed)
        weights = rng.multinomial(
            len(sizes), np.full(len(sizes), 1 / len(sizes)), DRAWS
        )
        counts = np.stack([true, held, hits, sizes])
        auc = _auc(counts.sum(axis=1)[:, None])[0]
        low, high = np.quantile(_auc(counts @ weights.T), [0.025, 0.975])
        p_value = float(norm.sf(z)) if variance.any() else 1.0
        return Name(
            rule.about,
            rule.label,
            phi(holds, aim),
            p_value,
            float(auc),
            float(low),
            float(high),
            rule.holds,
        )

    def _best(
        self, aim: np.ndarray, among: np.ndarray, apart: Rule | None = None
    ) -> Rule:
        """Return the rule that correlates most with `aim` among some rows of the first half."""
        hits = aim & among
        true, held = (
            self._holds @ np.stack([hits, among], axis=1).astype(np.float32)
        ).T
        scores = _phi(true, held, hits.sum(), among.sum())
        order = np.argsort(-scores, kind="stable")
        best = self._fixed[order[0]]
        most = scores[order[0]]
        for attribute, words in self._words.items():
            # A second condition is about another word than the first.
            if apart is not None and apart.about == attribute:
                continue
            listed = self._listed(words[self.half][among], aim[among])
            if listed is None:
                continue
            if attribute == POSITION:
                rule = _stretch(words, listed)
            else:
                label = self._label(attribute, listed)
                rule = Rule(attribute, label, np.isin(words, listed))
            score = phi(rule.holds[self.half][among], aim[among])
            if score > most:
                most = score
                best = rule
        return best

    def _listed(self, words: np.ndarray, aim: np.ndarray) -> np.ndarray | None:
        """Return the words at which strong places are frequent, the commonest first."""
        hits = np.bincount(words, weights=aim)
        count = np.bincount(words)
        often = np.flatnonzero(hits >= FEWEST)
        often = often[often > 0]
        if not len(often):
            return None
        order = often[np.argsort(-hits[often] / (count[often] + 2), kind="stable")][
            :LISTED
        ]
        scores = _phi(
            np.cumsum(hits[order]), np.cumsum(count[order]), aim.sum(), len(aim)
        )
        few = order[: int(scores.argmax()) + 1]
        few = few[np.argsort(-hits[few], kind="stable")]
        # The commonest of them say nearly as much, and more of other texts.
        scores = _phi(np.cumsum(hits[few]), np.cumsum(count[few]), aim.sum(), len(aim))
        enough = int((scores >= scores.max() - SPARE).argmax())
        return np.asarray(few[: enough + 1])

    def _label(self, attribute: str, numbers: np.ndarray) -> str:
        words = " · ".join(self._names[i] for i in numbers[:SHOWN].tolist())
        return f"{attribute} “{words}”"


def _stretch(position: np.ndarray, listed: np.ndarray) -> Rule:
    """Return the rule of all positions from the first to the last that is listed."""
    first = int(listed.min())
    last = int(listed.max())
    label = f"{POSITION} {first}" if first == last else f"{POSITION} {first} to {last}"
    return Rule(POSITION, label, (position >= first) & (position <= last))


def phi(one: np.ndarray, other: np.ndarray) -> float:
    """Return the correlation of two properties of places (n,); 0 where one never differs."""
    return float(_phi((one & other).sum(), one.sum(), other.sum(), len(one)))


def _phi(true: np.ndarray, held: np.ndarray, hits: float, n: int) -> np.ndarray:
    spread = held * (n - held) * (hits * (n - hits))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(spread > 0, (n * true - held * hits) / np.sqrt(spread), 0.0)


def _auc(counts: np.ndarray) -> np.ndarray:
    """Return the area under the curve of a yes or no, from (4, draws) counts."""
    true, held, hits, n = counts
    others = np.maximum(n - hits, 1)
    return np.asarray(0.5 * (1 + true / np.maximum(hits, 1) - (held - true) / others))
