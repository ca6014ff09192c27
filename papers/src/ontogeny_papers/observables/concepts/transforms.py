"""The linear map between each step's concepts and the reference's, along the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ontogeny import dynamics
from ontogeny.dynamics.transforms import Transform
from ontogeny.errors import ArgumentError, check_number
from ontogeny.features.concepts.noise import MATCHINGS, SHARES
from ontogeny.figures import Section
from ontogeny.needs import Need, Series
from ontogeny.observables.readings import SeriesReading
from ontogeny.quantities import Quantity
from ontogeny.summary.noise import over_steps
from ontogeny.trees import Nodes

from ...distances.alignment import align
from .series import ConceptSeries

_MAPS = {  # which dictionaries, and what maps the reference's to them
    "linear map": ("matched", "general"),
    "rotation": ("matched", "orthogonal"),
    "matched only": ("matched", "identity"),
    "as returned": ("as returned", "identity"),
}
_NUMBERS = {"log_det": "log_det", "condition": "condition", "transform_rank": "rank"}
_PATH = {
    "velocity": "velocity",
    "rate": "rate",
    "cumulative_change": "cumulative",  # xarray has methods called cumulative and rank
    "normalised": "normalised",
}
_REFIT = {"refit": "refitting alone"}


@dataclass(frozen=True)
class TransformDynamics(ConceptSeries):
    """The transform T_t with W_t = W_ref T_t, from the fits that a `Concepts` node has stored.

    Its error on the codes stands beside that of the nearest rotation and of no map at all, so that
    turning and deforming can be distinguished. Velocity and cumulative change are given for
    concepts as the solver returned them and for concepts permuted and signed to fit the
    reference's.

    Parameters
    ----------
    of
        Name of the `Concepts` node.
    max_condition
        Condition number beyond which the pseudo-inverse is taken.

    Examples
    --------
    >>> TransformDynamics("concepts-ica").name
    'concepts-ica-transforms'
    """

    max_condition: float = 1e8

    kind = "transform-dynamics"
    question = "Which transform takes the last dictionary to that of each step?"
    suffix = "transforms"
    quantities = (
        Quantity(
            "codes_error",
            "error of the codes, relative",
            heading="what the transform leaves of the codes",
            y_scale="log",
            caption="‖Uₜ − U_ref Tₜ⁻ᵀ‖ relative to ‖Uₜ‖, for the linear map fitted to the "
            "dictionaries, the nearest rotation, and no map at all; left out at the reference, "
            "where all are 0. The linear map may do worse than none: it was fitted to the "
            "dictionaries, and its inverse can explode. Read it against the other two: codes of "
            "refits are not kept, so there is no band.",
        ),
        Quantity(
            "normalised",
            "cumulative change, share of the whole",
            nulls={"refit": "steps of the size of a refit's"},
            caption="A sum of lengths is smooth by construction, and noise alone makes it rise: "
            "grey, what the same number of steps gives if each moves as far as refitting does, in "
            "the same unit.",
        ),
        Quantity(
            "velocity",
            "change of the transform since the checkpoint before",
            y_scale="log",
            nulls=_REFIT,
            caption="Grey: transforms of refits at one and the same {checkpoint}. Spacing matters: "
            "neighbours are nearer where checkpoints are denser.",
        ),
        Quantity(
            "log_det",
            "log-determinant of the transform",
            nulls=_REFIT,
            caption="log |det Tₜ|: the log of the volume that the {checkpoint}'s concepts span, "
            "seen in the span of the reference's, over that of the reference's; 0 at the "
            "reference. Order and signs do not matter. Norms count: if all r concepts grow by a "
            "factor g, it is r·log g. What leaves the reference's span does not count. Where the "
            "map needed a pseudo-inverse, the determinant is as good as 0, and only the singular "
            "values that count are summed.",
        ),
        Quantity(
            "condition",
            "condition number of the transform",
            y_scale="log",
            nulls=_REFIT,
            caption="Where it is large, the inverse amplifies noise in the codes.",
        ),
        Quantity(
            "share",
            "share of the squared change",
            heading="how the change of the dictionary splits",
            facet="share_of",
            nulls={"refit": "change of a refit"},
            caption="Squared change of the matched dictionary: explained by a rotation among the "
            "concepts, by a further deformation, and outside of their span. Grey: how the change "
            "from one fit to another at the same {checkpoint} splits.",
        ),
    )
    section = Section(
        title="Transforms of the concept space ({of})",
        definition="The linear map that turns the reference's concepts into those of each "
        "{checkpoint}.",
        symbol="Tₜ = argmin ‖Wₜ − W_ref T‖_F,  errₜ = ‖Uₜ − U_ref Tₜ⁻ᵀ‖_F",
        null="Grey: refitting at one {checkpoint}, on resampled texts, with other seeds and in the "
        "other precision. Beside the linear map: nearest rotation, and no map.",
        care="The codes go by T⁻ᵀ only if the activations of both {checkpoint}s were equal; what "
        "they changed is in the error too. The report writes T⁻¹.",
        source="Bernas 2025, sec. 8.7.2, Fig. 12",
    )
    variables = {
        "dictionary_error": ("error of the dictionary, relative", "1"),
        "rate": (
            "change of the transform since the checkpoint before, each {checkpoint}",
            "per {step}",
        ),
        "cumulative_change": ("cumulative change of the transform", "1"),
        "transform_rank": ("rank of the transform", "directions"),
        "transform": ("matrix of the transform", "1"),
    }

    def check(self) -> None:
        """Refuse arguments out of range."""
        super().check()
        check_number("max_condition", self.max_condition, 1)

    def needs(self) -> Sequence[Need]:
        """Return dictionaries and codes of all steps."""
        return [Series(self.of, ("dictionary", "code_coordinates"))]

    def observe(self, reading: SeriesReading, state: xr.Dataset | None) -> xr.Dataset:
        """Return transforms, errors, determinants and velocities of one layer."""
        data = reading.data.dropna("feature", how="all", subset=["dictionary"])
        steps = data.step.values
        if reading.reference_step not in steps:
            raise ArgumentError(
                f"the reference step {reading.reference_step} has no fit"
            )
        W = _table(data.dictionary, "step", "feature", "concept")
        sides = data.code_coordinates.transpose("side", "step", "coordinate", "concept")
        U_ref, U = (
            _table(sides.sel(side=s), "step", ...) for s in ("reference", "here")
        )
        W_ref = W[int(np.argmax(steps == reading.reference_step))]
        order = align(
            np.broadcast_to(W_ref, W.shape), W, under="signed-permutation"
        ).transform
        maps = {
            "as returned": self._transforms(W, U, W_ref, U_ref),
            "matched": self._transforms(W @ order, U @ order, W_ref, U_ref),
        }
        return _described(steps, maps)

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Add what refits at one and the same step give; leave out errors that are 0 by design."""
        # A logarithmic axis has no 0.
        away = data.step != data.attrs.get("reference_step")
        data = data.assign(codes_error=data.codes_error.where(away))
        of = nodes[self.of]
        if "refit_transform_distance" not in of:
            return data
        measured = {
            "velocity": of.refit_transform_distance,
            "log_det": of.refit_log_det,
            "condition": of.refit_condition,
            "share": of.refit_share.where(
                of.refit_share.sum("share_of") > 0
            ),  # else rounding
        }
        for name, refits in measured.items():
            data[f"{name}_refit"] = refits.reindex_like(data[name])
        # Steps that move by no more than a refit does still add up.
        whole = data.cumulative_change.max("step")
        moves = data.velocity_refit
        for end, length in (("low", moves.min("refit")), ("high", moves.max("refit"))):
            walked = (
                over_steps(length).where(data.velocity.notnull(), 0.0).cumsum("step")
            )
            data[f"normalised_refit_{end}"] = walked / whole.where(whole > 0)
        return data

    def words(self, data: xr.Dataset, nodes: Nodes) -> Sequence[str]:
        """Return errors of the codes, how the change splits, and how far refits move."""
        away = data.sel(step=data.step != data.attrs.get("reference_step"))
        if not away.sizes["step"] or not np.isfinite(away.codes_error.values).any():
            return []
        error = away.codes_error.median(("layer", "step"))
        parts = [f"{name} {float(error.sel(mapping=name)):.2g}" for name in _MAPS]
        words = [
            (
                "Error of the codes, relative, median over layers and {checkpoint}s: "
                f"{', '.join(parts)}."
            )
        ]
        # A sum is 1, or 0 where nothing changed.
        changed = away.share.sum("share_of") > 0.5
        if changed.any():
            share = away.share.where(changed).mean(("layer", "step"))
            rotated, deformed, outside = (
                f"{float(share.sel(share_of=n)):.0%}" for n in SHARES
            )
            words.append(
                f"Of the squared change of matched dictionaries {rotated} is a "
                f"rotation among the concepts, {deformed} a deformation, and "
                f"{outside} leaves the span of the reference's concepts (means)."
            )
        if "velocity_refit_high" in data:
            one = data.sel(matching="matched")
            is_judged = one.velocity.notnull() & one.velocity_refit_high.notnull()
            if is_judged.any():
                above = (one.velocity > one.velocity_refit_high).where(is_judged)
                words.append(
                    "From checkpoint to checkpoint the matched transform moves more than "
                    f"refitting does in {float(above.mean()):.0%} of layers and {{checkpoint}}s."
                )
        pseudo = int((data.transform_rank < data.sizes["concept"]).sum())
        words.append(
            f"Condition numbers reach {float(data.condition.max()):.2g}"
            + (f"; {pseudo} transforms needed a pseudo-inverse." if pseudo else ".")
        )
        return words

    def _transforms(
        self, W: np.ndarray, U: np.ndarray, W_ref: np.ndarray, U_ref: np.ndarray
    ) -> list[Transform]:
        return [
            dynamics.transform(w, u, W_ref, b, max_condition=self.max_condition)
            for w, u, b in zip(W, U, U_ref, strict=True)
        ]


def _described(steps: np.ndarray, maps: Mapping[str, list[Transform]]) -> xr.Dataset:
    """Return all that is stored of the transforms as returned and matched."""
    matched = maps["matched"]
    paths = [
        dynamics.transform_path(steps, np.stack([t.matrix for t in maps[name]]))
        for name in MATCHINGS
    ]
    result: dict[str, Any] = {
        name: (
            ("matching", "step"),
            np.stack([getattr(path, attribute) for path in paths]),
        )
        for name, attribute in _PATH.items()
    }
    for side in ("codes", "dictionary"):
        size = np.array([getattr(t, f"{side}_norm") for t in matched])
        error = [
            [getattr(getattr(t, how), side) for t in maps[of]]
            for of, how in _MAPS.values()
        ]
        result[f"{side}_error"] = (
            ("mapping", "step"),
            error / np.where(size > 0, size, 1.0),
        )
    for name, attribute in _NUMBERS.items():
        result[name] = (
            "step",
            np.array([float(getattr(t, attribute)) for t in matched]),
        )
    shares = [[t.shares[name] for t in matched] for name in SHARES]
    matrices = np.stack([t.matrix for t in matched]).astype(np.float32)
    result["share"] = (("share_of", "step"), np.array(shares))
    result["transform"] = (("step", "concept", "concept_"), matrices)
    labels = {
        "mapping": list(_MAPS),
        "matching": list(MATCHINGS),
        "share_of": list(SHARES),
    }
    return xr.Dataset(result, coords={"step": steps, **labels})


def _table(values: xr.DataArray, *dims: Any) -> np.ndarray:
    return values.transpose(*dims).values.astype(float)
