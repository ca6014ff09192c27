"""Scores of many texts by a causal model that reads a beginning which several of them share once.

The beginnings of texts are a tree. Its nodes go through the model in one row, each at the position
that it has in its text, and attention goes to the nodes above it alone. Nothing is padded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import WeakSet

import numpy as np
import torch
from torch import Tensor, nn

from ...capture.forward import device_of, quiet, rows_of, takes
from ...capture.logits import LogitRows
from ...inputs.batches import Batch

_NODES = 256  # of a tree, about: attention takes the square of it
_MOST = 1024  # of one whose texts share more than half of what they have
_RANKED = 64  # tokens at once: each takes a row of the vocabulary

_refused: WeakSet[nn.Module] = WeakSet()
"""Modules that do not read trees: their positions or their windows are counted otherwise."""


class Tree:
    """Beginnings of texts, each once.

    Attributes
    ----------
    ids, parent, depth
        (nodes,) the token of each node, the node before it (-1 at the first), and its position.
    text, node, token
        (e,) tokens that have a score, and the node that predicts each.
    """

    def __init__(self) -> None:
        self.ids, self.parent, self.depth = list[int](), list[int](), list[int]()
        self.text, self.node, self.token = list[int](), list[int](), list[int]()

    def add(self, text: int, row: np.ndarray, scored: np.ndarray, path: list[int]) -> list[int]:
        """Add a text whose first nodes are there already; return the nodes of all but its last."""
        path = list(path)
        for depth in range(len(path), len(row) - 1):
            self.parent.append(path[-1] if path else -1)
            self.depth.append(depth)
            path.append(len(self.ids))
            self.ids.append(int(row[depth]))
        self.text += [text] * len(scored)
        self.node += [path[place - 1] for place in scored]
        self.token += row[scored].tolist()
        return path

    def allowed(self) -> np.ndarray:
        """Return (nodes, nodes) bool: those above each node, and itself."""
        allowed = np.eye(len(self.ids), dtype=bool)
        for node, parent in enumerate(self.parent):
            if parent >= 0:
                allowed[node] |= allowed[parent]
        return allowed


def trees(tokens: Any) -> Iterator[Tree]:
    """Give the trees of `TokenTexts`; those of the same beginning stand in one where they fit.

    Examples
    --------
    >>> from ontogeny.features.abilities.token_texts import TokenTexts
    >>> ids, width = np.array([1, 5, 6, 1, 5, 7, 8]), np.array([0, 1, 1, 0, 1, 1, 1])
    >>> (tree,) = trees(TokenTexts(ids, width, np.array([0, 3, 7])))
    >>> tree.ids, tree.parent, tree.node, tree.token
    ([1, 5, 7], [-1, 0, 1], [0, 1, 0, 1, 2], [5, 6, 5, 7, 8])
    """
    tree, path, before = Tree(), list[int](), np.zeros(0, np.int64)
    for text in _sorted(tokens):
        place = tokens.of(text)
        scored = np.flatnonzero(tokens.width[place])
        row = tokens.ids[place][: scored[-1] + 1]
        most = min(len(path), len(row) - 1)
        differs = np.flatnonzero(row[:most] != before[:most])
        shared = int(differs[0]) if len(differs) else most
        limit = max(_MOST, 2 * len(row)) if 2 * shared > len(row) else _NODES
        if tree.ids and len(tree.ids) + len(row) - shared > limit:
            yield tree
            tree, shared = Tree(), 0
        path, before = tree.add(text, row, scored, path[:shared]), row
    yield tree


def _sorted(tokens: Any) -> list[int]:
    """Return the texts by their tokens, so that those of the same beginning stand together."""
    ids = tokens.ids.astype(">u4")  # the bytes of which are in the order of the numbers
    return sorted(range(len(tokens)), key=lambda text: ids[tokens.of(text)].tobytes())


def tree_scores(model: nn.Module, tokens: Any, ranks: bool) -> tuple[np.ndarray, ...] | None:
    """Return (n,) scores and largest ranks, and (c,) texts by which to check them.

    None of a model that takes no trees, or of texts that it cannot take.

    Parameters
    ----------
    model
        A causal model.
    tokens
        `TokenTexts`.
    ranks
        Whether ranks are wanted; else they are 0.
    """
    known = takes(model, "position_ids") and takes(model, "attention_mask")
    if not known or model in _refused or tokens.ids.max(initial=0) >= rows_of(model):
        return None
    scores, rank = np.zeros(len(tokens)), np.zeros(len(tokens), dtype=np.int64)
    largest, checked, logits = 0, [int(np.argmax(np.diff(tokens.start)))], LogitRows.of(model, True)
    with quiet(model), logits.attached():
        for tree in trees(tokens):
            try:
                log_p, ahead = _read(model, tree, logits, ranks)
            except Exception:  # reading texts one by one shows what is wrong, if anything is
                return None
            np.add.at(scores, tree.text, log_p)
            np.maximum.at(rank, tree.text, ahead)
            if len(tree.ids) > largest:  # its last text is farthest from where its tree begins
                largest, checked = len(tree.ids), [*checked[:1], tree.text[0], tree.text[-1]]
    return None if np.isnan(scores).any() else (scores, rank, np.unique(checked))


def refuse(model: nn.Module) -> None:
    """Read no more trees with a module."""
    _refused.add(model)


def _read(
    model: nn.Module, tree: Tree, logits: LogitRows, ranks: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the log-probability of each token that has a score, and its rank if it is wanted."""
    ids, device = np.array([tree.ids]), device_of(model)
    asked, row = np.unique(tree.node, return_inverse=True)
    batch = Batch(np.zeros(1, int), slice(0, ids.shape[1]), ids, np.ones_like(ids, dtype=bool))
    logits.choose(batch, np.zeros_like(asked), asked)
    dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.float32)
    hidden = torch.from_numpy(~tree.allowed())
    bias = torch.zeros(hidden.shape, dtype=dtype).masked_fill_(hidden, torch.finfo(dtype).min)
    output = model(
        input_ids=torch.from_numpy(ids).to(device),
        attention_mask=bias[None, None].to(device),
        position_ids=torch.tensor([tree.depth], device=device),
        **({"use_cache": False} if takes(model, "use_cache") else {}),
    )
    log_p, rank = np.zeros(len(row)), np.zeros(len(row), dtype=np.int64)
    token = np.array(tree.token)
    for part, values in logits.parts(output):
        here = np.flatnonzero((row >= part.start) & (row < part.stop))
        rows, right = (
            torch.from_numpy(numbers[here]).to(values.device) for numbers in (row, token)
        )
        some = values.float()
        log_p[here] = (some[rows - part.start, right] - some.logsumexp(-1)[rows - part.start]).cpu()
        if ranks:
            rank[here] = _ranks(some, rows - part.start, right)
    return log_p, rank


def _ranks(logits: Tensor, rows: Tensor, right: Tensor) -> np.ndarray:
    """Return the rank of each token among all; of equal ones the first comes first."""
    token, ranks = torch.arange(logits.shape[1], device=logits.device), []
    for row, one in zip(rows.split(_RANKED), right.split(_RANKED), strict=True):
        values, own = logits[row], logits[row, one][:, None]
        ahead = (values > own) | ((values == own) & (token < one[:, None]))
        ranks.append(1 + ahead.sum(dim=1))
    return torch.cat(ranks).cpu().numpy()
