"""A new observable is a file: catalogue, help, presets, chart and page know it from its members."""

import sys

import pytest
from typer.testing import CliRunner

import ontogeny as og
from helpers.study_examples import LAYERS, developing, tiny_inputs
from ontogeny.cli.catalogue import catalogue
from ontogeny.cli.commands import app
from ontogeny.features import activations
from ontogeny.observables import registry
from ontogeny.start import PRESETS
from ontogeny.start.presets import entries_of
from ontogeny.start.sets import node_name

KIND = "token-norm"
SOURCE = '''
from dataclasses import dataclass

from ontogeny.observables import PresetEntry, by_layer
from ontogeny.observables.of_activations import OfSampledActivations
from ontogeny.quantities import Measured, Quantity


@dataclass(frozen=True)
class TokenNorm(OfSampledActivations):
    """Mean norm of the activations of a token."""

    kind = "token-norm"
    question = "How long are the activations of a token?"
    presets = (PresetEntry(("quick",), {"layers": "$layers"}),)
    quantities = (
        Quantity("norm", "norm of a token", "activation units", rows="{layer} · norm of a token"),
    )

    def observe(self, reading, state):
        def one(path, A):
            return {"norm": Measured.mean(A.norm(dim=1).double().numpy(), texts)}

        texts = reading.units(self.activations)
        return by_layer(reading[self.activations], one)
'''


class EntryPoint:
    """What an installed package declares."""

    name, value = KIND, "token_norm:TokenNorm"

    def load(self):
        import token_norm

        return token_norm.TokenNorm


@pytest.fixture(params=["file of a theme", "entry point"])
def added(request, tmp_path, monkeypatch):
    """The observable, in a file of the library or of somebody else."""
    (tmp_path / "token_norm.py").write_text(SOURCE)
    if request.param == "entry point":
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(registry, "entry_points", lambda group: [EntryPoint()])
        module = "token_norm"
    else:
        monkeypatch.setattr(
            activations, "__path__", [*activations.__path__, str(tmp_path)]
        )
        module = f"{activations.__name__}.token_norm"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # what is listed is kept there
    for stored in (registry._of_features, registry._loaded, catalogue):
        stored.cache_clear()
    yield registry.kinds()[KIND]
    sys.modules.pop(module)
    for stored in (registry._of_features, registry._loaded, catalogue):
        stored.cache_clear()


def printed(*words):
    return CliRunner().invoke(app, words).output


def test_the_catalogue_knows_it(added):
    assert (
        f"  {KIND}: How long are the activations of a token? Needs texts; costs one pass"
        in (printed("list", "observables"))
    )
    lines = printed("help", KIND).splitlines()
    assert lines[0] == f"{KIND}: Mean norm of the activations of a token."
    assert "answers  How long are the activations of a token?" in lines
    assert 'layers = "mlp"' in lines
    assert node_name({"kind": KIND, "label": "mine"}) == "mine"


def test_its_preset_has_it_behind_the_others(added):
    kind, entry = entries_of(PRESETS["quick"])[-1]
    assert (kind, entry.arguments) == (KIND, {"layers": "$layers"})
    assert KIND not in {kind for kind, _ in entries_of(PRESETS["standard"])}


def test_the_chart_and_the_page_have_it(added, tmp_path):
    trajectory, observable = (
        og.Trajectory.from_models(developing((0, 1, 2))),
        og.observables.make,
    )
    study = og.Study(
        trajectory, tiny_inputs(40), [observable(KIND, layers=LAYERS)], device="cpu"
    )
    node = study.run(tmp_path / "s")[KIND]
    assert any("norm of a token" in str(row) for row in node.row.values)
    page = og.open_study(tmp_path / "s").report(tmp_path / "page.html").read_text()
    assert "Token norm" in page and "norm of a token" in page


def test_a_kind_that_is_taken_is_left_out(tmp_path, monkeypatch):
    class Taken(EntryPoint):
        name = "loss"

        def load(self):
            return og.observables.Loss

    monkeypatch.setattr(registry, "entry_points", lambda group: [Taken()])
    registry._loaded.cache_clear()
    with pytest.warns(
        og.errors.StudyWarning, match=r"observable 'loss' .* a name that is taken"
    ):
        assert registry.kinds()["loss"] is og.observables.Loss
    registry._loaded.cache_clear()
