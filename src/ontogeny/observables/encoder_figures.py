"""What follows from encoders along a run: bands, verdicts, words and figures (Figs 8 and 9)."""

from __future__ import annotations

import numpy as np
import xarray as xr

from ..figures import Band, Curves, Figure, Heatmap, Section, attach
from .concept_figures import extractor_title, filled_steps
from .rows import MEASURABLE, development_rows, reference_index, statement

__all__ = ["METRICS", "summarise_encoders"]

METRICS = {
    "cross_entropy": "Cross-entropy of the concept distributions",
    "mse": "Squared error of the concept distributions",
    "kl": "KL divergence of the concept distributions",
    "correlation": "Correlation between the logits",
}


def summarise_encoders(data: xr.Dataset, extractor: str, norm: str) -> xr.Dataset:
    """Return the stacked cells of `EncoderDynamics` with bands, rows, words and figures."""
    noisy = "shuffled" in data
    chosen = {"metric": "kl", "codes": "train-fitted"}
    headline = data.comparison.sel(chosen, drop=True).transpose("layer", "step")
    floor = np.full(data.sizes["layer"], MEASURABLE)
    if noisy:
        spread = (data.resampled - data.comparison).std("draw", ddof=1)
        spread = 2.0 * np.sqrt(2.0) * np.sqrt((spread**2).mean("step"))
        floor = floor + np.nan_to_num(spread.sel(chosen, drop=True).values)
        data = data.assign(
            low=data.comparison - spread,
            high=data.comparison + spread,
            shuffled_low=filled_steps(data.shuffled.min("draw")),
            shuffled_high=filled_steps(data.shuffled.max("draw")),
            train_shuffled_low=filled_steps(data.shuffled_train_error.min("draw")),
            train_shuffled_high=filled_steps(data.shuffled_train_error.max("draw")),
        )
    layers = [str(layer) for layer in data.layer.values]
    data = data.assign(
        development_rows(
            [f"{layer} · {extractor_title(extractor)} codes by encoder" for layer in layers],
            layers,
            data.step.values,
            headline.values,
            floor=floor,
            reference_index=reference_index(data),
        )
    )
    data.train_error.attrs.update(symbol="‖U_ref − AₜEₜ‖ / ‖U_ref‖")
    words = statement(data, "The encoded codes of {layer}") + _at_the_ends(data, noisy)
    return attach(data, _section(extractor, norm), _figures(noisy), words)


def _at_the_ends(data: xr.Dataset, noisy: bool) -> list[str]:
    """Say what the reference itself, the first checkpoint and chance leave, in medians."""
    kl = data.comparison.sel(metric="kl").median("layer")
    words = []
    at = reference_index(data)
    own = None if at is None else kl.isel(step=at)
    if own is not None and np.isfinite(own.values).all():
        words.append(
            f"At the reference step the encoder leaves a KL of {_number(own[0])} nats to the "
            f"extractor that it was trained on, and {_number(own[1])} to one fitted on the test "
            "rows: the second is what matching two fits costs, not a change of the model."
        )
    first = kl.sel(codes="train-fitted").dropna("step")
    if noisy and first.size and int(first.step[0]) != data.attrs.get("reference_step"):
        chance = data.shuffled.sel(metric="kl", codes="train-fitted").median()
        words.append(
            f"The first checkpoint (step {int(first.step[0]):,}) leaves {_number(first[0])} nats, "
            f"codes out of order {_number(chance)} (medians over layers)."
        )
    failed = int((data.converged.values == 0).sum())
    return words + ([f"{failed} encoders did not reach their tolerance."] if failed else [])


def _number(value: xr.DataArray | float) -> str:
    return f"{float(value):.2g}"


def _figures(noisy: bool) -> list[Figure]:
    bands = [Band("shuffled_low", "shuffled_high", "codes out of order")] if noisy else []
    figures: list[Figure] = [
        Curves(
            metric.replace("_", "-"),
            title,
            value="comparison",
            facet="codes",
            select={"metric": metric},
            interval=("low", "high") if noisy else None,
            bands=bands,
            caption="On held-out rows. Left: codes of the extractor fitted on the train rows; "
            "right: of one fitted on the test rows and matched once, as in the report.",
        )
        for metric, title in METRICS.items()
    ]
    figures.append(
        Heatmap(
            "shares",
            "Share of every concept",
            value="share",
            y="concept",
            facet="layer",
            caption="Mean softmax of the encoded codes: what each of the reference's concepts "
            "counts for at each step, whatever its direction. An encoder that finds nothing and "
            "has no intercept gives codes near 0, and each of r concepts a share near 1/r.",
        )
    )
    figures.append(
        Curves(
            "train-error",
            "What the encoder leaves on its train rows",
            value="train_error",
            bands=[Band("train_shuffled_low", "train_shuffled_high", "codes out of order")]
            if noisy
            else [],
            caption="Relative to the norm of the reference's codes. Where the band reaches down, a "
            "map of this size fits anything.",
        )
    )
    return figures


def _section(extractor: str, norm: str) -> Section:
    return Section(
        title=f"Encoder dynamics ({extractor_title(extractor)})",
        definition="A linear map is fitted from the activations of each step to the codes of the "
        "reference step's concepts, and tried on rows that it has not seen: what does this step "
        "already tell of the concepts of the reference?",
        symbol=f"Eₜ = argmin ‖U_ref − AₜE‖ ({norm}),  P = softmax(U_ref), Q = softmax(AₜEₜ)",
        null="Grey: the same map fitted to codes in random order. The untrained model, where the "
        "first checkpoint is one, is the other control: what can be read from random features.",
        care="An encoder undoes every invertible change of the activations, so that these curves "
        "are smoother than distances between concepts by construction. They say that the "
        "information is there, not that the model uses it. The value at the reference is left out "
        "of the verdict.",
        source="Bernas 2025, Algorithm 3, sec. 6.1, Figs 8-9",
    )
