"""The local learning coefficient: how degenerate the loss is around each checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from torch import nn

from ontogeny.capture.loss import resolve_objective
from ontogeny.errors import ArgumentError, check_number
from ontogeny.figures import Section
from ontogeny.inputs import Inputs
from ontogeny.needs import InputSet, Model, Need
from ontogeny.observables.base import Observable
from ontogeny.observables.variables import dataset
from ontogeny.quantities import Measured, Quantity

from .sampled_losses import sampled_chains


@dataclass(frozen=True)
class LearningCoefficient(Observable):
    """Local learning coefficient at every checkpoint, sampled by devinterp.

    Weights are drawn around those of the checkpoint by stochastic gradient Langevin dynamics. The
    coefficient is nβ (mean loss of the draws − loss of the checkpoint): half the number of weights
    where the loss is a regular quadratic, and less where it is degenerate. The loss is that of the
    next token in causal models, and that of the label in classifiers. Needs the extra ``llc`` of
    ``ontogeny-papers``.

    Parameters
    ----------
    lr, n_beta, localization
        Step size, inverse temperature, and pull towards the checkpoint. They decide whether chains
        settle: look at the accepted chains and at R-hat.
    chains, n_draws
        Chains, at least 2, and draws of each, at least 8.
    burn_in
        Share of the draws that does not count, below 1.
    batch_size, length
        Texts in a batch, and tokens of each; by default as many tokens as half of the texts have.
        Shorter texts are left out, and longer ones are cut; of a classifier they are left out too.
    on
        Input set; the first by default. A classifier's labels are the numbers of its classes.
    random_state
        Seed of the chains.

    Notes
    -----
    Lau et al. 2023, "The local learning coefficient", eq. 4; R-hat after Gelman and Rubin 1992. A
    chain is accepted if its losses are finite, if they lie above that of the checkpoint on average,
    and if both halves of its draws differ by at most a fifth of its coefficient.

    Examples
    --------
    >>> LearningCoefficient(chains=3).name
    'learning-coefficient'
    """

    lr: float = 1e-4
    n_beta: float = 30.0
    localization: float = 100.0
    chains: int = 4
    n_draws: int = 200
    burn_in: float = 0.5
    batch_size: int = 32
    length: int | None = None
    on: str | None = None
    random_state: int = 0

    kind = "learning-coefficient"
    minima = {"chains": 2, "n_draws": 8, "batch_size": 1, "length": 2}
    question = "How degenerate is the loss around each checkpoint?"
    requires = "a causal model or a classifier, the extra llc (devinterp)"
    price = "some hundred gradients at each step"
    quantities = (
        Quantity(
            "coefficient",
            "local learning coefficient",
            symbol="λ̂ = nβ (E[L(w)] − L(w*))",
            rows="local learning coefficient",
            unit="chains",
            caption="Mean of the accepted chains.",
        ),
        Quantity(
            "accepted",
            "share of chains that were accepted",
            caption="Finite, above the checkpoint's loss, without drift. Below 1, change lr, nβ or "
            "the pull.",
        ),
        Quantity(
            "rhat",
            "agreement of the chains (R-hat)",
            symbol="R̂",
            caption="1: they agree.",
        ),
    )
    variables = {
        "trace": ("loss at each draw", "nats per answer"),
        "initial_loss": ("loss of the checkpoint", "nats per answer"),
        "drift": (
            "difference of the coefficient between both halves of the draws",
            "1",
        ),
        "of_chain": ("local learning coefficient of each chain", "1"),
    }
    section = Section(
        title="Local learning coefficient",
        definition="How fast the volume of weights with a loss near that of the checkpoint grows: "
        "half the number of weights for a regular loss, less for a degenerate one.",
        symbol="λ̂ = nβ (E[L(w)] − L(w*))",
        null="None of its own; control runs show what weights that move as far give.",
        care="It depends on step size, temperature and pull, and is an estimate only where chains "
        "were accepted and agree. Away from a minimum it may be negative, and such chains do not "
        "count.",
        source="Lau et al. 2023; sampled by devinterp",
    )

    def check(self) -> None:
        """Refuse arguments out of range."""
        for name in ("lr", "n_beta"):
            check_number(name, getattr(self, name), above=True)
        check_number("localization", self.localization)
        if check_number("burn_in", self.burn_in) > 0.75:
            raise ArgumentError(f"burn_in must lie in 0 to 0.75; got {self.burn_in}.")

    def needs(self) -> Sequence[Need]:
        """Return the model and the texts."""
        return [Model(), InputSet(self.on)]

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return the coefficient with the traces that it rests on."""
        model, inputs = (reading[need] for need in self.needs())
        classifier = _is_classifier(model, inputs)
        chains = sampled_chains(
            model,
            windows(inputs, self.length, self.batch_size, classifier),
            classifier=classifier,
            n_beta=self.n_beta,
            burn_in=int(self.n_draws * self.burn_in),
            lr=self.lr,
            localization=self.localization,
            num_chains=self.chains,
            num_draws=self.n_draws,
            batch_size=self.batch_size,
            init_seed=self.random_state,
        )
        good = chains.accepted
        if not good.any():
            raise ArgumentError(
                f"none of {len(good)} chains settled (coefficients "
                f"{', '.join(f'{c:.3g}' for c in chains.coefficients)}); change lr={self.lr:g}, "
                f"n_beta={self.n_beta:g} or localization={self.localization:g}, or give more draws."
            )
        values = chains.coefficients[good]
        stderr = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else None
        data = dataset(
            {
                "coefficient": Measured(float(values.mean()), stderr=stderr),
                "accepted": float(good.mean()),
                "initial_loss": chains.initial,
            }
        )
        return data.assign(  # NaN where a chain failed
            rhat=chains.rhat,
            trace=(("chain", "draw"), chains.trace),
            of_chain=("chain", chains.coefficients),
            drift=("chain", chains.drift),
        )


def _is_classifier(model: nn.Module, inputs: Inputs) -> bool:
    """Return whether the loss is that of labels; refuse what is neither that nor a causal model."""
    try:
        objective = resolve_objective(model, "auto")
    except ArgumentError:  # no language model by its name
        objective = "none"
    if objective == "causal":
        return False
    if objective == "masked" or inputs.labels is None:
        raise ArgumentError(
            "the local learning coefficient is sampled for causal models, and for classifiers with "
            f"labelled texts; {type(model).__name__} is none of them, or its texts have no labels."
        )
    return True


def windows(
    inputs: Inputs, length: int | None, batch_size: int, labelled: bool = False
) -> np.ndarray:
    """Return the first `length` tokens of every text that has as many, (texts, length).

    Where `labelled`, texts are not cut: those of exactly that length are returned, with their label
    as one more column.

    Raises
    ------
    ArgumentError
        If there are fewer such texts than a batch takes, or labels are no whole numbers.

    Examples
    --------
    >>> windows(Inputs.from_tokens([[1, 2, 3], [4, 5], [6, 7, 8, 9]]), None, 2)
    array([[1, 2, 3],
           [6, 7, 8]])
    >>> windows(
    ...     Inputs.from_tokens([[1, 2], [4, 5], [6, 7, 8]], labels=[0, 1, 1]),
    ...     None,
    ...     2,
    ...     True,
    ... )
    array([[1, 2, 0],
           [4, 5, 1]])
    """
    sizes = inputs.mask.sum(axis=1)
    size = int(np.median(sizes)) if length is None else length
    places = np.flatnonzero(sizes == size if labelled else sizes >= size)
    if len(places) < batch_size:
        raise ArgumentError(
            f"batch_size={batch_size} needs as many texts of {size} tokens; there are "
            f"{len(places)}. Give a smaller batch_size or length."
        )
    rows = np.stack([inputs.ids[i][inputs.mask[i]][:size] for i in places])
    if not labelled:
        return rows
    labels = np.asarray(inputs.labels)[places]
    if labels.dtype.kind not in "iu":
        raise ArgumentError(
            f"labels must be the numbers of classes; got {labels[0]!r}."
        )
    return np.concatenate([rows, labels[:, None].astype(rows.dtype)], axis=1)
