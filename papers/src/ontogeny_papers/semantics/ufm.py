"""The unconstrained features model of next-token prediction, trained by gradient descent."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr

from ontogeny.arrays import Array, namespace
from ontogeny.errors import ArgumentError, check_choice, check_number, check_whole

from .objectives import Objective, check_centred, make_objective
from .ufm_records import UfmBasis, UfmRecorder, basis_of, with_theory

_MOST_STEPS = 1_000_000
_LARGEST_DELTA = 300


def train_ufm(
    S_centred: Array,
    d: int,
    loss: str = "square",
    init: str = "aligned",
    *,
    P: Array | None = None,
    pi: Array | None = None,
    ridge: float = 0.0,
    delta: float = 8.0,
    duration: float | None = None,
    step_size: float = 0.02,
    integrator: str = "heun",
    records: int = 200,
    random_state: int = 0,
) -> xr.Dataset:
    """Train word embeddings W (V, d) and context embeddings H (d, m) freely and record how.

    Minimises Σ_j w_j loss_j(W h_j) + (ridge/2)(‖W‖² + ‖H‖²), where loss_j is (1/2)‖s̃_j − W h_j‖²
    (``"square"``) or the cross-entropy of softmax(W h_j) with the column p_j of `P`
    (``"cross_entropy"``), and w_j = m π_j, so that equal context weights are the same as none.

    Parameters
    ----------
    S_centred
        Centred support matrix S̃ = (I − 11ᵀ/V) S, (V, m), NumPy or PyTorch (also on a GPU).
    d
        Embedding dimension, above or below V.
    loss
        ``"square"`` or ``"cross_entropy"``.
    init
        ``"aligned"``: W(0) = e^−δ U Rᵀ and H(0) = e^−δ R Vᵀ with the singular vectors of S̃, the
        start of `closed_form`. ``"random"``: Gaussian, with the same expected norms.
    P
        Next-word distributions (V, m), columns sum to 1, for the cross-entropy; by default uniform
        on the support that `S_centred` shows.
    pi
        Context weights (m,), not negative; scaled to mean 1.
    ridge
        Weight of the ridge penalty; λ of the paper's Σ_j π_j loss_j is ridge / m.
    delta
        Minus the logarithm of the initial scale.
    duration
        Time of the flow. Default: until the slowest concept of the square loss is learned; for
        the cross-entropy, whose logits grow without end, 30 times the half-time of its first.
    step_size
        Step of the integrator in units of 1/σ_1, the fastest growth rate.
    integrator
        ``"heun"`` follows the flow to second order; ``"euler"`` is plain gradient descent, which
        lags behind the flow by about δ × step_size / 4.
    records
        Number of times recorded, evenly spaced, first and last included.
    random_state
        Seed of R and of the random start.

    Returns
    -------
    xarray.Dataset
        Along ``time`` (with ``iteration``) and ``concept`` (1 to min(d, rank), by σ):
        ``projection`` u_iᵀ L v_i, ``singular_value`` of L = W H, ``theory`` σ_i a_i(t) (square
        loss without weights and ridge), ``sigma``, ``half_time`` (when the projection reaches
        half of σ_i, or of its own last value for the cross-entropy) and ``theory_half_time``;
        ``loss`` (with the penalty), ``logit_norm`` ‖L‖, ``complement_norm`` ‖L − UUᵀLVVᵀ‖,
        ``mixing_norm`` (what of UᵀLV is off its diagonal), ``cosine`` of L with S̃;
        ``overlap(time, matrix, k)`` of the leading logit directions with those of S̃, centred P
        and, with `pi`, both weighted by it.

    Raises
    ------
    ArgumentError
        If an argument is out of range, S̃ is not centred, or the training would need more than a
        million steps.
    NonFiniteError
        If the training diverges.

    Notes
    -----
    Zhao and Thrampoulidis 2025, Eq. (NTP-UFM), sec. 4.4, App. D, Figs 12, 13, 18, 19. With the
    aligned start the square loss follows `closed_form`; a small random start keeps the order of
    the concepts, but its curves are shifted in time. Under the cross-entropy the first
    directions are those of the centred P weighted by π, and S̃ takes over later: see ``overlap``.

    Examples
    --------
    >>> S = np.array([[1.0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 0]])
    >>> run = train_ufm(S - S.mean(axis=0), d=4, delta=6.0)
    >>> bool((abs(run.projection - run.theory) < 0.01 * run.sigma).all())
    True
    """
    check_choice("init", init, ("aligned", "random"))
    check_choice("integrator", integrator, ("heun", "euler"))
    S = check_centred("S_centred", S_centred)
    _check_sizes(d, delta, step_size, ridge, records)
    check_whole("random_state", random_state, 0)
    objective = make_objective(S, loss, P, pi, float(ridge))
    basis = basis_of(S, d)
    rates = objective.growth_rates()
    total = _duration(duration, objective, basis, rates, delta, init)
    steps = max(math.ceil(total * rates[0] / step_size), 2)
    if steps > _MOST_STEPS:
        raise ArgumentError(
            f"this would take {steps:,} steps (duration {total:.3g} at the growth rate "
            f"{rates[0]:.3g}); give a shorter duration or a larger step_size."
        )
    W, H = _start(basis, d, S, delta, init, random_state)
    recorder = UfmRecorder(objective, basis)
    even = np.linspace(0, steps, min(records, steps + 1)).round().astype(int)
    steps_kept = set(even.tolist())
    eta = total / steps
    for i in range(steps + 1):
        if i in steps_kept:
            recorder.take(i, eta * i, W, H)
        if i < steps:
            W, H = _advance(objective, W, H, eta, integrator)
    data = with_theory(recorder.result(), objective, delta)
    return data.assign_attrs(
        loss=loss,
        init=init,
        integrator=integrator,
        d=d,
        delta=delta,
        ridge=float(ridge),
        step=eta,
        steps=steps,
        random_state=random_state,
    )


def _check_sizes(
    d: int, delta: float, step_size: float, ridge: float, records: int
) -> None:
    check_whole("d", d)
    if (
        check_number("delta", delta, -math.inf) > _LARGEST_DELTA
        or delta < -_LARGEST_DELTA
    ):
        raise ArgumentError(
            f"delta must lie between -{_LARGEST_DELTA} and {_LARGEST_DELTA}, or e^-delta is lost; "
            f"got {delta}."
        )
    if check_number("step_size", step_size, above=True) > 0.5:
        raise ArgumentError(f"step_size must lie in (0, 0.5]; got {step_size}.")
    check_number("ridge", ridge)
    check_whole("records", records, 2)


def _duration(
    duration: float | None,
    objective: Objective,
    basis: UfmBasis,
    rates: np.ndarray,
    delta: float,
    init: str,
) -> float:
    if duration is not None:
        return check_number("duration", duration, above=True)
    if objective.loss == "cross_entropy":
        return 30 * max(delta, 1.0) / rates[0]
    slowest = rates[: len(basis.sigma)].min() - objective.ridge
    if slowest <= 0:
        raise ArgumentError(
            f"ridge={objective.ridge:g} keeps a concept from being learned (its growth rate is "
            f"{slowest + objective.ridge:.3g}), so duration has no default; give one."
        )
    learned = (delta + 0.5 * math.log(max(slowest, 1e-300)) + 5) / slowest
    return max(learned, 5 / slowest) * (1.5 if init == "random" else 1.0)


def _start(
    basis: UfmBasis, d: int, S: Array, delta: float, init: str, random_state: int
) -> tuple[Array, Array]:
    xp = namespace(S)
    rng = np.random.default_rng(random_state)
    scale = math.exp(-delta)
    r = len(basis.sigma)
    where = {"dtype": S.dtype, "device": getattr(S, "device", None)}
    if init == "aligned":
        R = xp.asarray(np.linalg.qr(rng.standard_normal((d, r)))[0], **where)
        return scale * basis.U @ R.T, scale * R @ basis.V.T
    words, contexts = S.shape
    W = rng.standard_normal((words, d)) * scale * math.sqrt(r / (words * d))
    H = rng.standard_normal((d, contexts)) * scale * math.sqrt(r / (contexts * d))
    return xp.asarray(W, **where), xp.asarray(H, **where)


def _advance(
    objective: Objective, W: Array, H: Array, eta: float, integrator: str
) -> tuple[Array, Array]:
    dW, dH = objective.gradient(W, H)
    if integrator == "euler":
        return W - eta * dW, H - eta * dH
    eW, eH = objective.gradient(W - eta * dW, H - eta * dH)
    return W - eta / 2 * (dW + eW), H - eta / 2 * (dH + eH)
