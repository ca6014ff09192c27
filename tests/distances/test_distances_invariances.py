"""Which measure is invariant under which transformation: measured, and written to the reference.

Run as a script, with ``tests`` on the path of modules, it writes docs/reference/invariances.md.
"""

import numpy as np

from helpers.paths import ROOT
from ontogeny import distances

PAGE = ROOT / "docs" / "reference" / "invariances.md"
TRIALS = 5
MEASURES = (*distances.names(), "columnwise", "optimal", "internal", "weighted")

RNG = np.random.default_rng(0)


def _rotation(n):
    return np.linalg.qr(RNG.standard_normal((n, n)))[0]


def _permutation(r):
    return np.eye(r)[:, RNG.permutation(r)]


def _signs(r):
    return np.diag(RNG.permutation([-1.0, 1.0] * (r // 2)))


def _scales(r):
    return np.diag(RNG.permutation(np.logspace(-1, 1, r)))


def _invertible(r):
    return _rotation(r) @ np.diag(np.logspace(-0.5, 0.5, r)) @ _rotation(r)


# Each takes (W, V, U) to another triple. "one" changes the columns of V only, "both" of V and W.
CHANGES = {
    "order of one": lambda W, V, U: (W, V @ _permutation(6), U),
    "signs of one": lambda W, V, U: (W, V @ _signs(6), U),
    "column lengths of one": lambda W, V, U: (W, V @ _scales(6), U),
    "rotation of one": lambda W, V, U: (W, V @ _rotation(6), U),
    "invertible map of one": lambda W, V, U: (W, V @ _invertible(6), U),
    "common order": lambda W, V, U: [
        x @ P for P in [_permutation(6)] for x in (W, V, U)
    ],
    "common rotation of columns": lambda W, V, U: [
        x @ Q for Q in [_rotation(6)] for x in (W, V, U)
    ],
    "common rotation of features": lambda W, V, U: (
        *[Q @ x for Q in [_rotation(20)] for x in (W, V)],
        U,
    ),
    "common scale": lambda W, V, U: (3.0 * W, 3.0 * V, U),
    "common shift of features": lambda W, V, U: (W + 1.0, V + 1.0, U),
}


def _value(name, W, V, U):
    if name == "internal":  # of one matrix: the one that every change changes
        return distances.correlation(name, V)
    return distances.compare(W, V, U)[name]


def _invariant(name, change):
    for _ in range(TRIALS):
        W, V = RNG.standard_normal((2, 20, 6)) + 0.3
        U = RNG.standard_normal((30, 6))
        before, after = (_value(name, *x) for x in ((W, V, U), change(W, V, U)))
        if abs(before - after) > 1e-9 * abs(before):
            return False
    return True


def _page():
    head = f"| measure | {' | '.join(CHANGES)} |\n|---{'|:---:' * len(CHANGES)}|\n"
    rows = []
    for name in MEASURES:
        cells = (
            "yes" if _invariant(name, change) else "" for change in CHANGES.values()
        )
        rows.append(f"| `{name}` | {' | '.join(cells)} |\n")
    return f"""# Invariances of the distances and correlations

Written by `tests/distances/test_distances_invariances.py`, which measures each cell on random
matrices and fails where this page says something else.

"yes": the value stays when the columns of V alone ("of one"), or of W and V alike ("common"), are
changed so. For `weighted` the codes U follow W; `internal` is that of V alone. With a common scale
the norms and `procrustes` grow; `matrix-log` and `bures` change because their `eps` does not grow.

{head}{"".join(rows)}
"Order of one" and "signs of one" are what a solver may choose freely: a measure without a "yes"
there compares dictionaries only after `align`.
"""


def test_the_reference_page_says_what_is_measured():
    assert PAGE.read_text(encoding="utf-8") == _page()


if __name__ == "__main__":
    PAGE.write_text(_page(), encoding="utf-8")
