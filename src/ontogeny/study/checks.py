"""Validation of what a study is made of."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError
from inspect import isfunction
from typing import Any

from ..errors import ArgumentError, suggestion
from ..inputs import Inputs
from ..observables import Observable
from ..observables.arguments import check_node
from ..observables.own import of_function
from ..trajectory import Trajectory
from .planning.build import generations


def named_inputs(inputs: Inputs | Mapping[str, Any]) -> dict[str, Inputs]:
    """Return the input sets by name; one without a name is called ``text``."""
    if isinstance(inputs, Mapping) and "input_ids" not in inputs:
        if not inputs:
            raise ArgumentError(
                "inputs must hold at least one named input set; got none."
            )
        return {str(name): Inputs.coerce(value) for name, value in inputs.items()}
    return {"text": Inputs.coerce(inputs)}


def check_trajectory(trajectory: Trajectory) -> Trajectory:
    """Return `trajectory` if it is one."""
    if not isinstance(trajectory, Trajectory):
        raise ArgumentError(
            f"trajectory must be an ontogeny.Trajectory; got {type(trajectory).__name__}."
        )
    return trajectory


def check_observables(observables: Sequence[Observable]) -> tuple[Observable, ...]:
    """Return observables with different names that find what they depend on."""
    if isinstance(observables, Observable) or isfunction(observables):
        observables = [observables]
    observables = _labelled(
        [of_function(o) if isfunction(o) else o for o in observables]
    )
    if not observables:
        raise ArgumentError("observables must name at least one observable; got none.")
    names: set[str] = set()
    for observable in observables:
        if not isinstance(observable, Observable):
            raise ArgumentError(
                f"observables must hold Observable instances; got {type(observable).__name__}."
            )
        check_node("the name of an observable", observable.name)
        if observable.name in names:
            raise ArgumentError(
                f"two observables are called {observable.name!r}; give one of them label=."
            )
        names.add(observable.name)
    by_name = {o.name: o for o in observables}
    edges = {o.name: o.nodes_read for o in observables}
    for observable in observables:
        for other in edges[observable.name]:
            if other not in names:
                raise ArgumentError(
                    f"{observable.name} depends on {other!r}, which the study does not have."
                    f"{suggestion(other, names - {observable.name})}"
                )
        _check_source(observable, by_name)
        _check_state(observable, by_name)
        observable.check_nodes(by_name)
    _check_order(edges)
    return tuple(observables)


def check_left_out(left_out: Mapping[str, str]) -> dict[str, str]:
    """Return why observables are left out, by kind, if that is text."""
    for kind, why in left_out.items():
        if not (isinstance(kind, str) and isinstance(why, str)):
            raise ArgumentError(
                f"left_out must say in words why an observable is left out; got {kind!r}: {why!r}."
            )
    return dict(left_out)


def _check_order(edges: Mapping[str, Sequence[str]]) -> None:
    """Refuse observables that depend on themselves, directly or through others."""
    try:
        generations(edges)
    except CycleError as error:
        circle = " -> ".join(reversed(error.args[1]))
        raise ArgumentError(
            f"observables must not depend on themselves: {circle}."
        ) from None


def _check_state(observable: Observable, by_name: Mapping[str, Observable]) -> None:
    """Refuse the state of a node that the study does not have, or that prepares none."""
    node = observable.state_of
    if node and (node not in by_name or not by_name[node].prepares):
        others = {
            name: other for name, other in by_name.items() if name != observable.name
        }
        names = [name for name, other in others.items() if other.prepares]
        why = "prepares nothing" if node in by_name else "the study does not have"
        raise ArgumentError(
            f"{observable.name} reads the state of {node!r}, which {why}.{suggestion(node, names)}"
        )


def _labelled(observables: Sequence[Observable]) -> list[Observable]:
    """Return observables of which those that share a name are labelled by their files."""
    names = Counter(getattr(o, "name", "") for o in observables)

    def labelled(one: Observable) -> Observable:
        if not isinstance(one, Observable) or names[one.name] == 1:
            return one
        if not one.stem or one.label is not None:
            return one
        return replace(one, label=re.sub(r"[^\w.-]", "-", f"{one.name}-{one.stem}"))

    return list(map(labelled, observables))


def _check_source(observable: Observable, by_name: Mapping[str, Observable]) -> None:
    """Refuse series of what has no cells at steps: weight blocks, and series themselves."""
    if observable.source is None:
        return
    other = by_name[observable.source.node]
    if other.over_blocks or other.source is not None:
        kind = "weight blocks" if other.over_blocks else "another observable's curves"
        raise ArgumentError(
            f"{observable.name} needs an observable of checkpoints; {other.name!r} is one of "
            f"{kind}."
        )
