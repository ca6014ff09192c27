"""``result.concept(...)``: concepts of a result of a study."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ..errors import ArgumentError, suggestion
from ..report.choosing import layer_path, listed, step_position, whole
from ..trees import MergedResult, as_tree
from ..words.voice import Voice
from .build import LISTED, Concept, ConceptTable, Described, table_of
from .labels import Labels, add_label, fit_of, read_labels, sketches_of
from .readouts import KEPT


@xr.register_datatree_accessor("concept")
class ConceptAccessor:
    """The concepts of a result, on every `xarray.DataTree` as ``result.concept``.

    Call it for one concept; `table` lists them, `label` names one. Names that people gave (`label`)
    are read from ``names.toml`` where the result was opened from a folder.

    Examples
    --------
    >>> import numpy as np, ontogeny as og
    >>> node = xr.Dataset(
    ...     {
    ...         "name": (("layer", "concept"), [["comma", ""]]),
    ...         "token_id": (("layer", "concept", "rank"), [[[7], [3]]]),
    ...         "token_share": (("layer", "concept", "rank"), [[[0.8], [0.1]]]),
    ...         "concentration": (("layer", "concept"), [[0.8, 0.1]]),
    ...         "concentration_limit": ("layer", [0.3]),
    ...         "piece_text": ("piece", [" the", ","]),
    ...     },
    ...     {"layer": ["model.layers.3.mlp"], "step": [0, 100], "piece": [3, 7]},
    ... )
    >>> result = xr.DataTree.from_dict({"joint-concepts": node})
    >>> result.concept("joint-concepts", layer=3, index=0).name
    'comma'
    >>> result.concept("joint-concepts", layer=3, index=1)
    not named  joint-concepts · model.layers.3.mlp · 1 · step 100
    tokens     ␣the 10 %
    no name    its three strongest tokens carry 10 % of its squared code; a name takes over 30 %
    """

    def __init__(self, tree: xr.DataTree) -> None:
        self._tree = tree.root

    def __call__(
        self,
        node: str | None = None,
        layer: int | str | None = None,
        index: int = 0,
        step: int = -1,
    ) -> Concept:
        """Return one concept; of a node that keeps directions, it gives them too.

        Parameters
        ----------
        node
            Name of a node whose concepts are described, such as ``"joint-concepts"``, or whose
            directions are kept, such as ``"learned-concepts"``; None means the only one.
        layer
            The number in the module path, the path, or its short name; None means the only layer.
        index
            Number of the concept, from 0.
        step
            A training step, or an index from the end: -1 is the last step.

        Raises
        ------
        ArgumentError
            If there is no such concept; the message says what there is.
        StoreError
            If ``names.toml`` cannot be read.
        """
        key = _node_name(self._tree, node, KEPT)
        data = self._tree[key].to_dataset()
        path = layer_path(data.layer.values.tolist(), layer)
        number = _concept_index(data.sizes["concept"], index)
        return self._described(key, data, path, step, self.labels).concept(number)

    def table(
        self, node: str | None = None, layer: int | str | None = None, step: int = -1
    ) -> ConceptTable:
        """Return the concepts of a node, or of one of its layers; arguments as in a call."""
        key = _node_name(self._tree, node)
        data = self._tree[key].to_dataset()
        others = [name for name in data.data_vars if name not in LISTED]
        data = data.drop_vars(others).load()  # once, and not concept by concept
        paths = [str(path) for path in data.layer.values]
        layer_paths = paths if layer is None else [layer_path(paths, layer)]
        labels = self.labels
        layers = {
            path: self._described(key, data, path, step, labels) for path in layer_paths
        }
        return table_of(layers, paths)

    def label(
        self,
        node: str | None = None,
        layer: int | str | None = None,
        index: int = 0,
        name: str = "",
        *,
        step: int = -1,
    ) -> Concept:
        """Give a concept a name of your own, and return the concept.

        It goes before the name that its tokens give, and is shown as given by a person. It is
        kept in ``names.toml`` in the study's folder. Where concepts are fitted anew, the same
        number may be another concept: the name goes to that whose codes are the same.

        Parameters
        ----------
        node, layer, index, step
            As in a call.
        name
            At most 80 characters in one line; an empty text takes the name back.

        Raises
        ------
        ArgumentError
            If there is no such concept, `name` is not such a text, or the result was not opened
            from the folder of a study.
        StoreError
            If ``names.toml`` cannot be read or written.
        """
        if self.folder is None:
            raise ArgumentError(
                "a result that lies in no study folder keeps no names; open it with "
                "ontogeny.open_study(folder)."
            )
        concept = self(node, layer, index, step)
        data = self._tree[concept.node].to_dataset()
        sketches = sketches_of(data, concept.layer, step)
        key = (
            concept.node,
            concept.layer,
            concept.index,
            fit_of(data, concept.layer, step),
        )
        add_label(
            self.folder,
            key,
            name,
            None if sketches is None else sketches[concept.index],
        )
        return self(node, layer, index, step)

    @property
    def nodes(self) -> list[str]:
        """Names of the nodes whose concepts are described."""
        return _described_nodes(self._tree)

    @property
    def folder(self) -> Path | None:
        """The study's folder; None where the result was not read from one."""
        source = self._tree.encoding.get("source")
        return None if source is None else Path(str(source)).parent

    @property
    def labels(self) -> Labels:
        """The names that people gave; none where the result was not opened from a folder."""
        return Labels({}) if self.folder is None else read_labels(self.folder)

    def _described(
        self, node: str, data: xr.Dataset, path: str, step: Any, labels: Labels
    ) -> Described:
        position = step_position(data.step.values.tolist(), step)
        voice = Voice.of(self._tree.attrs.get("clock"))
        return Described(
            node, data, path, position, labels, self._effects(node), voice.unit
        )

    def _effects(self, node: str) -> xr.Dataset | None:
        """Return the node that says what the removal of a node's concepts costs."""
        observables = json.loads(self._tree.attrs.get("settings", "{}")).get(
            "observables", {}
        )
        for name, settings in observables.items():
            here = settings.get("of") == node and name in self._tree.children
            if here and "effect" in self._tree[name].data_vars:
                return self._tree[name].to_dataset()
        return None


def with_labels(result: MergedResult) -> xr.DataTree:
    """Return a result with ``name_given(layer, concept)``: the names that people gave to concepts.

    Those that hold for no concept of this fit, or for a single step, are left out. A result without
    such names is returned as it is.

    Raises
    ------
    StoreError
        If ``names.toml`` cannot be read.
    """
    tree = as_tree(result)
    concept: ConceptAccessor = tree.concept
    labels = concept.labels
    labelled = {}
    for node in concept.nodes if labels.names else ():
        data = tree[node].to_dataset()
        if "fit_id" in data and data.fit_id.dims == ("layer",):
            fits = zip(
                data.layer.values.tolist(), data.fit_id.values.tolist(), strict=True
            )
            numbers = range(data.sizes["concept"])
            by_path = [
                labels.given(node, path, fit, sketches_of(data, path))
                for path, fit in fits
            ]
            names = [[one.get(i, "") for i in numbers] for one in by_path]
            name_array = xr.DataArray(
                np.array(names, dtype=object), dims=("layer", "concept")
            )
            labelled[node] = data.assign(name_given=name_array)
    if not labelled:
        return tree
    nodes = {
        name: child.to_dataset() for name, child in tree.children.items()
    } | labelled
    return xr.DataTree.from_dict({"/": tree.to_dataset(), **nodes})


# Variables over concepts of which a node has one whose concepts are described.
_MARKS = ("token_share", "rule")


def _described_nodes(tree: xr.DataTree) -> list[str]:
    """Return the names of the nodes whose concepts are described."""
    return [
        name
        for name, node in tree.children.items()
        if any(n in node and "concept" in node[n].dims for n in _MARKS)
    ]


def _node_name(tree: xr.DataTree, node: str | None, also: str = "") -> str:
    """Return the node that is meant; None means the only one that is described.

    `also` is a variable of further nodes that may be meant.
    """
    described = _described_nodes(tree)
    kept = [n for n, child in tree.children.items() if also in child.data_vars]
    there = list(dict.fromkeys([*described, *kept]))
    if not there:
        raise ArgumentError(
            "this result describes no concepts; the observables 'learned-concepts', "
            "'joint-concepts' and, with examples=4, 'concepts' do."
        )
    if node is None:
        if len(there) > 1:
            raise ArgumentError(
                f"node must be one of {listed(there)}: several are described."
            )
        return there[0]
    if node in there:
        return str(node)
    reason = "is not described (examples=0)" if node in tree.children else "is no node"
    raise ArgumentError(
        f"node {node!r} {reason}; concepts are described in {listed(there)}."
        f"{suggestion(str(node), there)}"
    )


def _concept_index(count: int, index: Any) -> int:
    """Return the number of a concept among `count`; negative ones count from the end."""
    number = whole(index)
    if number is not None and -count <= number < count:
        return number % count
    raise ArgumentError(
        f"index must be a whole number from 0 to {count - 1}; got {index!r}."
    )
