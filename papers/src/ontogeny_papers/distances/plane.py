"""Concept PCA: the concepts of all steps as points of one plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ontogeny.arrays import Array, numpy_matrix
from ontogeny.errors import ArgumentError

from .all_pairs import step_labels

if TYPE_CHECKING:
    import xarray as xr


def concept_plane(
    stack: Array, *, steps: Sequence[int] | np.ndarray | None = None, n_axes: int = 2
) -> xr.Dataset:
    """Project the concepts of all steps on their common leading principal components.

    Parameters
    ----------
    stack
        Dictionaries of one layer and extractor at all steps, (T, m, r), NumPy or PyTorch.
    steps
        Labels of the steps; 0 to T - 1 by default.
    n_axes
        Number of axes.

    Returns
    -------
    xarray.Dataset
        ``position(step, concept, axis)``, ``direction(axis, feature)`` of unit length,
        ``centre(feature)``, ``explained_variance(axis)``: the share of the variance of all concepts
        of all steps that lies along an axis.

    Raises
    ------
    ArgumentError
        If a shape does not fit, all concepts are equal, or there are fewer dimensions than axes.

    Notes
    -----
    Bernas (2025), Figure 11. The columns enter as they are, of their own length and sign;
    align them first where sign and order are arbitrary. An axis points so that its largest
    component is positive.

    Examples
    --------
    >>> import numpy as np
    >>> stack = np.random.default_rng(0).standard_normal((5, 30, 4))
    >>> plane = concept_plane(stack, steps=[0, 1, 10, 100, 1000])
    >>> dict(plane["position"].sizes)
    {'step': 5, 'concept': 4, 'axis': 2}
    """
    import xarray as xr

    points = np.swapaxes(numpy_matrix("stack", stack, ndim=3), -1, -2)
    count = points.shape[0]
    m = points.shape[2]
    r = points.shape[1]
    labels = step_labels(steps, count)
    if not 1 <= n_axes <= min(m, count * r - 1):
        raise ArgumentError(
            f"n_axes must be between 1 and {min(m, count * r - 1)}; got {n_axes}."
        )
    centre = points.mean(axis=(0, 1))
    directions = _axes(points.reshape(-1, m) - centre, n_axes)
    variables = {
        "direction": (("axis", "feature"), directions),
        "centre": ("feature", centre),
        **_projected(points, centre, directions),
    }
    return xr.Dataset(
        variables, coords={"step": labels, "axis": np.arange(1, n_axes + 1)}
    )


def _axes(centred: np.ndarray, n_axes: int) -> np.ndarray:
    """Leading right singular vectors (n_axes, m), from the smaller of the two Gram matrices."""
    largest = np.abs(centred).max()
    if not largest > 0:
        raise ArgumentError("all concepts of the stack are equal: they span no plane.")
    scaled = centred / largest
    if len(scaled) >= scaled.shape[1]:
        axes = np.linalg.eigh(scaled.T @ scaled)[1][:, ::-1][:, :n_axes].T
    else:
        left = np.linalg.eigh(scaled @ scaled.T)[1][:, ::-1][:, :n_axes]
        axes = np.linalg.qr(scaled.T @ left)[0].T
    peak = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)
    return axes * np.where(peak < 0, -1.0, 1.0)


def _projected(
    points: np.ndarray, centre: np.ndarray, directions: np.ndarray
) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """Positions on the axes, and the share of the points' own variance along each."""
    centred = points - points.mean(axis=(0, 1))
    share = ((centred @ directions.T) ** 2).sum(axis=(0, 1)) / (centred**2).sum()
    return {
        "position": (("step", "concept", "axis"), (points - centre) @ directions.T),
        "explained_variance": (("axis",), share),
    }
