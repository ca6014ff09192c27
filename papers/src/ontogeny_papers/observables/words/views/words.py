"""What the views share in words: their source and readable labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ontogeny.figures.words import show_token

SOURCE = "Zhao and Thrampoulidis (2025)"


def labels_of(names: Sequence[Any] | None, picked: np.ndarray) -> list[str]:
    """Return readable labels, each once: tokens that read the same get their number.

    Examples
    --------
    >>> labels_of(["\u0120a", "#a", ("of", "the")], np.array([0, 1, 2]))
    ['#a', '#a (1)', 'of the']
    """
    labels = []
    taken = set()
    for i in picked.tolist():
        name = str(i) if names is None else names[i]
        text = show_token(name if isinstance(name, str) else " ".join(name))
        text = text if text not in taken else f"{text} ({i})"
        taken.add(text)
        labels.append(text)
    return labels
