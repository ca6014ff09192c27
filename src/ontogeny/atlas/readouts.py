"""Directions of concepts that a result keeps: to read, patch and steer with, and for SAELens."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from .._version import __version__
from ..errors import ArgumentError, check_number
from ..markup import csv_text
from ..report.choosing import layer_path, step_position
from ..trees import MergedResult, as_tree

KEPT = "readout"  # the variable of nodes that keep directions
THRESHOLD = 1.0  # standard deviations of a code


@dataclass(frozen=True, eq=False)
class Direction:
    """What one concept, or several, writes into a layer at one step, and what reads it.

    As an array it is the decoder.

    Parameters
    ----------
    decoder
        (m,) or (r, m): what one unit of the code adds to an activation.
    readout
        The same shape: weights on centred and scaled activations.
    mean, scale
        (m,): the code of an activation a is about ``((a - mean) / scale) @ readout``.

    Examples
    --------
    >>> one = Direction(
    ...     np.array([0.0, 2.0]), np.array([0.0, 1.0]), np.ones(2), np.full(2, 2.0)
    ... )
    >>> one.codes(np.array([[5.0, 5.0]])), np.asarray(one)
    (array([2.]), array([0., 2.]))
    """

    decoder: np.ndarray
    readout: np.ndarray
    mean: np.ndarray
    scale: np.ndarray

    def codes(self, A: Any) -> np.ndarray:
        """Return codes (n,) or (n, r) of raw activations (n, m)."""
        return np.asarray(((np.asarray(A) - self.mean) / self.scale) @ self.readout.T)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.decoder, dtype=dtype)


def kept_direction(data: xr.Dataset, layer: str, index: int, step: int) -> Direction:
    """Return the direction of one concept of a layer at one step.

    Raises
    ------
    ArgumentError
        If nothing was measured there.
    """
    found, places = kept_directions(data, layer, step)
    (at,) = np.nonzero(places == index)
    if not len(at):
        raise ArgumentError(
            f"no direction is kept of concept {index} of {layer} at step "
            f"{int(_at(data, layer, step).step)}."
        )
    return replace(found, decoder=found.decoder[at[0]], readout=found.readout[at[0]])


def kept_directions(
    data: xr.Dataset, layer: str, step: int
) -> tuple[Direction, np.ndarray]:
    """Return the directions (r, m) of a layer at one step, and the places (r,) of their concepts."""
    one = _at(data, layer, step)
    features = np.flatnonzero(np.isfinite(one["mean"].values))
    decoder, readout = (
        one[name].transpose("concept", "feature").values[:, features]
        for name in ("decoder", KEPT)
    )
    places = np.flatnonzero(np.isfinite(readout).all(axis=1) & (len(features) > 0))
    kept = (
        decoder[places],
        readout[places],
        *(one[n].values[features] for n in ("mean", "scale")),
    )
    return Direction(*(part.astype(np.float64) for part in kept)), places


def _at(data: xr.Dataset, layer: str, step: int) -> xr.Dataset:
    return data.isel(step=step_position(data.step.values.tolist(), step)).sel(
        layer=layer
    )


def export_sae(
    result: MergedResult,
    folder: str | Path,
    *,
    node: str | None = None,
    layer: int | str | None = None,
    step: int = -1,
    threshold: float = THRESHOLD,
) -> dict[str, Path]:
    """Write the read-outs of a layer's concepts as a folder that SAELens loads; return it by layer.

    Each concept is two latents, one for each sign of its code; a latent fires above a threshold.
    The read-out takes raw activations, so that of a learned concept, whose code is what the token
    leaves, it gives a part: how much stands in ``labels.csv``.

    Parameters
    ----------
    result
        Of a study with learned concepts.
    folder
        For ``cfg.json``, ``sae_weights.safetensors`` and ``labels.csv``; of several layers a
        folder each within it.
    node, layer
        None means the only one, and all layers.
    step
        A training step, or an index from the end.
    threshold
        Standard deviations of a code.

    Raises
    ------
    ArgumentError
        If the result keeps no directions.
    """
    check_number("threshold", threshold, 0)
    tree = as_tree(result)
    nodes = [name for name, child in tree.children.items() if KEPT in child.data_vars]
    if node is None and len(nodes) == 1:
        node = nodes[0]
    if node not in nodes:
        there = ", ".join(nodes) or "no node keeps any; 'learned-concepts' does"
        raise ArgumentError(
            f"node must be one that keeps directions ({there}); got {node!r}."
        )
    data = tree[node].to_dataset()
    paths = [str(path) for path in data.layer.values]
    chosen = paths if layer is None else [layer_path(paths, layer)]
    model = json.loads(tree.attrs.get("model", "{}")).get("name", "")
    written = {}
    for path in chosen:
        place = Path(folder) if len(chosen) == 1 else Path(folder) / path
        _write(data, path, step, threshold, str(model), place)
        written[path] = place
    return written


def _write(
    data: xr.Dataset, layer: str, step: int, threshold: float, model: str, place: Path
) -> None:
    from safetensors.numpy import save_file

    found, there = kept_directions(data, layer, step)
    one = _at(data, layer, step)
    if not len(there):
        raise ArgumentError(f"no direction is kept of {layer} at step {int(one.step)}.")
    read = (found.readout / found.scale).T
    shift = -(found.mean @ read)
    signs = np.concatenate([np.ones(len(there)), -np.ones(len(there))])
    weights = {
        "W_enc": np.concatenate([read, -read], axis=1),
        "b_enc": np.concatenate([shift, -shift]),
        "W_dec": np.concatenate([found.decoder, -found.decoder]),
        "b_dec": found.mean,
        "threshold": np.full(len(signs), threshold),
    }
    place.mkdir(parents=True, exist_ok=True)
    save_file(
        {
            name: np.ascontiguousarray(value, np.float32)
            for name, value in weights.items()
        },
        place / "sae_weights.safetensors",
    )
    config = {
        "architecture": "jumprelu",
        "d_in": len(found.mean),
        "d_sae": len(signs),
        "dtype": "float32",
        "device": "cpu",
        "apply_b_dec_to_input": False,
        "normalize_activations": "none",
        "reshape_activations": "none",
        "metadata": {
            "sae_lens_version": "6.0.0",  # whose form this is
            "hook_name": layer,
            "model_name": model,
            "ontogeny_version": __version__,
            "step": int(one.step),
        },
    }
    (place / "cfg.json").write_text(json.dumps(config, indent=1), "utf-8")
    (place / "labels.csv").write_text(_labels(one, there), "utf-8")


def _labels(one: xr.Dataset, there: np.ndarray) -> str:
    """Return a line for each latent: its number, name and sign, and how far it is the code."""
    import pandas as pd

    names = [str(one["name"].values[i]) if "name" in one else "" for i in there]
    labels = [
        n if n and n != "nan" else f"concept {i}"
        for n, i in zip(names, there, strict=True)
    ]
    raw = one.get("raw_agreement")
    agrees = np.full(len(there), np.nan) if raw is None else raw.values[there]
    frame = pd.DataFrame(
        {
            "index": np.arange(2 * len(there)),
            "label": [*labels, *(f"less {label}" for label in labels)],
            "correlation": np.tile(np.round(agrees, 4), 2),
        }
    )
    return csv_text(frame)
