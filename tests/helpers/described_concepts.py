"""A described node by hand, as `joint-concepts` and `concepts` give it."""

import numpy as np
import xarray as xr

STEPS = (0, 10, 20, 40)
LAYERS = ("model.layers.0.mlp", "model.layers.3.mlp")
PIECES = {
    -1: "",
    5: " the",
    6: ",",
    7: "<b>&",
    8: "\n",
    9: "שלום",
    10: "\u202eevil",
    11: " ok",
}
CONCEPTS, RANKS, EXAMPLES, PLACES = 3, 3, 2, 13


def described_node(joint=True, named=True):
    """Concept 0 is the comma, born at step 20; 1 has no name; 2 is no concept."""
    shape = (len(LAYERS), CONCEPTS)
    dims = ("layer", "concept")
    ids = np.tile(np.array([[6, 7, 5], [5, 8, 9], [10, 5, 6]]), (2, 1, 1))
    context = np.full((*shape, EXAMPLES, PLACES), -1)
    context[..., 4:9] = [5, 7, 6, 8, 9]  # two before and two after the strongest token
    code = np.where(context >= 0, 0.1, 0.0).astype(np.float32)
    code[..., 6] = 1.0
    text = np.array([3, 12]) + np.zeros((*shape, 1), int)
    place = np.array([4, 9]) + np.zeros((*shape, 1), int)
    strong = np.array(
        [[0.0, 0.05, 0.3, 0.4], [0.3, 0.3, 0.3, 0.3], [0.1, 0.1, 0.1, 0.1]]
    )
    steps = ("step", *dims)
    strength = np.broadcast_to(strong.T[:, None, :], (len(STEPS), *shape)).copy()
    data = {
        "token_id": ((*dims, "rank"), ids),
        "token_share": (
            (*dims, "rank"),
            np.broadcast_to([0.5, 0.2, 0.1], ids.shape).copy(),
        ),
        "firing": (dims, np.full(shape, 0.031)),
        "enrichment": (
            (*dims, "position"),
            np.broadcast_to([0.7, 0.1, 0.0, -0.01], (*shape, 4)),
        ),
        "concentration": (dims, np.array([[0.8, 0.2, 0.1]] * 2)),
        "written_up_id": (
            (*steps, "rank"),
            np.broadcast_to(ids, (len(STEPS), *ids.shape)),
        ),
        "written_up": ((*steps, "rank"), np.full((len(STEPS), *ids.shape), 1.5)),
        "written_random": (steps, np.full((len(STEPS), *shape), 0.4)),
        "near": (
            (*steps, "neighbour"),
            np.tile(np.array([1, 0, 0]).reshape(1, 1, 3, 1), (4, 2, 1, 1)),
        ),
        "near_cosine": ((*steps, "neighbour"), np.full((len(STEPS), *shape, 1), 0.5)),
        "strength": (steps, strength),
        "readability": (steps, np.full((len(STEPS), *shape), 0.7)),
        "piece_text": ("piece", np.array(list(PIECES.values()), dtype=object)),
        "fit_id": ("layer", np.array(["aa", "bb"], dtype=object)),
    }
    kinds = (("shared_context", ()), ("context", ("step",)))
    for name, dim in kinds if joint else kinds[1:]:
        size = (len(STEPS),) if dim else ()
        own = code.copy()
        if dim:
            own[..., 6] = 0.9
        for part, values in (
            ("id", context),
            ("code", own),
            ("text", text),
            ("place", place),
        ):
            last = ("place",) if values.ndim == 4 else ()
            full = (*dim, *dims, "example", *last)
            data[f"{name}_{part}"] = (
                full,
                np.broadcast_to(values, (*size, *values.shape)).copy(),
            )
    if named:
        data["name"] = (dims, np.array([["comma", "", ""]] * 2, dtype=object))
        data["concentration_limit"] = ("layer", np.full(2, 0.3))
        data["name_p"] = (dims, np.array([[0.01, 1.0, 1.0]] * 2))
    else:
        why = "the run has no step 0, and its model cannot be built"
        data["name"] = (dims, np.full(shape, "", dtype=object))
        data["unnamed_because"] = ("layer", np.array([why, why], dtype=object))
    if joint:
        kinds = np.array([["born", "from the start", "no concept"]] * 2, dtype=object)
        data["concept_kind"] = (dims, kinds)
        nan = np.nan
        for key, first in (("born", 20.0), ("born_after", 10.0), ("born_before", 40.0)):
            data[f"concept_{key}"] = (dims, np.array([[first, nan, nan]] * 2))
        data["concept_settled"] = (dims, np.array([[nan, 0.0, nan]] * 2))
        data["concept_gone"] = (dims, np.full(shape, nan))
    coords = {
        "step": list(STEPS),
        "layer": list(LAYERS),
        "piece": list(PIECES),
        "place": np.arange(-6, 7),
        "position": ["token", "token before", "token after", "place"],
    }
    return xr.Dataset(data, coords)


def described_result(**options):
    """Return a result with one described node and one that is not."""
    nodes = {
        "joint-concepts": described_node(**options),
        "loss": xr.Dataset({"loss": ("step", [1.0])}),
    }
    return xr.DataTree.from_dict(nodes)


def written_result(folder, **options):
    """Write such a result as the folder of a study."""
    from ontogeny.study.folder.layout import settings_path
    from ontogeny.study.results.result_files import write_result

    folder.mkdir(parents=True, exist_ok=True)
    settings_path(folder).write_text("{}")
    write_result(folder, described_result(**options))
    return folder
