"""What is found in one layer before its checkpoints are observed: components, names, contexts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ...inputs import ShownTexts
from ...inputs.sampling import TokenSample
from ...multiple_tests import holm
from ...observables.fit_identity import SKETCH, code_sketch, fit_id
from ...observables.pieces import object_array
from ...scratch import let_go, scratch_array
from .checkpoint import few_at_a_time, presence
from .components import (
    AGAIN,
    Components,
    components,
    in_file,
    likeness,
    nearest,
    sharpness,
)
from .contexts import AROUND, BANDS, BINS, contexts
from .naming import POSITION, Name, Namer
from .parts import Predictor, scaled
from .places import ATTRIBUTES, PLACE, REST, Places

LEVEL = 0.05  # of names, corrected over the components of a layer
LIMIT = 95  # percentile of the names of an untrained model that a name is beyond
# Correlation of a rule with the strong places, below which it names nothing.
LEAST = 0.3
# How well a rule tells strong places from others, below which it leaves most of them out.
DETECTED = 0.6
# Share of the strongest fifth of the strong places, and of the middle three fifths, below which a
# name is one of the others alone: one of SmolLM2 held at none of the strongest.
HELD = 1 / 3
CHANCE = 0.5
# Correlation of a code with its read-out from an untrained model, from which on it gets no name: so
# two layers of one that learned nothing have at most 2 names, and up to 6 without (18 of them), and
# 41 of 42 names of trained ones stay.
UNTAUGHT = 0.5
# What names are about: they are compared with those of controls that are about the same.
ABOUT = (*ATTRIBUTES, REST, POSITION, PLACE)
HELD_AT = ("top", "middle", "other")
BEYOND = "beyond the token"
LEARNED = "learned part"


@dataclass(frozen=True, eq=False)
class Finder:
    """Finds components of a layer, and says what they answer to.

    Parameters
    ----------
    namer, places
        For names and contexts; None finds components alone.
    half
        (n,) True for the tokens of one half of the texts.
    count, latents
        Components at most, and latents of a sparse dictionary beyond them.
    examples
        Contexts of each band.
    texts_shown
        At whose tokens it is kept where components are strong; with `places`.
    """

    namer: Namer | None
    places: Places | None
    texts_shown: ShownTexts | None
    half: np.ndarray
    count: int
    examples: int
    seed: int
    latents: int = 0

    def components(self, X: np.ndarray) -> Components:
        """Return the components of scaled rows (n, m) that both halves of the texts find.

        Their codes lie in files: those of a step are idle while others are searched.
        """
        X = np.asarray(X, dtype=np.float32)
        found = components(X, self.half, self.count, self.seed, self.latents)
        return found.kept(np.flatnonzero(found.again >= AGAIN)).in_files()

    def layer(
        self,
        first: np.ndarray,
        blank: np.ndarray,
        left: Mapping[int, np.ndarray],
        grown: Sequence[np.ndarray] = (),
    ) -> dict[str, Any]:
        """Return what a state keeps of a layer.

        Parameters
        ----------
        first
            (n, m) scaled rows of the first checkpoint, without the token.
        blank
            Rows of an untrained model: the names of its components are a limit, and what can be
            read from it gets no name.
        left
            Rows of the steps that are searched, the last step first.
        grown
            The same of the first checkpoint with the norms of each of these steps.
        """
        last, *earlier = left
        untrained = self.components(blank)
        starts_untrained = np.array_equal(first, blank)
        of_learned = self._learned(first, left[last])
        first = in_file(np.asarray(first, dtype=np.float16))
        found = {step: self.components(X) for step, X in left.items()}
        merged = [(last, BEYOND, found[last]), (last, LEARNED, of_learned)]
        merged += [(step, BEYOND, found[step]) for step in earlier]
        joined = _joined(merged)
        codes = joined["codes"]
        count = codes.shape[1]
        in_learned = likeness(codes, of_learned.codes)
        fits = scratch_array((3 + len(earlier), len(codes), count), np.float16)
        fits[0] = codes
        for half, of_half in enumerate(_halves(merged, joined["kept"])):
            fits[1 + half] = of_half
            let_go(fits)
        for fit, step in zip(fits[3:], earlier, strict=True):
            other, near = nearest(codes, found[step].codes)
            fit[:] = np.where(near >= AGAIN, other, 0)
            found[step].let_go()
        let_go(fits)
        untaught = self._predictor(blank).readable(np.asarray(fits[0], np.float32))
        untaught = untaught.mean(axis=0)
        of_grown: dict[str, Any] = {}
        if grown:
            readable = np.max([self._readable(X, fits) for X in grown], axis=0)
            of_grown["grown_readability"] = ("fit", "concept"), readable
            # A base that is tuned has learned before, and grown it has too.
            if starts_untrained:
                untaught = np.fmax(untaught, readable[0])
        numbers = {
            "n_again": found[last],
            "n_learned": of_learned,
            "n_untrained": untrained,
        }
        variables: dict[str, Any] = {
            **{name: float(len(part.again)) for name, part in numbers.items()},
            "codes": (("fit", "token", "concept"), fits),
            "in_learned": ("concept", in_learned),
            **{
                n: ("concept", joined[n])
                for n in ("again", "sharpness", "found_at", "found_in")
            },
            "fit_step": ("fit", np.array([last, last, last, *earlier], dtype=float)),
            "untrained_readability": ("concept", untaught),
            **of_grown,
            **self._described(codes, untrained.codes, untaught < UNTAUGHT),
            "first": (("token", "feature"), first),
        }
        coords = {
            "concept": np.arange(count),
            "feature": np.arange(first.shape[1]),
            "fit": _fits(earlier),
            "band": list(BANDS),
            "place": np.arange(AROUND[0], AROUND[1] + 1),
            "sketch": np.arange(SKETCH),
            "bin": BINS[:-1],
        }
        return labelled(variables, coords)

    def _learned(self, first: np.ndarray, end: np.ndarray) -> Components:
        """Return the components of what the first checkpoint does not predict of the end."""
        rows = self._predictor(first).left(np.asarray(end, dtype=np.float32))
        return self.components(scaled(rows))

    def _predictor(self, X: np.ndarray) -> Predictor:
        return Predictor(np.asarray(X, dtype=np.float32), self.half)

    def _readable(self, X: np.ndarray, codes: np.ndarray) -> np.ndarray:
        return presence(self._predictor(X), codes)[0]

    def _described(
        self, codes: np.ndarray, untrained: np.ndarray, taught: np.ndarray
    ) -> dict[str, Any]:
        """Return names, beside those of an untrained model's components, and contexts.

        Of codes (n, r) those that are `taught` (r,): no untrained model tells them.
        """
        if self.namer is None or self.places is None:
            return {}
        names = [self.namer.name(column) for column in codes.T]
        limits = _limits([self.namer.name(column) for column in untrained.T])
        held = np.array(
            [self.namer.held(*pair) for pair in zip(names, codes.T, strict=True)]
        ).reshape(-1, len(HELD_AT))
        fires = np.array([name.fires for name in names]).reshape(-1, len(codes)).T
        limit = np.array([limits.get(name.about, LEAST) for name in names])
        p_values = holm([name.p_value for name in names])
        phi = np.array([name.phi for name in names])
        auc, low, high = (
            np.array([(n.auc, n.low, n.high) for n in names]).reshape(-1, 3).T
        )
        shown = (p_values <= LEVEL) & (phi > np.maximum(limit, LEAST))
        shown &= (auc >= DETECTED) & (low > CHANCE) & taught
        shown &= held[:, :2].min(axis=1) >= HELD
        parts = [
            contexts(
                codes[:, j],
                fires[:, j],
                name.holds & has_name,  # what names nothing is missed by nothing
                self.places,
                self.examples,
                self.seed,
            )
            for j, (name, has_name) in enumerate(zip(names, shown, strict=True))
        ]
        words = object_array([part.pop("words") for part in parts])
        tokens = ("band", "example", "place")
        dims = {"context_id": tokens, "context_code": tokens, "histogram": ("bin",)}
        stacked = {
            name: (
                ("concept", *dims.get(name, ("band", "example"))),
                np.stack([p[name] for p in parts]),
            )
            for name in (parts[0] if parts else ())
        }
        return {
            **stacked,
            "words": ("concept", words),
            "rule": ("concept", object_array([name.label for name in names])),
            "name": ("concept", object_array(_shown_names(names, shown, words))),
            "name_phi": ("concept", phi),
            "named_phi": ("concept", np.where(shown, phi, 0.0)),
            "named_about": (
                "concept",
                np.where(shown, [ABOUT.index(n.about) for n in names], -1.0),
            ),
            "name_limit": ("concept", limit),
            "name_p": ("concept", p_values),
            "name_auc": ("concept", auc),
            "name_auc_low": ("concept", low),
            "name_auc_high": ("concept", high),
            **{
                f"name_{part}": ("concept", share)
                for part, share in zip(HELD_AT, held.T, strict=True)
            },
            "firing": ("concept", fires.mean(axis=0)),
            **self._at_shown(fires),
            "fit_id": fit_id(codes),
            "code_sketch": _sketch(codes, self.places.sample),
            "n_named": float(shown.sum()),
        }

    def _at_shown(self, fires: np.ndarray) -> dict[str, Any]:
        """Return 1 where components are strong in the texts shown, 0 where not, -1 elsewhere."""
        if self.places is None or self.texts_shown is None:
            return {}
        rows = self.places.rows_of(self.texts_shown)
        strong_there = np.where(rows >= 0, fires[rows].transpose(2, 0, 1), -1)
        dims = ("concept", "shown_text", "shown_place")
        return {"shown_fires": (dims, strong_there.astype(np.int8))}


def _joined(parts: list[tuple[int, str, Components]]) -> dict[str, Any]:
    """Return components of several fits as one list; those that an earlier one has are left out.

    `kept` says which of each fit are not.
    """
    codes: list[np.ndarray] = []
    kept: list[np.ndarray] = []
    for _, _, found in parts:
        near = np.zeros(len(found.again))
        for known in codes:
            near = np.maximum(near, likeness(found.codes, known))
        kept.append(np.flatnonzero(near < AGAIN))
        codes.append(found.codes[:, kept[-1]])
        found.let_go()
    sizes = [len(which) for which in kept]
    again = [
        found.again[which] for (_, _, found), which in zip(parts, kept, strict=True)
    ]
    return {
        "kept": kept,
        "codes": np.concatenate(codes, axis=1),
        "again": np.concatenate(again),
        "sharpness": np.concatenate([sharpness(some) for some in codes]),
        "found_at": np.repeat([float(step) for step, _, _ in parts], sizes),
        "found_in": np.repeat(object_array([part for _, part, _ in parts]), sizes),
    }


def _halves(
    parts: list[tuple[int, str, Components]], kept: list[np.ndarray]
) -> Iterator[np.ndarray]:
    """Give the codes (n, r) of each half's fits for those that are kept, one half in memory."""
    for half in range(2):
        columns = zip((found for _, _, found in parts), kept, strict=True)
        yield np.concatenate(
            [found.halves[half][:, which] for found, which in columns], axis=1
        )
        for _, _, found in parts:
            found.let_go()


def _sketch(
    codes: np.ndarray, sample: TokenSample
) -> tuple[tuple[str, str], np.ndarray]:
    """Return `code_sketch` of codes (n, r), of which a few are in double precision at a time."""
    parts = [code_sketch(part, sample) for part in few_at_a_time(codes)]
    return parts[0][0], np.concatenate([values for _, values in parts])


def _fits(earlier: list[int]) -> list[str]:
    return ["all texts", "half 1", "half 2", *(f"step {step}" for step in earlier)]


def labelled(values: Mapping[str, Any], coords: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``(dims, array)`` pairs with labels, so that layers of other sizes can be stacked."""
    arrays = dict(values)
    for name, value in values.items():
        if isinstance(value, tuple):
            dims = (value[0],) if isinstance(value[0], str) else value[0]
            of_dims = {dim: coords[dim] for dim in dims if dim in coords}
            arrays[name] = xr.DataArray(value[1], of_dims, dims)
    return arrays


def _limits(names: list[Name]) -> dict[str, float]:
    """Return above which correlation few names of components that nothing was learned of are."""
    values: dict[str, list[float]] = {}
    for name in names:
        values.setdefault(name.about, []).append(name.phi)
    return {
        attribute: float(np.percentile(phi, LIMIT)) for attribute, phi in values.items()
    }


def _shown_names(names: list[Name], shown: np.ndarray, words: np.ndarray) -> list[str]:
    """Return the names that are shown; of equal ones each with its own words."""
    labels = [name.label if s else "" for name, s in zip(names, shown, strict=True)]
    return [
        f"{label} ({own})" if label and labels.count(label) > 1 else label
        for label, own in zip(labels, words, strict=True)
    ]
