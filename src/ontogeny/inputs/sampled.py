"""What is read of texts: batches, the sample of tokens, and a corrupted copy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ArgumentError, check_choice
from ..needs.base import GRANULARITIES
from .batches import Batch, make_batch, make_batches
from .sampling import TokenSample, draw, masked_positions


class Sampled:
    """Tokenised texts, as a forward pass and a sample of tokens read them."""

    ids: np.ndarray
    mask: np.ndarray
    special: np.ndarray
    answers: np.ndarray | None
    mask_token_id: int | None
    padding_side: str

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def lengths(self) -> np.ndarray:
        """(n,) number of tokens of each text, special tokens included, padding not."""
        return self.mask.sum(axis=1)

    @property
    def ordinary(self) -> np.ndarray:
        """(n, L) bool: tokens that are neither special nor padding."""
        return self.mask & ~self.special

    @property
    def scored(self) -> np.ndarray:
        """(n, L) bool: the ordinary tokens that predictions are scored at: all, or the answers."""
        return self.ordinary if self.answers is None else self.ordinary & self.answers

    def batches(self, batch_size: int, ids: np.ndarray | None = None) -> list[Batch]:
        """Return the texts in batches, longest first, so that little is padding.

        The batches depend on nothing but the inputs and `batch_size`. `ids` replaces the ids
        (a corrupted copy of them, say).

        Examples
        --------
        >>> from ontogeny import Inputs
        >>> inputs = Inputs.from_tokens([[1], [1, 2, 3], [1, 2]])
        >>> [(b.rows.tolist(), b.ids.shape) for b in inputs.batches(2)]
        [([1, 2], (2, 3)), ([0], (1, 1))]
        """
        ids = self.ids if ids is None else ids
        return make_batches(ids, self.mask, self.padding_side, batch_size)

    def batch(self, rows: Sequence[int] | np.ndarray) -> Batch:
        """Return the texts `rows` as one batch."""
        rows = np.asarray(rows, dtype=np.int64)
        return make_batch(self.ids, self.mask, self.padding_side, rows)

    def tokens_at(self, sample: TokenSample) -> np.ndarray:
        """Return the ids (k,) that stand at the rows of a sample.

        Examples
        --------
        >>> from ontogeny import Inputs
        >>> inputs = Inputs.from_tokens([[1, 2], [3]])
        >>> inputs.tokens_at(inputs.sample("last")).tolist()
        [2, 3]
        """
        first = self.mask.argmax(axis=1)[sample.text]
        return np.asarray(self.ids[sample.text, first + sample.position])

    def sample(
        self,
        tokens: str = "all",
        max_tokens: int | None = None,
        random_state: int = 0,
        mask_fraction: float = 0.15,
    ) -> TokenSample:
        """Choose the rows of a reading: a seeded choice, the same at every checkpoint.

        Parameters
        ----------
        tokens
            ``"all"``: ordinary tokens; ``"later"``: these but for the first token of each text,
            which many heads attend to; ``"mean"``: one row per text that has an ordinary token
            (position -1); ``"last"``, ``"cls"``: last and first unpadded token of each text;
            ``"masked"``: the positions that :meth:`corrupt` replaces.
        max_tokens
            Rows kept, drawn without replacement; None keeps all.
        random_state
            Seed of the draw, and of the corruption for ``"masked"``.
        mask_fraction
            The fraction that :meth:`corrupt` replaces, for ``"masked"``.

        Examples
        --------
        >>> from ontogeny import Inputs
        >>> inputs = Inputs.from_tokens([[1, 2], [3]])
        >>> sample = inputs.sample("last")
        >>> sample.text.tolist(), sample.position.tolist()
        ([0, 1], [1, 0])
        """
        check_choice("tokens", tokens, GRANULARITIES)
        whole = self._rows(tokens, random_state, mask_fraction)
        if not len(whole):
            raise ArgumentError(
                f"tokens={tokens!r}: no text has an ordinary token to read."
            )
        return draw(whole, max_tokens, random_state)

    def _rows(
        self, tokens: str, random_state: int, mask_fraction: float
    ) -> TokenSample:
        texts = np.arange(len(self))
        if tokens == "mean":
            texts = texts[self.ordinary.any(axis=1)]
            return TokenSample(texts, np.full(len(texts), -1))
        if tokens in ("last", "cls"):
            return TokenSample(
                texts, self.lengths - 1 if tokens == "last" else 0 * texts
            )
        chosen_mask = self.ordinary
        if tokens == "masked":
            chosen_mask = self.corrupt(mask_fraction, random_state)[1]
        text, column = np.nonzero(chosen_mask)
        position = column - self.mask.argmax(axis=1)[text]
        mask = position > 0 if tokens == "later" else np.full(len(text), True)
        return TokenSample(text[mask], position[mask])

    def corrupt(
        self, mask_fraction: float = 0.15, random_state: int = 0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Replace a fixed random fraction of each text's ordinary tokens by the mask token.

        At least one token of every text that has an ordinary one is replaced, and the same
        tokens whichever side is padded. Where only some tokens are scored, it is one of these.

        Returns
        -------
        ids, positions
            (n, L) int64 corrupted ids and (n, L) bool: where they were replaced.

        Raises
        ------
        ArgumentError
            If there is no mask token or the fraction is not between 0 and 1.

        Examples
        --------
        >>> from ontogeny import Inputs
        >>> inputs = Inputs.from_tokens([[1, 2, 3, 4]], mask_token_id=9)
        >>> ids, positions = inputs.corrupt(0.5)
        >>> int(positions.sum()), bool((ids[positions] == 9).all())
        (2, True)
        """
        if self.mask_token_id is None:
            raise ArgumentError(
                "these inputs have no mask token, so tokens cannot be masked; "
                "use objective='causal', or inputs whose mask_token_id is set."
            )
        positions = masked_positions(self.scored, mask_fraction, random_state)
        return np.where(positions, np.int64(self.mask_token_id), self.ids), positions
