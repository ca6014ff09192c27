"""Losses of weights drawn around a checkpoint by devinterp, and whether its chains can be used."""

from __future__ import annotations

import contextlib
import io
import random
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ontogeny.capture.forward import device_of
from ontogeny.errors import MissingExtraError

DRIFT = 0.2  # of the coefficient: a larger change within the draws that count is no equilibrium


@dataclass(frozen=True)
class Chains:
    """What SGLD chains from one checkpoint gave.

    Parameters
    ----------
    trace
        Loss at every draw (chains, draws), NaN from where a chain failed.
    initial
        Loss of the checkpoint itself.
    n_beta
        Inverse temperature.
    burn_in
        Draws that do not count.

    Examples
    --------
    >>> chains = Chains(np.full((2, 9), 3.5), initial=3.0, n_beta=10.0, burn_in=3)
    >>> chains.coefficients, chains.accepted
    (array([5., 5.]), array([ True,  True]))
    """

    trace: np.ndarray
    initial: float
    n_beta: float
    burn_in: int

    @property
    def coefficients(self) -> np.ndarray:
        """Local learning coefficient of each chain: nβ (mean loss − initial loss), (chains,)."""
        return self.n_beta * (self.trace[:, self.burn_in :].mean(axis=1) - self.initial)

    @property
    def drift(self) -> np.ndarray:
        """How much the coefficient differs between both halves of the draws that count."""
        counted = self.trace[:, self.burn_in :]
        half = counted.shape[1] // 2
        return self.n_beta * (
            counted[:, -half:].mean(axis=1) - counted[:, :half].mean(axis=1)
        )

    @property
    def accepted(self) -> np.ndarray:
        """Whether each chain is finite, lies above the initial loss, and hardly drifts."""
        values = self.coefficients
        finite = np.isfinite(self.trace).all(axis=1)
        return finite & (values > 0) & (np.abs(self.drift) <= DRIFT * np.abs(values))

    @property
    def rhat(self) -> float:
        """Gelman and Rubin's ratio of the draws that count, 1 where chains agree.

        Over chains that did not fail; NaN if there are fewer than two.
        """
        counted = self.trace[np.isfinite(self.trace).all(axis=1), self.burn_in :]
        if len(counted) < 2:
            return np.nan
        n = counted.shape[1]
        within = counted.var(axis=1, ddof=1).mean()
        between = n * counted.mean(axis=1).var(ddof=1)
        if within == 0:
            return 1.0 if between == 0 else np.inf
        return float(np.sqrt((n - 1) / n + between / n / within))


def sampled_chains(
    model: nn.Module,
    windows: np.ndarray,
    *,
    classifier: bool,
    n_beta: float,
    burn_in: int,
    **options: Any,
) -> Chains:
    """Draw weights around those of a model by SGLD and return the losses there.

    The model and all global random states are left as they were.

    Parameters
    ----------
    model
        A model whose logits follow from token ids alone.
    windows
        Token ids (texts, length), without padding; of a classifier with the label as last column.
    classifier
        Whether the loss is that of the labels; else it is that of the next tokens.
    n_beta
        Inverse temperature.
    burn_in
        Draws that do not count.
    options
        Further arguments of ``devinterp.slt.llc.llc``, such as its step size.

    Raises
    ------
    MissingExtraError
        If devinterp is not installed.
    """
    try:
        from datasets import Dataset
        from devinterp.slt.llc import llc
    except ImportError:
        raise MissingExtraError(
            "the local learning coefficient is sampled by devinterp, which is not installed: "
            "pip install 'ontogeny-papers[llc]'."
        ) from None
    texts = Dataset.from_dict({"input_ids": windows.tolist()}).with_format("torch")
    with _random_states(), _quiet():
        data = llc(
            model,
            texts,
            {},
            n_beta=n_beta,
            device=str(device_of(model)),
            loss_fn=_label_loss if classifier else None,
            **options,
        )
    trace = np.asarray(
        data["loss_trace"].transpose("chain", "step").values, dtype=float
    )
    return Chains(trace, float(data["init_loss"]), n_beta, burn_in)


def _label_loss(model: nn.Module, rows: Tensor) -> Tensor:
    """Return the loss of each row's label in the shape of a loss of next tokens, (texts, tokens).

    All tokens of a text have the same loss, so that means are those over texts.
    """
    output = model(rows[:, :-1])
    logits = output if isinstance(output, Tensor) else output.logits
    return cross_entropy(logits, rows[:, -1], reduction="none")[:, None].expand(
        rows[:, 1:].shape
    )


@contextlib.contextmanager
def _random_states() -> Iterator[None]:
    """Give back the global random states, which devinterp seeds."""
    python = random.getstate()
    numpy: Any = np.random.get_state()  # noqa: NPY002  # what devinterp seeds
    gpus = list(range(torch.cuda.device_count())) if torch.cuda.is_available() else []
    try:
        with torch.random.fork_rng(devices=gpus):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep back progress bars of single chains, and warnings of failed ones: these are counted."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        yield
