"""What refitting and chance give, under every comparison of concepts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from ... import dynamics
from ...claims import Claim, Subject, measurement
from ...concepts.joint.presence import found_again
from ...distances.features import FeatureRotation
from ...distances.nearest import least_squares, matched
from ...dynamics.transforms import Transform
from ...observables.rotations import Rotations
from ...quantities import Measured, Quantity
from ...summary.noise import MEASURABLE
from ...units import Units

RESAMPLES = 3
MATCHINGS = ("as returned", "matched")
SHARES = ("rotation", "deformation", "outside")
ROTATION_REMOVED = "rotation removed"


class Fitted(NamedTuple):
    """Dictionary and codes at one step."""

    dictionary: torch.Tensor
    codes: torch.Tensor


Compare = Callable[[torch.Tensor, Fitted, FeatureRotation | None], xr.Dataset]


def cold_starts(
    A: torch.Tensor, random_state: int, *, seeded: bool, units: Units
) -> Iterator[tuple[str, torch.Tensor, int]]:
    """Give name, activations and seed of every refit.

    Parameters
    ----------
    A
        Activations (n, m).
    random_state
        Seed of the study's own fit and of the resamples.
    seeded
        Whether the solver's answer depends on a seed, so that other seeds are tried.
    units
        Which text each row comes from.

    Yields
    ------
    tuple
        ``"texts 1"`` to ``"texts 3"``: bootstrap resamples of the texts, where there are several;
        ``"seed 1"`` to ``"seed 3"``: other seeds; ``"float64"`` (or ``"float32"``): solved in the
        other precision.
    """
    rng = np.random.default_rng([random_state, 1])
    for i in range(1, RESAMPLES + 1):
        if units.count > 1:
            rows = torch.from_numpy(units.resampled(rng)).to(A.device)
            yield f"texts {i}", A[rows], random_state
    if seeded:
        for i in range(1, RESAMPLES + 1):
            yield f"seed {i}", A, random_state + i
    other = torch.float32 if A.dtype == torch.float64 else torch.float64
    yield str(other).removeprefix("torch."), A.to(other), random_state


def beside_refits(
    here: Fitted,
    reference: Fitted,
    others: Mapping[str, torch.Tensor],
    compare: Compare,
    rotations: Rotations,
    random_state: int,
) -> dict[str, Measured]:
    """Return comparisons of this step's fit with the reference, beside those of its refits.

    ``compare(W, other, rotation)`` gives what W is compared by, over ``alignment`` and more; a
    rotation that is None is the identity. Refits
    compared with the reference are the noise; compared with this step's fit they are the null
    ``refit``, and what is left where nothing is shared is the null ``chance``. Without resampled
    texts the noise is unknown.
    """
    W = here.dictionary
    turn = rotations.best
    comparison = compare(W, reference, turn)
    to_reference = _over_refits(others, lambda V: compare(V, reference, turn))
    to_fit = _over_refits(others, lambda V: compare(V, here, None))
    seeds = [1000 * random_state + draw for draw in range(RESAMPLES)]
    draws = [_chance(W, reference, compare, rotations, seed) for seed in seeds]
    chance = xr.concat(draws, dim="draw")
    resampled = any(name.startswith("texts") for name in others)
    return {
        str(name): Measured(
            value,
            replicates=to_reference[name] if resampled else None,
            nulls={
                null: values[name]
                for null, values in (("refit", to_fit), ("chance", chance))
                if name in values
            },
        )
        for name, value in comparison.data_vars.items()
    }


def refit_transforms(
    W: torch.Tensor, W_ref: torch.Tensor, others: Mapping[str, torch.Tensor]
) -> dict[str, xr.DataArray]:
    """Return what the transforms of refits are.

    How far from the fit's, log-determinant and condition number (from the reference's dictionary),
    and how the change from the fit splits.
    """

    def one(V: torch.Tensor) -> xr.Dataset:
        transform = _transform(V, W_ref)
        return xr.Dataset(
            {
                "refit_transform_distance": (
                    "matching",
                    _transform_distances(V, W, W_ref),
                ),
                "refit_log_det": transform.log_det,
                "refit_condition": transform.condition,
                "refit_share": ("share_of", _shares(V, W)),
            },
            coords={"matching": list(MATCHINGS), "share_of": list(SHARES)},
        )

    return {
        str(name): values
        for name, values in _over_refits(others, one).data_vars.items()
    }


def _over_refits(
    others: Mapping[str, torch.Tensor], function: Callable[[torch.Tensor], xr.Dataset]
) -> xr.Dataset:
    names = xr.DataArray(list(others), dims="refit", name="refit")
    return xr.concat([function(V) for V in others.values()], dim=names)


def _transform_distances(
    V: torch.Tensor, W: torch.Tensor, W_ref: torch.Tensor
) -> list[float]:
    """Return how far the transforms of a refit and of the fit are apart, (matching,)."""
    fitting = matched(W_ref, W)
    apart = []
    for refit, fit in ((V, W), (matched(fitting, V), fitting)):
        first, second = (least_squares(X, W_ref).double() for X in (refit, fit))
        apart.append(float((first - second).norm()))
    return apart


def _transform(V: torch.Tensor, W: torch.Tensor) -> Transform:
    """Return the transform of W into V; codes take no part."""
    none = torch.eye(W.shape[1], dtype=torch.float64)
    return dynamics.transform(V.double().cpu(), none, W.double().cpu(), none)


def _shares(V: torch.Tensor, W: torch.Tensor) -> list[float]:
    """Return how the change from W to V, matched to it, splits; 0 where it is only rounding."""
    transform = _transform(matched(W, V), W)
    if transform.identity.dictionary <= MEASURABLE * transform.dictionary_norm:
        return [0.0] * len(SHARES)
    return [transform.shares[name] for name in SHARES]


def _chance(
    W: torch.Tensor,
    reference: Fitted,
    compare: Compare,
    rotations: Rotations,
    seed: int,
) -> xr.Dataset:
    """Return comparisons where nothing is shared.

    With a random basis of the features, or, where their rotation is removed, with tokens out of
    order. What no alignment changes has no chance level.
    """
    random_basis = compare(_in_random_basis(W, seed), reference, None)
    out_of_order = compare(W, reference, rotations.out_of_order(seed))
    aligned: list[Any] = [n for n, v in random_basis.items() if "alignment" in v.dims]
    turned = random_basis.alignment == ROTATION_REMOVED
    return out_of_order[aligned].where(turned, random_basis[aligned])


def _in_random_basis(W: torch.Tensor, seed: int) -> torch.Tensor:
    """Return Q W for a uniformly random orthogonal Q, of which only what W meets is drawn."""
    basis, triangle = torch.linalg.qr(W.double())
    generator = torch.Generator().manual_seed(seed)
    gauss = torch.randn(basis.shape, generator=generator, dtype=torch.float64).to(basis)
    Q, upper = torch.linalg.qr(gauss)
    # Uniformly random with these signs only (F. Mezzadri, Notices of the AMS 54, 2007).
    return ((Q * upper.diagonal().sign()) @ triangle).to(W)


SAME = 0.9  # codes of one concept in two fits correlate at least so much; signs do not matter

FOUND_AGAIN = Quantity(
    "found_again",
    "share of the concepts that another fit finds again",
    optional=True,
    minimum=0.0,
    heading="concepts that another fit finds again",
    caption=f"Share whose codes correlate by {SAME:g} or more, whatever the sign, with those of a "
    "concept of a fit in the other floating-point precision, from another seed, or with the tokens "
    "in another order; and of fits to the two halves of the texts with each other.",
)

Fit = Callable[[Tensor], tuple[Tensor, Callable[[Tensor], Tensor]]]


def shares(codes: Tensor, other: Tensor) -> tuple[float, float]:
    """Return the share of concepts in another fit's codes (n, r), and how alike the codes are.

    Alike are codes whose correlation with the nearest other code of the same fit is high: its
    median, whatever the sign. Concepts that are nowhere active do not count.

    Examples
    --------
    >>> U = torch.eye(4)[:, :3]
    >>> again, alike = shares(U, -U[:, [1, 2, 0]])
    >>> again, round(alike, 2)
    (1.0, 0.33)
    """
    first, second = (np.asarray(U.detach().cpu().double()) for U in (codes, other))
    first = first[:, np.ptp(first, axis=0) > 0]
    if not first.shape[1]:
        return 0.0, 0.0
    correlation, _ = found_again(first, np.hstack([second, -second]))
    among = np.abs(np.atleast_2d(np.corrcoef(first.T)))
    np.fill_diagonal(among, 0)
    return float((correlation >= SAME).mean()), float(np.median(among.max(axis=0)))


def replication(
    A: Tensor,
    codes: Tensor,
    others: Mapping[str, Tensor],
    fit: Fit,
    units: Units,
    seed: int,
) -> dict[str, xr.DataArray]:
    """Return what is found again, (change,), of what is tried, and how alike the codes are.

    Parameters
    ----------
    A, codes
        Activations (n, m) and the codes (n, r) of the fit.
    others
        Codes of further fits to the same rows, named as `noise.cold_starts` names them.
    fit
        From activations to codes, and to the function that gives the codes of others.
    units
        Which text each row comes from; halves are of whole texts.
    seed
        Of the order and of the halves.
    """
    rng = np.random.default_rng([seed, 2])
    order = torch.from_numpy(rng.permutation(len(A))).to(A.device)
    half = torch.from_numpy(rng.permutation(units.count)[units.place] % 2 == 0).to(
        A.device
    )
    pairs: dict[str, list[tuple[Tensor, ...]]] = {
        change: [(codes, U) for name, U in others.items() if name.startswith(start)]
        for change, start in (("rounding", "float"), ("seed", "seed"))
    }
    # Codes of the fit are on the host, also where activations are on a device.
    pairs["order of tokens"] = [(codes[order.to(codes.device)], fit(A[order])[0])]
    both = min(int(half.sum()), int((~half).sum())) > codes.shape[1]
    pairs["half of texts"] = (
        [tuple(fit(A[h])[1](A) for h in (half, ~half))] if both else []
    )
    again = {
        c: np.mean([shares(*pair)[0] for pair in p]) for c, p in pairs.items() if p
    }
    return {
        "found_again": xr.DataArray(
            list(again.values()), {"change": list(again)}, "change"
        ),
        "code_likeness": xr.DataArray(shares(codes, codes)[1]),
    }


def claims_of_replication(name: str, data: xr.Dataset) -> Iterator[Claim]:
    """Give what is found again at the last step where it was tried, over all layers."""
    tried = data.get("found_again", xr.DataArray([], dims="step"))
    tried = tried.dropna("step", how="all")
    if not tried.sizes["step"]:
        return
    last = tried.isel(step=-1)
    step = float(last.step)
    mean = last.mean([dim for dim in last.dims if dim != "change"]).dropna("change")
    for value in mean:
        label = f"another {value.change.item()}"
        subject = Subject(name, "found_again", label=label, step=step)
        yield measurement(subject, float(value), units="1")
    alike = float(data.code_likeness.sel(step=last.step).median())
    if alike >= SAME:
        yield measurement(Subject(name, "code_likeness", step=step), alike)
