"""A model of three heads that do exactly what their names say, written without weights."""

import torch
from torch import nn

HEADS = ("previous-token", "duplicate-token", "induction")


class HandMadeAttention(nn.Module):
    """Attends to the token before, to the last copy of the token, and to what followed it.

    Where there is no such token, a head attends to the query itself. `strength` is the share of
    attention that goes there.
    """

    def __init__(self, strength):
        super().__init__()
        self.strength = nn.Parameter(torch.tensor(float(strength)))

    def forward(self, ids):
        count, width = ids.shape
        maps = torch.zeros(count, len(HEADS), width, width)
        for text, row in enumerate(ids.tolist()):
            for query, token in enumerate(row):
                copies = [key for key in range(query) if row[key] == token]
                aims = (
                    max(query - 1, 0),
                    copies[-1] if copies else query,
                    copies[-1] + 1 if copies else query,
                )
                for head, key in enumerate(aims):
                    maps[text, head, query, key] = 1.0
        share = self.strength.clamp(0, 1)
        maps = share * maps + (1 - share) * torch.eye(width)
        return maps.mean(dim=1), maps


class HandMadeModel(nn.Module):
    """One layer of hand-made heads that takes texts of any length."""

    def __init__(self, strength=1.0, vocabulary=60):
        super().__init__()
        self.attention = HandMadeAttention(strength)
        self.vocabulary = vocabulary

    def forward(self, input_ids):
        mean, _ = self.attention(input_ids)
        return (
            nn.functional.one_hot(input_ids, self.vocabulary).float() + 0 * mean.sum()
        )
