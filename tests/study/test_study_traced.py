"""What cells run is in their fingerprints: every function of the library that a study calls."""

import pkgutil
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import ontogeny as og
from helpers.study_examples import LAYERS, developing, record, tiny_inputs
from ontogeny.study.folder import code
from ontogeny.study.running import run as running

pytestmark = pytest.mark.slow

LIBRARY = str(Path(og.__file__).parent)
# A flag of the code of functions, which that of modules and classes has not.
_OPTIMIZED = 1


class Trace:
    """Notes the functions of the library that are called, under a name."""

    def __init__(self):
        self.called = defaultdict(set)

    def around(self, function, name_of):
        def traced(*arguments):
            found, depth = self.called[name_of(*arguments)], 0

            def note(frame, event, _):
                nonlocal depth
                # What is imported meanwhile; and whether others need a value, which changes none.
                if frame.f_code.co_name in ("<module>", "_is_asked_twice"):
                    depth += {"call": 1, "return": -1}.get(event, 0)
                    return
                code = frame.f_code
                is_ours = code.co_flags & _OPTIMIZED and code.co_filename.startswith(
                    LIBRARY
                )
                if event == "call" and not depth and is_ours:
                    found.add((code.co_filename, code.co_qualname))

            before = sys.getprofile()
            sys.setprofile(note)
            try:
                return function(*arguments)
            finally:
                sys.setprofile(before)

        return traced


def _reached(cell, observables):
    """Return (file, name) of the definitions in the fingerprints of a kind of cells."""
    unused = code._OF_MODELS if cell == "SummaryCell" else code._FETCHING
    reach = code._begun(code.KINDS[cell], unused).copy(code._modules(()), code._read)
    for observable in observables:
        needs = [need for n in observable.needs() for need in (n, n.at_step)]
        reach.visit(type(observable), *map(type, needs))
    return {(place.path, place.name) for place in reach.visited}


def _outside(called, reached):
    """Return the functions that were called and are in no fingerprint."""
    names = {(file, name.partition(".<locals>")[0]) for file, name in called}
    return {
        (file.removeprefix(LIBRARY), name)
        for file, name in names - reached
        # What stands in an assignment or a class body is part of that.
        if "<" not in name or (file, name.partition(".<")[0]) not in reached
    }


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    """The functions that cells and readings of a study call, and its observables by name."""
    folder, trace = tmp_path_factory.mktemp("traced"), Trace()
    observables = [
        og.observables.Loss(),
        og.observables.TokenLosses(),
        og.observables.AttentionEntropy(),
        og.observables.ActivationDecay(LAYERS),
        og.observables.Concepts("svd", n_concepts=2, layers=LAYERS, max_tokens=60),
        og.observables.WeightNorms("model.layers.*.mlp.*.weight"),
        og.observables.WeightChange(),
        og.observables.Calibration(),
    ]
    run = record(developing((0, 1, 2, 4)), folder / "run")
    with pytest.MonkeyPatch.context() as patch:
        for root, *_ in code.KINDS.values():
            cls = pkgutil.resolve_name(root.removesuffix(".compute"))
            patch.setattr(
                cls,
                "compute",
                trace.around(cls.compute, lambda c, _: (type(c).__name__, c.node)),
            )
        read = trace.around(running.read_once, lambda *_: ("read", ""))
        patch.setattr(running, "read_once", read)
        study = og.Study(
            run, tiny_inputs(), observables, device="cpu", noise=2, controls=2
        )
        study.run(folder / "study", progress=False)
    return trace.called, {o.name: o for o in observables}


@pytest.mark.parametrize("cell", code.KINDS)
def test_what_cells_run_is_in_their_fingerprints(traced, cell):
    called, by_name = traced
    found = {}
    for (kind, node), functions in called.items():
        if kind == cell:
            observables = [by_name[node]] if node in by_name else []
            found[node] = _outside(functions, _reached(cell, observables))
    assert {node: functions for node, functions in found.items() if functions} == {}
    assert found or cell in ("ReferenceCell", "LayerCell")


def test_how_activations_and_losses_are_read_is_in_them_too(traced):
    called, by_name = traced
    of_steps = [o for o in by_name.values() if not o.over_blocks]
    assert called["read", ""]
    assert _outside(called["read", ""], _reached("StepCell", of_steps)) == set()
