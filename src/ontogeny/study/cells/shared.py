"""What several observables compute alike at one checkpoint, computed once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

SHARED_BYTES = 1 << 30


class Shared:
    """Values by key, within a number of bytes.

    What was kept first stays. Observables ask for one layer after the other, so a new value in
    the place of the oldest would leave none for the next observable.

    Parameters
    ----------
    limit
        Bytes that may be kept. What does not fit is computed again when it is asked for.

    Examples
    --------
    >>> import numpy as np
    >>> shared = Shared(limit=80)
    >>> shared.get("a", lambda: np.ones(10)) is shared.get("a", lambda: np.zeros(10))
    True
    >>> shared.get("b", lambda: np.ones(1)) is shared.get("b", lambda: np.ones(1))
    False
    """

    def __init__(self, limit: int = SHARED_BYTES) -> None:
        self._limit = limit
        self._kept: dict[Hashable, Any] = {}
        self._bytes = 0

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the value of a key; `make` computes it, an array or what else has ``nbytes``."""
        if key in self._kept:
            return self._kept[key]
        value = make()
        if self._bytes + value.nbytes <= self._limit:
            self._kept[key] = value
            self._bytes += value.nbytes
        return value
