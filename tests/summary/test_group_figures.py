"""Figures of groups of examples: lines in colours, and a panel each from three groups on."""

import numpy as np
import pytest
import xarray as xr

from ontogeny.figures import Section, attach
from ontogeny.quantities import Quantity
from ontogeny.report.kinds import draw_figure, read_drawables
from ontogeny.summary.figures import default_figures
from ontogeny.words.content import read_content

ACCURACY = Quantity("accuracy", "share right", series="group", minimum=0.0)


def node(groups):
    steps = np.arange(5)
    values = np.full((5, groups), 0.5)
    return xr.Dataset(
        {
            "accuracy": (("step", "group"), values),
            "accuracy_low": (("step", "group"), values - 0.1),
            "accuracy_high": (("step", "group"), values + 0.1),
        },
        {"step": steps, "group": [f"group {i}" for i in range(groups)]},
    )


@pytest.mark.parametrize(
    ("groups", "series", "facet"), [(2, "group", None), (3, None, "group")]
)
def test_three_groups_have_a_panel_each(groups, series, facet):
    (figure,) = default_figures(node(groups), [ACCURACY])
    assert (figure.series, figure.facet) == (series, facet)


def test_two_groups_are_told_apart_by_colour():
    data = attach(node(2), Section("Pairs", ""), default_figures(node(2), [ACCURACY]))
    content = read_content(xr.DataTree.from_dict({"pairs": data}))
    (drawable,) = read_drawables(content)
    lines = draw_figure(drawable, content).axes[0].get_lines()
    assert len({line.get_color() for line in lines}) >= 2
    assert len({line.get_linestyle() for line in lines}) >= 2  # also in black and white
