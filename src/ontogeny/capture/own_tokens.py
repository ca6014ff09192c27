"""Which tokens a model can be shown."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..inputs import Inputs


def ordinary_tokens(model: Any, inputs: Inputs) -> np.ndarray:
    """Return the ids that a model can be shown, special ones left out, increasing.

    Where neither the inputs nor the model's configuration say how many there are, those that occur.

    Examples
    --------
    >>> ordinary_tokens(
    ...     None, Inputs.from_tokens([[1, 5, 6]], special_ids=[1], vocab_size=8)
    ... )
    array([2, 3, 4, 5, 6, 7])
    """
    of_model = getattr(getattr(model, "config", None), "vocab_size", None)
    sizes = [size for size in (inputs.vocab_size, of_model) if isinstance(size, int)]
    ids = np.arange(min(sizes)) if sizes else np.unique(inputs.ids[inputs.ordinary])
    special = {
        *inputs.ids[inputs.special].tolist(),
        inputs.pad_token_id,
        inputs.mask_token_id,
    }
    return np.array([i for i in ids.tolist() if i not in special], dtype=np.int64)
