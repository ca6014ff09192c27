"""The picture of one model: its loss stands where it is, among what guesses cost."""

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from ontogeny.figures import Section, attach
from ontogeny.report.page.picture import loss_picture
from ontogeny.words.content import read_content
from ontogeny.words.voice import Voice

SVG = "{http://www.w3.org/2000/svg}"


def of_model(loss=4.0, **further):
    data = xr.Dataset(
        {
            "loss": ("step", [loss], {"long_name": "loss", "units": "nats per token"}),
            "loss_low": ("step", [loss - 0.5]),
            "loss_high": ("step", [loss + 0.5]),
            "loss_uniform": 8.0,
            "loss_unigram": 6.0,
            **{f"loss_below_unigram{end}": 7.0 for end in ("", "_low", "_high")},
            "loss_renamed": (("step", "renaming"), [[loss, *np.linspace(9, 11, 41)]]),
        },
        coords={"step": [7]},
    )
    nodes = {"loss": attach(data, Section("Loss", "Loss."), [], role="track")}
    for name, node in further.items():
        nodes[name] = attach(node, Section(name, name), [])
    return read_content(xr.DataTree.from_dict(nodes))


def drawn(content):
    """The names from top to bottom, and the place of each dot, in the wide and narrow drawing."""
    svgs = re.findall(r"<svg .*?</svg>", loss_picture(content))
    assert ["chart-wide" in svg for svg in svgs] == [True, False]
    root = ElementTree.fromstring(
        svgs[0].replace("<svg ", f'<svg xmlns="{SVG[1:-1]}" ', 1)
    )
    names = [t.text for t in root.iter(f"{SVG}text") if t.get("class") == "end"]
    kinds = ("dot", "open-dot")
    dots = [c for c in root.iter(f"{SVG}circle") if c.get("class") in kinds]
    return (
        names,
        np.array([float(c.get("cx")) for c in dots]),
        [c.get("class") for c in dots],
    )


@pytest.mark.parametrize("loss", [4.0, 7.0])
def test_the_loss_stands_among_what_guesses_cost(loss):
    names, places, kinds = drawn(of_model(loss))
    values = {
        "renamed words": 10.0,
        "uniform guess": 8.0,
        "word frequencies": 6.0,
        "this model": loss,
    }
    assert names == sorted(values, key=lambda name: -values[name])
    # What renamed words cost lies beyond every guess: it has a number and an arrow, and no dot.
    kept = [name for name in names if name != "renamed words"]
    apart = np.diff(places) / np.diff([values[name] for name in kept])
    assert apart == pytest.approx(apart[0], abs=0.3) and apart[0] > 0
    assert kinds == ["dot" if name == "this model" else "open-dot" for name in kept]
    assert loss_picture(of_model(loss)).count(">→ 10.00<") == 2


def test_of_characters_nothing_is_called_a_word():
    names, *_ = drawn(replace(of_model(), voice=Voice(token_unit="character")))
    assert {"renamed characters", "character frequencies"} < {*names}


def test_a_lens_gives_its_layers_and_no_loss_no_picture():
    lens = xr.Dataset(
        {"lens_loss": (("step", "layer"), [np.linspace(7.5, 4.0, 30)])},
        coords={"step": [7], "layer": [f"layer {i}" for i in range(30)]},
    )
    names, *_ = drawn(of_model(lens=lens))
    layers = [name for name in names if name.startswith("read off layer")]
    assert len(layers) == 8 and {"read off layer 0", "read off layer 29"} <= {*layers}
    other = xr.DataTree.from_dict({"a": attach(lens, Section("A", "A."), [])})
    assert loss_picture(read_content(other)) == ""
