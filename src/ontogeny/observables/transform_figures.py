"""What follows from transforms along a run: bands, words and figures (Fig. 12)."""

from __future__ import annotations

import numpy as np
import xarray as xr

from ..figures import Band, Curves, Figure, Section, attach
from .concept_figures import filled_steps

__all__ = ["MAPS", "summarise_transforms"]

MAPS = ("linear map", "rotation", "matched only", "as returned")


def summarise_transforms(data: xr.Dataset, concepts: xr.Dataset, of: str) -> xr.Dataset:
    """Return the stacked layers of `TransformDynamics` with bands, words and figures."""
    noisy = "refit_transform_distance" in concepts
    if noisy:
        data = _with_bands(data, concepts)
    # At the reference every map leaves nothing, which a logarithmic axis cannot show.
    away = data.step != data.attrs.get("reference_step")
    data = data.assign(codes_error=data.codes_error.where(away))
    return attach(data, _section(of), _figures(noisy), _statements(data, noisy))


def _with_bands(data: xr.Dataset, concepts: xr.Dataset) -> xr.Dataset:
    """Add what refits at one and the same step give, interpolated over the other steps."""
    share = concepts.refit_share
    measured = {
        "refit": (concepts.refit_transform_distance, data.velocity),
        "log_det": (concepts.refit_log_det, data.log_det),
        "condition": (concepts.refit_condition, data.condition),
        "share": (share.where(share.sum("share_of") > 0), data.share),  # else it is rounding
    }
    for name, (refit, like) in measured.items():
        for end, values in (("low", refit.min("refit")), ("high", refit.max("refit"))):
            data[f"{name}_{end}"] = filled_steps(values).reindex_like(like)
    # Steps that move by no more than a refit does still add up.
    moves = data.velocity.notnull()
    whole = data.cumulative_change.max("step")
    for end in ("low", "high"):
        walked = data[f"refit_{end}"].where(moves, 0.0).cumsum("step")
        data[f"normalised_{end}"] = walked / whole.where(whole > 0)
    return data


def _statements(data: xr.Dataset, noisy: bool) -> list[str]:
    away = data.sel(step=data.step != data.attrs.get("reference_step"))
    if not away.sizes["step"] or not np.isfinite(away.codes_error.values).any():
        return []
    error = away.codes_error.median(("layer", "step"))
    parts = [f"{name} {float(error.sel(mapping=name)):.2g}" for name in MAPS]
    words = [
        "Error of the codes, relative, median over layers and steps: " + ", ".join(parts) + "."
    ]
    changed = away.share.sum("share_of") > 0.5  # the shares add up to 1, or to 0 without a change
    if changed.any():
        share = away.share.where(changed).mean(("layer", "step"))
        words.append(
            f"Of the squared change of matched dictionaries {_percent(share, 'rotation')} is a "
            f"rotation among the concepts, {_percent(share, 'deformation')} a deformation, and "
            f"{_percent(share, 'outside')} leaves the span of the reference's concepts (means)."
        )
    if noisy:
        moved = data.velocity.sel(matching="matched")
        high = data.refit_high.sel(matching="matched")
        above = (moved > high).where(moved.notnull() & high.notnull())
        if above.notnull().any():
            words.append(
                f"From checkpoint to checkpoint the matched transform moves more than refitting "
                f"does in {float(above.mean()):.0%} of layers and steps."
            )
    worst = data.condition.max()
    pseudo = int((data.transform_rank < data.sizes["concept"]).sum())
    words.append(
        f"Condition numbers reach {float(worst):.2g}"
        + (f"; {pseudo} transforms needed a pseudo-inverse." if pseudo else ".")
    )
    return words


def _percent(share: xr.DataArray, name: str) -> str:
    return f"{float(share.sel(share_of=name)):.0%}"


def _figures(noisy: bool) -> list[Figure]:
    def bands(name: str, label: str = "refitting alone") -> list[Band]:
        return [Band(f"{name}_low", f"{name}_high", label)] if noisy else []

    return [
        Curves(
            "codes-error",
            "What the transform leaves of the codes",
            value="codes_error",
            facet="mapping",
            y_scale="log",
            caption="‖Uₜ − U_ref Tₜ⁻ᵀ‖ relative to ‖Uₜ‖, for the linear map fitted to the "
            "dictionaries, the nearest rotation, and no map at all; left out at the reference, "
            "where all are 0. The linear map may do worse than none: it was fitted to the "
            "dictionaries, and its inverse can explode. Read it against the other two: codes of "
            "refits are not kept, so there is no band.",
        ),
        Curves(
            "cumulative",
            "Cumulative change, share of the whole",
            value="normalised",
            facet="matching",
            bands=bands("normalised", "steps of the size of a refit's"),
            caption="A sum of lengths is smooth by construction, and noise alone makes it rise: "
            "grey, what the same number of steps gives if each moves as far as refitting does, in "
            "the same unit.",
        ),
        Curves(
            "velocity",
            "Change of the transform since the checkpoint before",
            value="velocity",
            facet="matching",
            bands=bands("refit"),
            y_scale="log",
            caption="Grey: transforms of refits at one and the same step. Spacing matters: "
            "neighbours are nearer where checkpoints are denser.",
        ),
        Curves(
            "log-determinant",
            "Log-determinant",
            value="log_det",
            bands=bands("log_det"),
            caption="log |det Tₜ|: the log of the volume that the step's concepts span, seen in "
            "the span of the reference's, over that of the reference's; 0 at the reference. Order "
            "and signs do not matter. Norms count: if all r concepts grow by a factor g, it is "
            "r·log g. What leaves the reference's span does not count. Where the map needed a "
            "pseudo-inverse, the determinant is as good as 0, and only the singular values that "
            "count are summed.",
        ),
        Curves(
            "condition",
            "Condition number",
            value="condition",
            y_scale="log",
            bands=bands("condition"),
            caption="Where it is large, the inverse amplifies noise in the codes.",
        ),
        Curves(
            "shares",
            "How the change of the dictionary splits",
            value="share",
            facet="share_of",
            bands=bands("share", "change of a refit"),
            caption="Squared change of the matched dictionary: explained by a rotation among the "
            "concepts, by a further deformation, and outside of their span. Grey: how the change "
            "from one fit to another at the same step splits.",
        ),
    ]


def _section(of: str) -> Section:
    return Section(
        title=f"Transforms of the concept space ({of})",
        definition="The linear map that turns the reference's concepts into those of each step.",
        symbol="Tₜ = argmin ‖Wₜ − W_ref T‖_F,  errₜ = ‖Uₜ − U_ref Tₜ⁻ᵀ‖_F",
        null="Grey: refitting at one step, on resampled tokens, with other seeds and in the other "
        "precision. Beside the linear map: nearest rotation, and no map.",
        care="The codes go by T⁻ᵀ only if the activations of both steps were equal; what they "
        "changed is in the error too. The report writes T⁻¹.",
        source="Bernas 2025, sec. 8.7.2, Fig. 12",
    )
