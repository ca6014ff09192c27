"""How much of what a joint dictionary shows is there again when nothing of substance changes.

    env OMP_NUM_THREADS=1 python benchmarks/joint_stability.py BASE.npz [OTHER.npz ...] [--key l1]

A file holds activations ``l1`` (S, n, m) of one layer at S checkpoints, ``steps`` (S,) and ``text``
(n,), as a person has captured them; other files hold those of the same checkpoints on another
processor, or with other settings of ``ATEN_CPU_CAPABILITY`` and ``MKL_CBWR``. Prints for each
change: of the concepts that the base shows, the share whose codes correlate by 0.9 with a concept
of the other fit, the share of births that are the same, and that lie within the base's interval.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from ontogeny.concepts import JointDictionary
from ontogeny.concepts.joint.presence import found_again


def fitted(X, steps, text, **options) -> JointDictionary:
    made = JointDictionary(100, **{"max_tokens": 5000, **options})
    return made.fit(X, groups=text, steps=steps)


def compared(one: JointDictionary, other: JointDictionary, limit: float) -> str:
    """Return what of the first is in the second, on the tokens that both have used."""
    _, first, second = np.intersect1d(one.rows_, other.rows_, return_indices=True)
    codes = one.codes_[first], other.codes_[second]
    correlation, match = found_again(*codes)
    shown = one.is_concept_ & one.replicates_
    count = int(shown.sum())
    again = shown & (correlation >= limit) & other.is_concept_[match]
    also = again & other.replicates_[match]
    born, later = one.lives_.born, other.lives_.born[match]
    both = again & (born >= 0)
    steps = np.searchsorted(one.steps_, other.steps_)[np.maximum(later, 0)]
    same = both & (later >= 0) & (steps == born)
    inside = both & (later >= 0)
    inside &= (steps > one.births_.after) & (steps <= one.births_.before)
    said = max(int(both.sum()), 1)
    dated = max(int((both & (later >= 0)).sum()), 1)
    return (
        f"shown {count} of {one.is_concept_.sum()} | again {again.sum() / max(count, 1):.2f}, "
        f"shown there too {also.sum() / max(count, 1):.2f} | {both.sum()} births: same "
        f"{same.sum() / said:.2f}, of those dated in the interval {inside.sum() / dated:.2f}"
    )


def halves(one: JointDictionary, X, steps, text, seed: int) -> str:
    """Return how much of what the whole shows either half finds, by the codes of its tokens."""
    names = np.random.default_rng(seed).permutation(np.unique(text))
    lines = []
    for part in np.array_split(names, 2):
        rows = np.flatnonzero(np.isin(text, part))
        other = fitted([x[rows] for x in X], steps, text[rows], max_tokens=None)
        other.rows_ = rows[other.rows_]
        lines.append(
            f">= .7: {compared(one, other, 0.7)}; >= .9: {compared(one, other, 0.9)}"
        )
    return "\n    ".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--key", default="l1")
    given = parser.parse_args()
    base, *others = (np.load(file) for file in given.files)
    X = base[given.key]
    steps = base["steps"]
    text = base["text"]
    begin = time.process_time()
    whole = fitted(X, steps, text)
    print(
        f"{time.process_time() - begin:.1f} s; the same fit: {compared(whole, whole, 0.9)}"
    )

    def say(what: str, other: JointDictionary) -> None:
        print(f"{what}: {compared(whole, other, 0.9)}", flush=True)

    rng = np.random.default_rng(0)
    noisy = [x * (1 + 1e-6 * rng.standard_normal(x.shape)).astype(x.dtype) for x in X]
    say("noise of 1e-6", fitted(noisy, steps, text))
    for file, other in zip(given.files[1:], others, strict=True):
        say(file, fitted(other[given.key], steps, text))
    order = rng.permutation(len(whole.rows_))
    moved = fitted(X[:, whole.rows_][:, order], steps, text[whole.rows_][order])
    moved.rows_ = whole.rows_[order]
    say("order of tokens", moved)
    say("another seed, and tokens", fitted(X, steps, text, random_state=1))
    say("4,500 tokens", fitted(X, steps, text, max_tokens=4500))
    kept = np.delete(np.arange(len(steps)), len(steps) // 2)
    frozen = [int(np.searchsorted(kept, i)) for i in whole.fit_steps_ if i in kept]
    say(
        "one checkpoint fewer, same fit_steps",
        fitted(X[kept], steps[kept], text, fit_steps=frozen),
    )
    say(
        "one checkpoint fewer, fit_steps chosen anew",
        fitted(X[kept], steps[kept], text),
    )
    for seed in (0, 1):
        print(
            f"halves of the texts, split {seed}: {halves(whole, X, steps, text, seed)}"
        )


if __name__ == "__main__":
    main()
