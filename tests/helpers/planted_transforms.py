"""One member of each group of transformations of four concepts."""

import numpy as np

from ontogeny_papers.distances.alignment import EQUIVALENCES as GROUPS

__all__ = ["GROUPS", "planted_transform"]


def planted_transform(under, rng):
    """Return T (4, 4) of the group."""
    order = np.eye(4)[:, [2, 0, 3, 1]]
    signs, scales = np.diag([1.0, -1.0, -1.0, 1.0]), np.diag([0.5, -2.0, 3.0, 1.0])
    return {
        "permutation": order,
        "sign": signs,
        "signed-permutation": order @ signs,
        "scaling": scales,
        "scaled-permutation": order @ scales,
        "rotation": np.linalg.qr(rng.standard_normal((4, 4)))[0],
        "invertible": rng.standard_normal((4, 4)),
    }[under]
