"""Results with the losses of single tokens, made up for tests."""

import numpy as np
import xarray as xr

from helpers import concept_trees as made
from helpers.report_examples import HOSTILE

STEPS = made.STEPS
HEBREW = [" שלום", " עולם", ",", " אחד"]


def losses(steps=STEPS, *, hostile=False, tokenizer=True, costs=True, controls=(), top=9.0):
    """Return a node of three texts: plain, from the right, and short; special tokens at both ends.

    Every loss falls in a line from `top` to less the later the token stands in its text.
    """
    words = ["<|bos|>", "<|eos|>", "The", " cat", " sat", ".", "  ", "\n", *HEBREW]
    words += HOSTILE if hostile else []
    plain = [0, *range(2, 8), *(range(12, len(words)) if hostile else ()), 1]
    texts = [plain, [0, 8, 9, 10, 11, 3, 1], [0, 2, 5, 1]]
    width = max(map(len, texts))
    ids = np.array([[*text, *[-1] * (width - len(text))] for text in texts])
    predicted = ids > 1
    share = np.linspace(0, 1, len(steps))[:, None, None]
    place = np.arange(width) / width
    values = np.where(predicted, top * (1 - share * place), np.nan)
    lead = np.where(predicted & (np.arange(width) > 2), float(steps[len(steps) // 2]), np.nan)
    found = {
        "token_id": (("text", "place"), np.where(ids >= 0, ids + 100, -1)),
        "token_loss": (("step", "text", "place"), values, {"units": "nats"}),
        "token_leads_from": (("text", "place"), lead),
        "token_leads_after": (
            ("text", "place"),
            np.where(np.isnan(lead), np.nan, steps[max(len(steps) // 2 - 1, 0)]),
        ),
        "token_loss_frequencies": (
            ("text", "place"),
            np.where(predicted, 4.5, np.nan) if costs else np.full(ids.shape, np.nan),
        ),
        "text_number": ("text", [4, 7, 30]),
        "piece_text": (
            "piece",
            np.array(words if tokenizer else [str(100 + i) for i in range(len(words))], object),
        ),
    }
    coords = {"step": np.asarray(steps), "piece": 100 + np.arange(len(words))}
    if controls:
        ends = np.full((len(controls), len(steps)), np.nan)
        ends[:, -1] = controls
        found["shown_loss_control"] = (("run", "step"), ends)
        coords["run"] = [f"turned {i}" for i in range(len(controls))]
    return xr.Dataset(found, coords=coords)


def tree(**options):
    """Return a merged result of a loss and the losses of tokens."""
    return made.tree({"loss": made.loss_story(), "token-losses": losses(**options)})
