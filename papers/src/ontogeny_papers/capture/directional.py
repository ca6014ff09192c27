"""Directional derivatives of a model's output along directions of its activations.

To every layer's output ``h`` a hook adds ``e V^T`` at chosen positions, where ``V`` (m, K) holds
the directions and ``e`` (texts, K) is zero. The value is unchanged, and the gradient with respect
to ``e`` is the directional derivative itself: one backward pass gives it for every layer and every
direction, and no activation gradient is ever stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from ontogeny.arrays import check_finite, to_numpy
from ontogeny.capture.forward import check_fits, device_of, frozen, quiet, run
from ontogeny.capture.layers import match_layers
from ontogeny.capture.objectives import ReadingSettings
from ontogeny.capture.sites import changed
from ontogeny.errors import ArgumentError, NonFiniteError, check_choice
from ontogeny.inputs import Inputs

from .targets import Target, Targets

ALONG = ("all", "last", "cls", "target")


def directional_derivatives(
    model: nn.Module,
    inputs: Any,
    layers: str | Sequence[str],
    directions: Any,
    target: Target | str = "auto",
    *,
    along: str = "all",
    at: np.ndarray | None = None,
    settings: ReadingSettings | None = None,
) -> xr.Dataset:
    r"""Return the derivative of an output along directions of the activations, for all layers.

    ``d/de f(h_1, ..., h_i + e v, ...) at e = 0``, summed over the positions i that are moved (the
    directional derivative of B. Kim et al., *TCAV*, ICML 2018, eq. 1). Padding and special tokens
    are never moved. All layers share one backward pass per batch.

    Parameters
    ----------
    model
        Any module; it runs in evaluation mode where it is, and is left as it was.
    inputs
        `Inputs`, or a dict of token tensors. Texts may differ in length.
    layers
        Patterns over module paths (see :mod:`ontogeny.capture.layers`).
    directions
        (m,) or (m, K) directions, for all layers or as ``{module path: directions}``. Their norm
        scales the result.
    target
        What is differentiated: a `Target`, or the name of its objective.
    along
        Which positions are moved: ``"all"`` ordinary tokens of a text (for directions found on
        means over tokens), the ``"last"`` or first (``"cls"``) unpadded token, or the ``"target"``
        positions, from which the target is predicted.
    at
        (n, L) bool, chosen target positions, in the layout of `inputs`.
    settings
        Batch size and how positions are passed to the model.

    Returns
    -------
    xarray.Dataset
        ``derivative(layer, direction, example)`` float64, ``text(example)`` and
        ``position(example)`` (the target counted from the text's first token, -1 for all targets
        of the text together). Texts without a target are left out.

    Raises
    ------
    ArgumentError
        If directions do not fit a layer, a layer is called twice or never, or the target is not
        one of this model.
    LayerMatchError
        If a pattern matches no module.
    NonFiniteError
        If a direction or a derivative is not finite.

    Examples
    --------
    >>> from ontogeny.capture import directional_derivatives
    >>> model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 4), nn.Linear(4, 9))
    >>> tokens = {"input_ids": [[1, 2, 3], [4, 5, 6]]}
    >>> data = directional_derivatives(model, tokens, "1", np.eye(4), "causal")
    >>> dict(data.derivative.sizes)
    {'layer': 1, 'direction': 4, 'example': 2}
    """
    check_choice("along", along, ALONG)
    settings = settings or ReadingSettings()
    texts = Inputs.coerce(inputs)
    laid_out = settings.layout(texts)
    if at is not None and laid_out is not texts:
        raise ArgumentError(
            "at needs inputs that are padded on the right, as they are read."
        )
    target = (Target(target) if isinstance(target, str) else target).resolved(model)
    check_fits(model, laid_out)
    paths = match_layers(model, layers)
    vectors = _directions(paths, directions)
    targets = Targets(model, laid_out, target, at)
    moved = (
        targets.wanted if along == "target" else _moved(laid_out, along)[targets.text]
    )
    shifts = _Shifts(model, vectors)
    values = {p: np.empty((v.shape[1], len(targets))) for p, v in vectors.items()}
    by_mask = settings.positions == "mask"
    with (
        quiet(model),
        frozen(model),
        shifts.attached(),
        targets.attached(),
        torch.enable_grad(),
    ):
        for examples, batch in targets.batches(settings.batch_size):
            shifts.start(batch.ids.shape, moved[examples, batch.columns])
            targets.choose(examples, batch)
            total = targets.total(run(model, batch, position_ids=by_mask))
            for path, gradient in shifts.gradients(total).items():
                values[path][:, examples] = gradient.T
    return _dataset(values, targets)


def _dataset(values: Mapping[str, np.ndarray], targets: Targets) -> xr.Dataset:
    derivative = np.stack(list(values.values()))
    if not np.isfinite(derivative).all():
        bad = [path for path, v in values.items() if not np.isfinite(v).all()]
        raise NonFiniteError(
            f"directional derivatives are NaN or infinite in {', '.join(bad)}."
        )
    return xr.Dataset(
        {
            "derivative": (("layer", "direction", "example"), derivative),
            "text": ("example", targets.text),
            "position": ("example", targets.position),
        },
        coords={"layer": list(values)},
    )


def _directions(paths: Sequence[str], directions: Any) -> dict[str, np.ndarray]:
    """Return float64 directions (m, K) of every layer."""
    by_path = isinstance(directions, Mapping)
    missing = [path for path in paths if by_path and path not in directions]
    if missing:
        raise ArgumentError(
            f"directions has none for {', '.join(missing)}; it has {', '.join(directions)}."
        )
    vectors = {}
    for path in paths:
        value = directions[path] if by_path else directions
        array = np.asarray(to_numpy(value), dtype=float)
        array = array[:, None] if array.ndim == 1 else array
        if array.ndim != 2 or not array.size:
            raise ArgumentError(
                f"directions of {path} must be (m,) or (m, K); the shape is {array.shape}."
            )
        check_finite(f"directions of {path}", array)
        vectors[path] = array
    if len({v.shape[1] for v in vectors.values()}) > 1:
        counts = {path: v.shape[1] for path, v in vectors.items()}
        raise ArgumentError(f"every layer needs equally many directions; got {counts}.")
    return vectors


def _moved(inputs: Inputs, along: str) -> np.ndarray:
    """Return (n, L) bool: the positions that are moved."""
    if along == "all":
        return inputs.ordinary
    first = inputs.mask.argmax(axis=1)
    column = first + (inputs.lengths - 1 if along == "last" else 0)
    moved = np.zeros(inputs.mask.shape, dtype=bool)
    moved[np.arange(len(inputs)), column] = True
    return moved


class _Shifts:
    """Adds zero times the directions to module outputs, and differentiates by the zeros."""

    def __init__(self, model: nn.Module, vectors: Mapping[str, np.ndarray]) -> None:
        self._model = model
        self._device = device_of(model)
        self._vectors = {
            p: torch.from_numpy(v.copy()).to(self._device) for p, v in vectors.items()
        }
        self._zeros: dict[str, Tensor] = {}

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Add the zeros in the modules; hooks never outlive this."""
        with changed(self._model, self._vectors, self._shift):
            yield

    def start(self, shape: tuple[int, ...], moved: np.ndarray) -> None:
        """Begin a batch of texts by tokens `shape`; `moved` marks the positions that are moved."""
        self._shape = tuple(shape)
        self._moved = torch.from_numpy(np.ascontiguousarray(moved)).to(self._device)
        self._zeros = {}

    def _shift(self, label: str, hidden: Any) -> Tensor:
        if label in self._zeros:
            raise ArgumentError(
                f"{label!r} is called more than once in one forward pass, so there is not one "
                "derivative; choose a module that is called once."
            )
        vectors = self._vectors[label]
        if not isinstance(hidden, Tensor) or tuple(hidden.shape) != (
            *self._shape,
            len(vectors),
        ):
            got = (
                tuple(hidden.shape)
                if isinstance(hidden, Tensor)
                else type(hidden).__name__
            )
            raise ArgumentError(
                f"directions of {label!r} have {len(vectors)} features, so it must give (texts, "
                f"tokens, features) = ({self._shape[0]}, {self._shape[1]}, {len(vectors)}); "
                f"got {got}."
            )
        wide = torch.float64 if hidden.dtype == torch.float64 else torch.float32
        zeros = torch.zeros(
            self._shape[0],
            vectors.shape[1],
            dtype=wide,
            device=hidden.device,
            requires_grad=True,
        )
        self._zeros[label] = zeros
        step = zeros @ vectors.to(hidden.device, wide).T
        moved = self._moved.to(hidden.device)
        return hidden + (step[:, None] * moved[..., None]).to(hidden.dtype)

    def gradients(self, total: Tensor) -> dict[str, np.ndarray]:
        """Return the derivatives (texts, K) of `total` in each layer; 0 where it has no part."""
        never = [label for label in self._vectors if label not in self._zeros]
        if never:
            raise ArgumentError(
                f"the forward pass of {type(self._model).__name__} never called "
                f"{', '.join(never)}; choose layers that take part in it."
            )
        zeros = [self._zeros[label] for label in self._vectors]
        if total.requires_grad:
            grads = torch.autograd.grad(
                total, zeros, allow_unused=True, materialize_grads=True
            )
        else:
            grads = tuple(torch.zeros_like(zero) for zero in zeros)
        arrays = (gradient.detach().double().cpu().numpy() for gradient in grads)
        return dict(zip(self._vectors, arrays, strict=True))
