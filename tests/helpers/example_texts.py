"""Results with the losses of single tokens, made up for tests."""

import numpy as np
import xarray as xr

from helpers import concept_trees as made
from helpers.report_examples import HOSTILE

STEPS = made.STEPS
HEBREW = [" שלום", " עולם", ",", " אחד"]


def losses(
    steps=STEPS, *, hostile=False, tokenizer=True, costs=True, controls=(), top=9.0
):
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
    lead = np.where(
        predicted & (np.arange(width) > 2), float(steps[len(steps) // 2]), np.nan
    )
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
            np.array(
                words if tokenizer else [str(100 + i) for i in range(len(words))],
                object,
            ),
        ),
    }
    coords = {"step": np.asarray(steps), "piece": 100 + np.arange(len(words))}
    if controls:
        ends = np.full((len(controls), len(steps)), np.nan)
        ends[:, -1] = controls
        found["shown_loss_control"] = (("run", "step"), ends)
        coords["run"] = [f"turned {i}" for i in range(len(controls))]
    return xr.Dataset(found, coords=coords)


def _shown(data):
    """Return texts and tokens of losses under the names of other nodes."""
    return {
        "shown_text_number": ("shown_text", data.text_number.values),
        "shown_token_id": (("shown_text", "shown_place"), data.token_id.values),
        "piece_text": ("piece", data.piece_text.values),
    }


def entropies(steps=STEPS, layers=2, *, controls=(), **options):
    """Return the attention entropies of the same tokens: later layers sharper, all falling."""
    data = losses(steps=steps, **options)
    ordinary = (data.token_id.values > 101)[None]
    fall = np.linspace(3.8, 1.2, len(steps))[:, None, None]
    values = [np.where(ordinary, fall - 0.5 * layer, np.nan) for layer in range(layers)]
    paths = [f"model.layers.{i}.self_attn" for i in range(layers)]
    found = _shown(data) | {
        "shown_entropy": (
            ("layer", "step", "shown_text", "shown_place"),
            np.array(values),
        ),
        "shown_entropy_uniform": (
            ("shown_text", "shown_place"),
            np.where(ordinary[0], 4.0, np.nan),
        ),
    }
    coords = {"step": np.asarray(steps), "layer": paths, "piece": data.piece.values}
    if controls:
        ends = np.full((len(controls), len(steps), layers), np.nan)
        ends[:, -1] = np.array(controls)[:, None]
        found["layer_entropy_control"] = (("run", "step", "layer"), ends)
        coords["run"] = [f"turned {i}" for i in range(len(controls))]
    return xr.Dataset(found, coords=coords)


def codes(steps=STEPS, **options):
    """Return joint concepts with codes of the same tokens: each grows at tokens of its own."""
    data, concepts = losses(steps=steps), made.joint_concepts(steps=steps, **options)
    ids = data.token_id.values
    r, layers = concepts.sizes["concept"], concepts.sizes["layer"]
    own = np.array([ids % r == j for j in range(r)])  # (concept, text, place)
    rise = np.linspace(0, 120, len(steps)).round()[:, None, None, None, None]
    values = np.broadcast_to(rise * own, (len(steps), layers, *own.shape)).copy()
    values[..., ids <= 101] = 255
    shared = np.broadcast_to(100 * own, (layers, *own.shape)).copy()
    shared[..., ids <= 101] = 255
    tokens = ("layer", "concept", "shown_text", "shown_place")
    found = {name: v for name, v in _shown(data).items() if name != "piece_text"}
    return concepts.assign(found).assign(
        shown_code=(("step", *tokens), values.astype(np.uint8)),
        shown_shared_code=(tokens, shared.astype(np.uint8)),
    )


def full_tree(**options):
    """Return a merged result of a loss, and losses, concepts and entropies of the same tokens."""
    return made.tree(
        {
            "loss": made.loss_story(),
            "token-losses": losses(controls=(8.5, 8.7), **options),
            "joint-concepts": codes(),
            "attention-entropy": entropies(controls=(3.1, 3.3), **options),
        }
    )


def tree(**options):
    """Return a merged result of a loss and the losses of tokens."""
    return made.tree({"loss": made.loss_story(), "token-losses": losses(**options)})
