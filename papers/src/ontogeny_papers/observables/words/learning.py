"""When a model learns the concepts of its own corpus, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from torch import nn

from ontogeny.capture.loss import resolve_objective
from ontogeny.errors import ArgumentError
from ontogeny.features.wordspace.cloze import corpus_support, next_word
from ontogeny.features.wordspace.support import checked_lengths
from ontogeny.figures import Figure
from ontogeny.needs import InputSet, Model, Need
from ontogeny.observables.base import Observable
from ontogeny.trees import Nodes

from ...capture.context_logits import context_logits
from ...semantics.subspaces import leading_directions, subspace_overlap
from ...semantics.support_file import load_support
from ...semantics.support_state import support_state
from .figures import QUANTITIES, SECTION, figures, sentences
from .series import followed, order_of_learning, overlap_bands

OVERLAPS = (1, 3, 5, 10, 20, 50)


@dataclass(frozen=True)
class WordSemantics(Observable):
    """Overlap of logits and word embeddings with the concepts of the model's own corpus.

    At every checkpoint: the logits L (V, m) of the V most frequent words after the m most
    frequent contexts. Their leading directions, and those of the decoder's and the input's word
    embeddings, are compared with the leading concepts of S̃, of centred P, and of both weighted by
    the contexts' frequencies π; every concept has its projection u_kᵀ L v_k. Over all steps: when
    each concept is learned, and the rank correlation of that with its singular value.

    Parameters
    ----------
    on
        Input set that holds the corpus, best the training text; the first by default. Words are
        the tokens of the model's own tokenizer.
    support
        File of `ontogeny.semantics.save_support` in its place; its word ids must be token ids of
        the model. Next words only.
    objective
        ``"causal"``: contexts are the last tokens before a word. ``"masked"``: contexts are a
        word's neighbours on both sides, and the model fills the gap. ``"auto"``: from the model's
        class.
    vocab_size, n_contexts, lengths
        V, m, and the fewest and most words of a context. `lengths` is by default (2, 6), or
        (2, 4) for a masked model.
    n_concepts
        Concepts compared, at least 5.
    n_draws
        Shuffled corpora for the null, at least 3.
    batch_size
        Contexts in one forward pass.
    random_state
        Seed of the shuffled corpora.

    Notes
    -----
    Zhao and Thrampoulidis 2025, sec. 4.4, extended to real training runs. The null is the same
    corpus with its counted next words in random order: what word and context frequencies alone
    give.

    Examples
    --------
    >>> WordSemantics(on="corpus", vocab_size=300).name
    'word-semantics'
    """

    on: str | None = None
    support: str | None = None
    objective: str = "auto"
    vocab_size: int = 1000
    n_contexts: int = 5000
    lengths: tuple[int, int] | None = None
    n_concepts: int = 50
    n_draws: int = 10
    batch_size: int = 256
    random_state: int = 0

    kind = "word-semantics"
    minima = {
        "n_concepts": 5,
        "n_draws": 3,
        "batch_size": 1,
        "vocab_size": 4,
        "n_contexts": 1,
    }
    choices = {"objective": ("auto", "causal", "masked")}
    question = "When does the model know which words occur in the same contexts?"
    requires = "texts, a vocabulary head"
    price = "thousands of short contexts at each step"
    quantities = QUANTITIES
    section = SECTION
    variables = {
        "chance": ("overlap of random directions", "1"),
        "projection": ("projection of the logits on the concept", "logits"),
        "logit_norm": ("norm of the centred logits", "logits"),
        "sigma": ("singular value", "1"),
        "sigma_share": ("singular value over the largest", "1"),
        "label": ("most typical words at both ends", ""),
        "words": ("words compared", "words"),
        "learned_at": ("half of the last projection reached", "{step}s"),
        "learned_share": ("share of the last projection", "1"),
        "order": ("rank correlation of σₖ and −{step} learned", "1"),
        "order_p": ("p-value of the order of learning", "1"),
        "order_all": ("rank correlation of σₖ and −{step} learned", "1"),
        "learned": ("concepts learned", "concepts"),
    }

    def check(self) -> None:
        """Refuse arguments out of range."""
        if self.on is not None and self.support is not None:
            raise ArgumentError(
                "give the corpus as an input set (on) or as a file (support)."
            )
        if self.support is not None and not Path(self.support).is_file():
            raise ArgumentError(
                f"support must be a file; there is none at {self.support!r}."
            )
        if self.lengths is not None:
            object.__setattr__(self, "lengths", checked_lengths(self.lengths))

    def arguments(self) -> dict[str, Any]:
        """Return the fields, with the content of the support file."""
        fields = super().arguments()
        if self.support is None:
            return fields
        try:
            content = Path(self.support).read_bytes()
        except OSError as error:
            raise ArgumentError(
                f"support: {self.support} cannot be read: {error.strerror}."
            ) from None
        return {
            **fields,
            "support_digest": blake2b(content, digest_size=16).hexdigest(),
        }

    def needs(self) -> Sequence[Need]:
        """Return the model, and the corpus where it is an input set."""
        return [Model()] if self.support is not None else [Model(), InputSet(self.on)]

    def prepare(self, run: Any) -> xr.Dataset:
        """Count the corpus and find its concepts, and those of its shuffled copies."""
        reading = run.reading(run.reference_step)
        inputs: Any = None if self.support is not None else reading[InputSet(self.on)]
        masked = resolve_objective(reading[Model()], self.objective) == "masked"
        if self.support is None:
            lengths = self.lengths or ((2, 4) if masked else (2, 6))
            corpus = corpus_support(
                inputs, masked, self.vocab_size, self.n_contexts, lengths
            )
        elif masked:
            raise ArgumentError(
                "support holds next words, and this model predicts masked ones; give the corpus "
                "as an input set."
            )
        else:
            corpus = next_word(load_support(self.support))
        state = support_state(corpus, self.n_concepts, self.n_draws, self.random_state)
        if not masked:
            return state
        if inputs.mask_token_id is None:
            raise ArgumentError(
                "a masked model needs inputs whose mask_token_id is set."
            )
        return state.assign(mask_token_id=inputs.mask_token_id)

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return overlaps and projections of one checkpoint, for the corpus and its null."""
        assert state is not None
        model = reading[Model()]
        word_ids = state.word_id.values
        masked = "mask_token_id" in state
        L = context_logits(
            model,
            state.context_id.values,
            word_ids,
            left=state.left.values if masked else None,
            mask_token_id=int(state.mask_token_id) if masked else None,
            batch_size=self.batch_size,
        )
        spaces = {"logits": L, **_embeddings(model, word_ids)}
        overlaps = {name: _overlaps(matrix, state) for name, matrix in spaces.items()}
        of = xr.Variable("of", list(overlaps))
        null = zip(state.null_U.values, state.null_V.values, strict=True)
        dims = ("matrix", "concept")
        data = xr.concat(list(overlaps.values()), dim=of, join="outer")
        return data.assign(
            projection=(dims, _projections(L, state.U.values, state.V.values)),
            null_projection=(
                ("draw", *dims),
                np.stack([_projections(L, U, V) for U, V in null]),
            ),
            logit_norm=float(np.linalg.norm(L - L.mean(axis=0))),
            words=len(word_ids),
            sigma=state.sigma,
            null_sigma=state.null_sigma,
            label=state.label,
        )

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Add bands, the step at which each concept is learned, and their order."""
        data = _constant_over_steps(data, ("sigma", "null_sigma", "label", "words"))
        return followed(order_of_learning(overlap_bands(data), self.random_state))

    def figures(self, data: xr.Dataset, nodes: Nodes) -> Sequence[Figure]:
        """Return when each concept is learned, and in which order."""
        return figures(data)

    def words(self, data: xr.Dataset, nodes: Nodes) -> Sequence[str]:
        """Return overlaps and the order of learning, each beside its null."""
        return sentences(data)


def _constant_over_steps(data: xr.Dataset, names: Sequence[str]) -> xr.Dataset:
    """Return `data` with variables that are the same at all steps without their ``step``."""
    first = int(np.flatnonzero(np.isfinite(data.logit_norm.values))[0])
    return data.assign({name: data[name].isel(step=first, drop=True) for name in names})


def _embeddings(model: nn.Module, word_ids: np.ndarray) -> dict[str, np.ndarray]:
    """Return the rows of the decoder and of the input embedding that stand for the words."""
    embeddings = {}
    for name, method in (
        ("decoder", "get_output_embeddings"),
        ("input", "get_input_embeddings"),
    ):
        give = getattr(model, method, None)
        weight = getattr(give() if callable(give) else None, "weight", None)
        if weight is not None and weight.ndim == 2 and weight.shape[0] > word_ids.max():
            embeddings[name] = weight.detach().float().cpu().numpy()[word_ids]
    return embeddings


def _overlaps(matrix: np.ndarray, state: xr.Dataset) -> xr.Dataset:
    """Return the overlap of leading directions with the concepts of all matrices and nulls."""
    ks = [k for k in OVERLAPS if k <= min(state.sizes["concept"], *matrix.shape)]
    if np.ptp(matrix, axis=0).max() > 0:
        Q = leading_directions(matrix, ks[-1])
        real = np.array([subspace_overlap(U, Q, ks) for U in state.U.values])
        null = np.array(
            [[subspace_overlap(U, Q, ks) for U in draw] for draw in state.null_U.values]
        )
    else:  # all words alike, such as a read-out that starts at zero: it has no direction
        real = np.full((state.sizes["matrix"], len(ks)), np.nan)
        null = np.full((state.sizes["draw"], *real.shape), np.nan)
    return xr.Dataset(
        {
            "overlap": (("matrix", "k"), real),
            "null_overlap": (("draw", "matrix", "k"), null),
        },
        coords={"matrix": state.matrix.values, "k": ks},
    )


def _projections(L: np.ndarray, U: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Return u_kᵀ L v_k for every matrix and concept."""
    return np.stack([np.sum(u * (L @ v), axis=0) for u, v in zip(U, V, strict=True)])
