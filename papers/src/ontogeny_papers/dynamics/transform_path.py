"""How far transforms move from step to step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ontogeny.arrays import Array, namespace
from ontogeny.distances.pair import double
from ontogeny.dynamics.series import checked_steps
from ontogeny.errors import ArgumentError


@dataclass(frozen=True, eq=False)
class TransformPath:
    """How far transforms move from step to step (Fig. 12).

    Parameters
    ----------
    velocity
        (T,): ``|T_t - T_(t-1)|_F`` from the checkpoint before; NaN at the first.
    rate
        (T,): the same for each training step between the two, which uneven spacing does not move.
    cumulative
        (T,): sum of the velocities so far, 0 at the first.
    normalised
        (T,): `cumulative` as a share of its last value; 0 where nothing moves.
    """

    velocity: np.ndarray
    rate: np.ndarray
    cumulative: np.ndarray
    normalised: np.ndarray


def transform_path(steps: ArrayLike, matrices: Array) -> TransformPath:
    """Return velocity and cumulative change of a series of transforms.

    Parameters
    ----------
    steps
        Training steps (T,), increasing.
    matrices
        Transforms (T, r, r) at these steps; leave missing steps out.

    Raises
    ------
    ArgumentError
        If there is not one square matrix a step.

    Notes
    -----
    Bernas (2025), sec. 8.7.2. A cumulative change is smooth by construction, since it is a sum of
    lengths: that it rises evenly says nothing of the noise in the velocity. Noise alone raises it.

    Examples
    --------
    >>> matrices = np.eye(2) * np.array([1.0, 2.0, 2.0])[:, None, None]
    >>> path = transform_path([0, 10, 30], matrices)
    >>> path.cumulative.round(3), path.normalised
    (array([0.   , 1.414, 1.414]), array([0., 1., 1.]))
    """
    steps = checked_steps(steps)
    stack, _ = double("matrices", matrices)
    xp = namespace(stack)
    if len(stack) != len(steps) or stack.shape[1] != stack.shape[2]:
        raise ArgumentError(
            f"matrices must have shape ({len(steps)}, r, r); its shape is {tuple(stack.shape)}."
        )
    moved = xp.sqrt(xp.sum((stack[1:] - stack[:-1]) ** 2, axis=(1, 2)))
    lengths = np.array([float(v) for v in moved])
    cumulative = np.concatenate([[0.0], np.cumsum(lengths)])
    whole = cumulative[-1]
    return TransformPath(
        velocity=np.concatenate([[np.nan], lengths]),
        rate=np.concatenate([[np.nan], lengths / np.diff(steps)]),
        cumulative=cumulative,
        normalised=cumulative / whole if whole > 0 else cumulative,
    )
