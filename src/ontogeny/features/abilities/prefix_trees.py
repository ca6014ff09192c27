"""Scores of many texts by a causal model that reads a beginning which several of them share once.

The beginnings of texts are a tree. Its nodes go through the model in one row, each at the position
that it has in its text, and attention goes to the nodes above it alone. Nothing is padded.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any

import numpy as np
import torch
from torch import nn

from ...capture.forward import device_of, quiet, rows_of, takes
from ...capture.logits import LogitRows
from ...inputs.batches import Batch

_NODES = 256  # of a tree, about: attention takes the square of it
_MOST = 1024  # of one whose texts share more than half of what they have
_AT_ONCE = 128  # tokens whose ranks are taken: each takes a row of the vocabulary


class Tree:
    """Beginnings of texts, each once.

    Attributes
    ----------
    ids
        (nodes,) the token of each node.
    path
        (nodes,) the nodes from the first token of a text to each node.
    text, node, token
        (e,) tokens that have a score, and the node that predicts each.
    """

    def __init__(self) -> None:
        self.ids = list[int]()
        self.path = list[list[int]]()
        self.text = list[int]()
        self.node = list[int]()
        self.token = list[int]()


def trees(tokens: Any) -> Iterator[Tree]:
    """Give the trees of `TokenTexts`; those of the same beginning stand in one where they fit.

    Examples
    --------
    >>> from ontogeny.features.abilities.token_texts import TokenTexts
    >>> ids, width = np.array([1, 5, 6, 1, 5, 7, 8]), np.array([0, 1, 1, 0, 1, 1, 1])
    >>> (tree,) = trees(TokenTexts(ids, width, np.array([0, 3, 7])))
    >>> tree.ids, tree.path, tree.node, tree.token
    ([1, 5, 7], [[0], [0, 1], [0, 1, 2]], [0, 1, 0, 1, 2], [5, 6, 5, 7, 8])
    """
    tree = Tree()
    path = list[int]()
    before = np.zeros(0, np.int64)
    ids = tokens.ids.astype(">u4")  # the bytes of which are in the order of the numbers
    asked = np.flatnonzero(tokens.scored).tolist()  # one that is left out has no score
    for text in sorted(asked, key=lambda text: ids[tokens.of(text)].tobytes()):
        place = tokens.of(text)
        scored = np.flatnonzero(tokens.width[place])
        row = tokens.ids[place][: scored[-1] + 1]
        most = min(len(path), len(row) - 1)
        shared = next((i for i in range(most) if row[i] != before[i]), most)
        limit = max(_MOST, 2 * len(row)) if 2 * shared > len(row) else _NODES
        if tree.ids and len(tree.ids) + len(row) - shared > limit:
            yield tree
            tree = Tree()
            shared = 0
        path = path[:shared]
        before = row
        for token in row[shared:-1].tolist():
            path = [*path, len(tree.ids)]
            tree.path.append(path)
            tree.ids.append(token)
        tree.text += repeat(text, len(scored))
        tree.node += [path[place - 1] for place in scored]
        tree.token += row[scored].tolist()
    if tree.ids:
        yield tree


def tree_scores(
    predictor: Any, tokens: Any, ranks: bool
) -> tuple[np.ndarray, ...] | None:
    """Return (n,) scores and largest ranks, and (c,) texts by which to check them.

    None of a model that takes no trees, or of texts that it cannot take.

    Parameters
    ----------
    predictor
        A model that can be asked.
    tokens
        `TokenTexts`.
    ranks
        Whether ranks are wanted; else they are 0.
    """
    model = predictor.model
    longest = int(np.diff(tokens.start).max())
    window = getattr(getattr(model, "config", None), "sliding_window", None) or longest
    fits = takes(model, "position_ids") and tokens.ids.max() < rows_of(model)
    if predictor.masked or not fits or longest > window:
        return None
    scores = np.zeros(len(tokens))
    rank = np.zeros(len(tokens), dtype=np.int64)
    largest = 0
    checked = [int(np.argmax(np.diff(tokens.start)))]
    logits = LogitRows.of(model, True)
    with quiet(model), logits.attached():
        for tree in trees(tokens):
            try:
                log_p, ahead = _read(model, tree, logits, ranks)
            except Exception:
                # Reading texts one by one shows what is wrong, if anything is.
                return None
            np.add.at(scores, tree.text, log_p)
            np.maximum.at(rank, tree.text, ahead)
            for text, node in zip(tree.text, tree.node, strict=True):
                # Farthest from where its tree begins, of those with nodes of others before them.
                if node > largest and node >= len(tree.path[node]):
                    largest = node
                    checked = [*checked[:1], text]
    return None if np.isnan(scores).any() else (scores, rank, np.unique(checked))


def _read(
    model: nn.Module, tree: Tree, logits: LogitRows, ranks: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the log-probability of each token that has a score, and its rank if it is wanted."""
    ids = np.array([tree.ids])
    device = device_of(model)
    asked, inverse = np.unique(tree.node, return_inverse=True)
    logits.choose(
        Batch(asked[:1], slice(None), ids, ids >= 0), np.zeros_like(asked), asked
    )
    dtype = next(
        (p.dtype for p in model.parameters() if p.is_floating_point()), torch.float32
    )
    bias = np.full((ids.size, ids.size), torch.finfo(dtype).min)
    for node, path in enumerate(tree.path):
        bias[node, path] = 0.0
    output = model(
        input_ids=torch.from_numpy(ids).to(device),
        attention_mask=torch.from_numpy(bias)[None, None].to(device, dtype),
        position_ids=torch.tensor(
            [[len(path) - 1 for path in tree.path]], device=device
        ),
        use_cache=False,
    )
    row = torch.from_numpy(inverse)
    tokens = torch.tensor(tree.token)
    log_p = np.zeros(len(row))
    rank = np.zeros(len(row), dtype=np.int64)
    for part, values in logits.parts(output):
        values = values.float()
        here = ((row >= part.start) & (row < part.stop)).nonzero()[:, 0]
        norm = values.logsumexp(-1)
        for some in here.split(_AT_ONCE if ranks else len(row)):
            of_row = (row[some] - part.start).to(device)
            token = tokens[some].to(device)
            right = values[of_row, token]
            log_p[some] = (right - norm[of_row]).cpu()
            # Of equally likely tokens the one with the smaller id comes first.
            if ranks:
                rows = values[of_row]
                right = right[:, None]
                smaller = (
                    torch.arange(rows.shape[1], device=rows.device) < token[:, None]
                )
                ahead = (rows > right) | ((rows == right) & smaller)
                rank[some] = 1 + ahead.sum(dim=1).cpu().numpy()
    return log_p, rank
