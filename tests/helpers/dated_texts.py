"""Results with planted dates of tokens, made up for tests: of one run, of several, of one model."""

import numpy as np

from helpers import concept_trees as made
from helpers import example_texts as examples
from ontogeny.figures import Heatmap, Section, attach


def planted_node(**options):
    """Token k of each text is predicted for good from the k-th step after the first one."""
    data = examples.losses(**options)
    place, step = np.arange(data.sizes["place"]), np.arange(data.sizes["step"])
    there = data.token_loss.notnull().values
    holds = step[:, None, None] >= place[None, None, :]
    return data.assign(
        token_loss=(
            ("step", "text", "place"),
            np.where(there, np.where(holds, 1.0, 5.0), np.nan),
        ),
        token_loss_frequencies=(("text", "place"), np.where(there[0], 4.5, np.nan)),
    )


def of_runs(courses, names=("full", "LoRA")):
    """A comparison of runs whose token k of each text is predicted from step k + `late` on."""
    runs = {}
    for name, late in zip(names, courses, strict=True):
        data = planted_node()
        moved = np.roll(data.token_loss.values, late, axis=0)
        moved[:late] = np.where(np.isfinite(moved[:late]), 5.0, np.nan)
        data["token_loss"] = (data.token_loss.dims, moved)
        nodes = {"loss": made.loss_story(), "token-losses": attached(data)}
        runs[name] = made.tree(nodes)
    return runs


def attached(data):
    section = Section("Loss of every token", "")
    heat = Heatmap("tokens", "Tokens", value="token_loss", y="place", facet="text")
    return attach(data, section, [heat])


def one_model(**costs):
    data = planted_node().isel(step=[-1])
    there = data.token_loss.notnull().values[0]
    place = np.arange(data.sizes["place"])
    data["token_loss"] = data.token_loss * 0 + 1.0
    guesses = {"frequencies": 9.0 + 0 * place, "bigrams": 1.0 + 0.5 * place}
    for name, cost in (guesses | costs).items():
        cost = np.where(there, np.broadcast_to(cost, there.shape), np.nan)
        data[f"token_loss_{name}"] = (("text", "place"), cost)
    last = made.STEPS[-1:]
    loss = made.loss_story(steps=last, controls=(), halves=((np.nan,) * 2,) * 2)
    nodes = {"loss": loss.assign(loss_uniform=8.0), "token-losses": data}
    return data, made.tree(nodes, steps=last)


def with_fires(places, born=64.0, masked=False):
    """A result whose concept 0 is strong at some places of both texts that are shown."""
    data = planted_node()
    if masked:
        data = data.assign(masked=((), np.int8(1)))
    concepts = made.joint_concepts()
    fires = np.zeros((*concepts.concept_kind.shape, *data.token_id.shape), dtype=int)
    fires[0, 2, :2, places] = 1
    concepts.concept_kind[0, 2] = "born"
    for name, step in (("", born), ("_after", 32.0), ("_before", 128.0)):
        concepts[f"concept_born{name}"][0, 2] = step
    texts = ("shown_text", "shown_place")
    concepts = concepts.assign(
        shown_fires=(("layer", "concept", *texts), fires),
        shown_text_number=("shown_text", data.text_number.values),
        shown_token_id=(texts, data.token_id.values),
    )
    nodes = {"loss": made.loss_story(), "tokens": data, "joint-concepts": concepts}
    return data, made.tree(nodes)
