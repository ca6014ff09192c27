"""Nodes of abilities made up for tests: groups of examples that are right in given shares."""

import numpy as np
import xarray as xr

from ontogeny.features.abilities.groups import with_courses

STEPS = np.array([0, 10, 20, 40])


def node(courses, dim="pair", pairs=24, control=None, seed=0):
    """Return a node whose groups are right in as large a share of examples as given."""
    rng = np.random.default_rng(seed)
    right, of_example = [], []
    for name, shares in courses.items():
        luck = rng.permutation(pairs) / pairs
        right.append([(luck < share).astype(float) for share in shares])
        of_example += [name] * pairs
    right = np.concatenate(right, axis=1)
    group = xr.DataArray(np.array(of_example, dtype=object), dims=dim)
    accuracy = np.stack(
        [right[:, of == np.array(of_example)].mean(1) for of in courses], 1
    )
    data = xr.Dataset(
        {"accuracy": (("step", "group"), accuracy), f"group_of_{dim}": group},
        {"step": STEPS, "group": np.array([*courses], dtype=object)},
    )
    if control is not None:
        values = np.full((2, 4, len(courses)), control)
        data["accuracy_control"] = (("run", "step", "group"), values)
        data = data.assign_coords(run=["turned 0", "turned 1"])
    return with_courses(data, right, group, np.full(right.shape[1], 0.5), dim=dim)


def with_texts(data):
    """Return a node of pairs with its texts."""
    texts = np.array(
        [f"the dogs run {i}" for i in range(data.sizes["pair"])], dtype=object
    )
    wrong = np.array(
        [f"the dogs <runs> {i}" for i in range(data.sizes["pair"])], dtype=object
    )
    return data.assign(right_text=("pair", texts), wrong_text=("pair", wrong))
