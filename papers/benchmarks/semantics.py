"""Time and memory from tokens to orthants.

    python benchmarks/semantics.py text FILE...    each text file, V = 1,000, m = 10,000
    python benchmarks/semantics.py scale [TOKENS]  synthetic Zipf tokens, V = 50,000, m = 1,000,000

Processor and wall seconds and the peak of resident memory of this process, library imports
included. The plain count beside it is the loop over positions with dictionaries that a reader of
the paper would write.
"""

from __future__ import annotations

import resource
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from ontogeny import semantics

Result = TypeVar("Result")


def timed(name: str, function: Callable[[], Result]) -> Result:
    wall, processor = time.perf_counter(), time.process_time()
    result = function()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{name:34s} {time.process_time() - processor:7.2f} s cpu "
        f"{time.perf_counter() - wall:7.2f} s wall, peak {peak:.2f} GiB",
        flush=True,
    )
    return result


def plain_count(ids: list[int], vocab_size: int, n_contexts: int) -> Counter:
    """Count with dictionaries; the words are kept as they come in."""
    kept = {
        word for word, _ in Counter(i for i in ids if i >= 0).most_common(vocab_size)
    }
    contexts: Counter = Counter()
    for end in range(len(ids) - 1):
        if ids[end + 1] in kept:
            for length in range(1, 7):
                start = end - length + 1
                if start < 0 or ids[start] not in kept:
                    break
                if length >= 2:
                    contexts[tuple(ids[start : end + 1])] += 1
    best = dict(contexts.most_common(n_contexts))
    follow: Counter = Counter()
    for end in range(len(ids) - 1):
        if ids[end + 1] in kept:
            for length in range(2, 7):
                context = tuple(ids[max(end - length + 1, 0) : end + 1])
                if len(context) == length and context in best:
                    follow[context, ids[end + 1]] += 1
    return follow


def text(path: Path) -> None:
    print(path.name)
    content = path.read_text("utf-8")
    start = time.perf_counter()
    stream = timed("words", lambda: semantics.word_stream(content))
    support = timed("support matrix", lambda: semantics.support_matrix(stream))
    basis = timed("20 concepts", lambda: semantics.svd_concepts(support))
    timed("orthants of 5", lambda: semantics.orthants(basis, 5))
    print(
        f"text to orthants {time.perf_counter() - start:.2f} s wall, {len(stream)} tokens"
    )
    unknown = [i for i, word in enumerate(stream.words) if word == "<unk>"]
    ids = np.where(np.isin(stream.ids, unknown), -1, stream.ids).tolist()
    plain = timed("plain count, for comparison", lambda: plain_count(ids, 1000, 10_000))
    print(f"non-zeros {support.counts.nnz}, plain {len(plain)}")


def scale(n_tokens: int) -> None:
    rng = np.random.default_rng(0)
    weights = 1 / np.arange(1, 60_001)
    cumulative = np.cumsum(weights / weights.sum())
    ids = np.searchsorted(cumulative, rng.random(n_tokens)).astype(np.int32)
    print(f"{n_tokens} tokens, made")
    support = timed(
        "support matrix",
        lambda: semantics.support_matrix(ids, 50_000, 1_000_000, exclude=()),
    )
    print(f"shape {support.shape}, {support.counts.nnz} non-zeros")
    basis = timed("20 concepts", lambda: semantics.svd_concepts(support, 20))
    timed("orthants of 5", lambda: semantics.orthants(basis, 5))


if __name__ == "__main__":
    if sys.argv[1:2] == ["text"]:
        for name in sys.argv[2:]:
            text(Path(name))
    elif sys.argv[1:2] == ["scale"]:
        scale(int(sys.argv[2]) if len(sys.argv) > 2 else 20_000_000)
    else:
        sys.exit(__doc__)
