"""Names of components by what the places share at which they are strong, each with its test.

A rule is chosen on one half of the texts and judged on the other, beside places shuffled within
each text.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from ...concepts.beyond_token import STRONG, indicator, strong
from ...tails import normal_above
from .contexts import in_parts
from .places import ATTRIBUTES, REST, Places, Rule

LISTED = 12  # words that a rule may list
SHOWN = 4  # words that its name shows
FEWEST = 3  # texts in which a word is strong that a rule lists
SPARE = 0.02  # correlation that rare words of a list add at least, all together
POSITION = "position"
LEVELS = (
    STRONG,
    1.0,
    1.25,
)  # shares of the usual size of a code, from which on it is strong
ENOUGH = 25  # strong places that a higher level leaves for choosing a rule
BETTER = 0.05  # correlation that a second condition or a higher level adds at least
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
    fires
        (n,) where the component is strong.
    """

    about: str
    label: str
    phi: float
    p_value: float
    auc: float
    low: float
    high: float
    holds: np.ndarray
    fires: np.ndarray


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
        self._listable = {n: places.listed(n) for n in (*ATTRIBUTES, REST)}
        self._listable[POSITION] = places.sample.position[None] + 1
        self._names = places.names

    def name(self, code: np.ndarray) -> Name:
        """Return the best name of a component by its code (n,), and where it is strong.

        Some codes have a tail of one kind of places above a mixture, others none: from which level
        on a code is strong is chosen with the rule, on the half of the texts that rules are
        chosen on.
        """
        best = -np.inf
        for level in LEVELS:
            fires = strong(code[:, None], level)[:, 0]
            if level > STRONG and fires[self.half].sum() < ENOUGH:
                break
            rule = self.rule(fires)
            score = phi(rule.holds[self.half], fires[self.half])
            if score >= best + BETTER:
                best = score
                chosen = rule, fires
        return self.judged(*chosen)

    def rule(self, fires: np.ndarray) -> Rule:
        """Return what places (n,) share most, of one or two conditions."""
        train = self.half
        chosen = self._best(fires[train], np.ones(train.sum(), dtype=bool))
        within = self._best(fires[train], chosen.holds[train], apart=chosen)
        label = f"{chosen.label} and {within.label}"
        both = Rule(chosen.about, label, chosen.holds & within.holds)
        gain = phi(both.holds[train], fires[train]) - phi(
            chosen.holds[train], fires[train]
        )
        return both if gain >= BETTER else chosen

    def held(self, name: Name, code: np.ndarray) -> tuple[float, ...]:
        """Return at which share of places of the other half a rule holds.

        Of the strongest fifth of the strong ones by the code (n,), of the three fifths in the
        middle, and of all that are not strong.
        """
        strongest, middle, _ = in_parts(code, name.fires)
        parts = [strongest, middle, np.flatnonzero(~name.fires)]
        rows = [part[~self.half[part]] for part in parts]
        return tuple(float(name.holds[r].mean()) if len(r) else 0.0 for r in rows)

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
        p_value = float(normal_above(z)) if variance.any() else 1.0
        return Name(
            rule.about,
            rule.label,
            phi(holds, aim),
            p_value,
            float(auc),
            float(low),
            float(high),
            rule.holds,
            fires,
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
        unit = self.unit[self.half][among]
        for attribute, words in self._listable.items():
            # A second condition is about another word than the first.
            if apart is not None and apart.about == attribute:
                continue
            listed = self._listed(words[:, self.half][:, among], aim[among], unit)
            if listed is None:
                continue
            if attribute == POSITION:
                rule = _stretch(words[0], listed)
            else:
                label = self._label(attribute, listed)
                holds = np.asarray(np.isin(words, listed).any(axis=0))
                rule = Rule(attribute, label, holds)
            score = phi(rule.holds[self.half][among], aim[among])
            if score > most:
                most = score
                best = rule
        return best

    def _listed(
        self, words: np.ndarray, aim: np.ndarray, unit: np.ndarray
    ) -> np.ndarray | None:
        """Return the words (k, n) at which strong places are frequent, the commonest first."""
        if not aim.any():
            return None
        strong_at = words[:, aim]
        hits = np.bincount(strong_at.ravel())
        count = np.bincount(words.ravel())
        # What is strong in one text alone says nothing of others.
        texts = int(unit.max()) + 1
        by_text = np.unique(strong_at * texts + unit[aim]) // texts
        often = np.flatnonzero(np.bincount(by_text) >= FEWEST)
        often = often[often > 0]
        if not len(often):
            return None
        order = np.argsort(-hits[often] / (count[often] + 2), kind="stable")
        order = often[order][:LISTED]
        few = order[: int(_of_lists(words, order, aim).argmax()) + 1]
        few = few[np.argsort(-hits[few], kind="stable")]
        # The commonest of them say nearly as much, and more of other texts.
        scores = _of_lists(words, few, aim)
        enough = int((scores >= scores.max() - SPARE).argmax())
        return np.asarray(few[: enough + 1])

    def _label(self, attribute: str, numbers: np.ndarray) -> str:
        words = " · ".join(self._names[i] for i in numbers[:SHOWN].tolist())
        return f"{attribute} “{words}”"


def _of_lists(words: np.ndarray, order: np.ndarray, aim: np.ndarray) -> np.ndarray:
    """Return the correlation of `aim` (n,) with the first of some words (k, n), the first two, ..."""
    holds = np.stack([(words == number).any(axis=0) for number in order])
    holds = np.logical_or.accumulate(holds)
    return _phi((holds & aim).sum(axis=1), holds.sum(axis=1), aim.sum(), len(aim))


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
