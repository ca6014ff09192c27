"""Classes of the words of texts, and what is read of a model's predictions about them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from ...inputs import Inputs
from .class_costs import ClassCosts, as_frequent, renamings
from .concepts import signatures, svd_concepts
from .contexts import corpus_support

_AT_HAND = 4  # tables that a process keeps: one is asked for at every checkpoint
_tables: dict[tuple[ClassInformation, str, bool], xr.Dataset] = {}


@dataclass(frozen=True)
class ClassInformation:
    """The function of a `Reduced` need: information about classes that follow from the texts alone.

    Parameters are those of `ontogeny.observables.TextStatistics`.
    """

    depth: int
    vocab_size: int
    n_contexts: int
    n_draws: int
    random_state: int

    def classes(self, inputs: Inputs, masked: bool) -> xr.Dataset:
        """Return the class of every word, in the texts and in the null.

        Raises
        ------
        ArgumentError
            If the texts have no context.
        """
        key = (self, inputs.fingerprint, masked)
        if key not in _tables:
            if len(_tables) >= _AT_HAND:
                _tables.clear()
            _tables[key] = self._classes(inputs, masked)
        return _tables[key].copy()

    def _classes(self, inputs: Inputs, masked: bool) -> xr.Dataset:
        lengths = (2, 4) if masked else (1, 3)
        corpus = corpus_support(inputs, masked, self.vocab_size, self.n_contexts, lengths)
        basis = svd_concepts(corpus.support, self.depth)
        often = np.maximum(np.asarray(corpus.support.counts.sum(axis=1)).ravel(), 0.5)
        groups = as_frequent(often)
        renamed = renamings(groups, self.n_draws, np.random.default_rng([self.random_state, 21]))
        codes = signatures(basis.U)
        alone = np.concatenate([group for group in groups if len(group) == 1] or [np.zeros(0, int)])
        return xr.Dataset(
            {
                "word_id": ("word", np.asarray(corpus.support.word_ids, dtype=np.int64)),
                "code": (("grouping", "word"), np.vstack([codes, codes[renamed]])),
                "exchanged": 1 - often[alone].sum() / often.sum(),
                "depths": basis.k,
            }
        )

    def reduction(self, inputs: Inputs, masked: bool) -> ClassCosts:
        """Return what takes the cost of every token's class out of a pass."""
        table = self.classes(inputs, masked)
        return ClassCosts(table.word_id.values, table.code.values, int(table.depths), inputs)
