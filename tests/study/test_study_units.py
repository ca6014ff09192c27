"""Which text every row of a value belongs to: what noise is resampled over."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import xarray as xr

import ontogeny as og
from helpers.study_examples import LAYERS, tiny_inputs, tiny_model
from ontogeny import needs
from ontogeny.needs.derived import Reference
from ontogeny.observables import Observable

TEXTS = 24


@dataclass(frozen=True)
class Units(Observable):
    """The text of every row, as the reading gives it."""

    tokens: str = "all"
    max_tokens: int | None = None
    reference: bool = False
    kind: ClassVar[str] = "units"

    def needs(self):
        need = needs.Activations(LAYERS, tokens=self.tokens, max_tokens=self.max_tokens)
        return [need, Reference(need)] if self.reference else [need]

    def observe(self, reading, state):
        units = reading.units(self.needs()[-1])
        (rows,) = {len(v) for v in reading[self.needs()[0]].values()}
        return xr.Dataset({"unit": ("row", units)}, attrs={"rows": rows})


def _units(folder, *observables):
    trajectory = og.Trajectory.from_models({0: tiny_model(0), 1: tiny_model(1)})
    tree = og.Study(
        trajectory, tiny_inputs(TEXTS), observables, device="cpu", noise=0
    ).run(folder)
    assert tree.attrs["problems"] == "[]"
    return tree


@pytest.mark.parametrize("tokens", ["mean", "last", "cls"])
def test_of_one_row_a_text_every_row_is_its_own_unit(tmp_path, tokens):
    found = _units(tmp_path / "s", Units(tokens))["units"]
    assert found.attrs["rows"] == TEXTS
    np.testing.assert_array_equal(found.unit, [np.arange(TEXTS)] * 2)


@pytest.mark.parametrize("max_tokens", [None, 50])
@pytest.mark.parametrize("reference", [False, True])
def test_tokens_belong_to_their_text_and_are_those_of_the_sample(
    tmp_path, max_tokens, reference
):
    found = _units(tmp_path / "s", Units("all", max_tokens, reference))["units"]
    inputs = tiny_inputs(TEXTS)
    expected = inputs.sample("all", max_tokens).text
    assert len(expected) == found.attrs["rows"] == (max_tokens or inputs.ordinary.sum())
    np.testing.assert_array_equal(found.unit, [expected] * 2)


def test_losses_and_attention_have_one_unit_a_text_and_models_have_none():
    inputs = tiny_inputs(TEXTS)
    for need in (needs.Losses(), needs.Attention()):
        np.testing.assert_array_equal(need.units(inputs), np.arange(TEXTS))
    with pytest.raises(og.errors.ArgumentError, match="rows of Model"):
        needs.Model().units(inputs)
