"""Observables of kinds that a test does not name: a new one is tried without being listed."""

import dataclasses

from ontogeny.observables import make
from ontogeny.observables.registry import kinds

NEEDED = {
    "layers": "model.layers.*.mlp",
    "marker_ids": [8],
    "extractor": "ica",
    "of": "other",
}
"""Values of arguments that have no default."""


def required(kind):
    """Return the names of a kind's arguments that have no default."""
    missing = dataclasses.MISSING
    return [
        field.name
        for field in dataclasses.fields(kinds()[kind])
        if field.default is missing and field.default_factory is missing
    ]


def tryable():
    """Return the kinds whose required arguments have values above; others have their own tests."""
    return [kind for kind in kinds() if set(required(kind)) <= set(NEEDED)]


def with_obstacle(*names):
    """Return the kinds that one of these reasons of `ModelFacts` rules out."""
    return {kind for kind, cls in kinds().items() if {*names} & {*cls.obstacles}}


def of_other_runs():
    """Return the kinds that need labels, a tokenizer, an order or curves: tiny runs have none."""
    needed = ("labels", "a classifier", "with curves")
    named = {
        kind for kind, cls in kinds().items() if any(n in cls.requires for n in needed)
    }
    return named | with_obstacle("no_labels", "no_tokenizer", "no_order")


def others(known, **values):
    """Return an observable of every kind that is not among the `known`; `values` are its own."""
    given = {**NEEDED, **values}
    return [
        make(kind, **{name: given[name] for name in required(kind)})
        for kind in tryable()
        if kind not in known
    ]
