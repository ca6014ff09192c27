"""The guide's code runs from top to bottom, and its table of patterns says what happens."""

import re

import pytest

from helpers.capture_models import build
from helpers.paths import GUIDES
from ontogeny import capture

GUIDE = GUIDES / "capture.md"


def test_the_guide_runs(capsys):
    text = GUIDE.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) >= 6
    names = {"__name__": "guide"}
    exec("\n".join(blocks), names)
    assert set(names["acts"]) == {f"model.layers.{i}.mlp" for i in range(3)}
    assert names["entropy"].dims == ("layer", "head")
    assert names["found"].positions == "model"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("model.layers.*.mlp", 3),
        ("layers.*.mlp", 3),
        ("mlp", 3),
        ("layers.-1", ["model.layers.2"]),
        ("layers[0:12:3].mlp", ["model.layers.0.mlp"]),
        (["layers.*", "!layers.0"], ["model.layers.1", "model.layers.2"]),
        ("model.layers.2", ["model.layers.2"]),
    ],
)
def test_the_guides_patterns_mean_what_it_says(pattern, expected):
    found = capture.match_layers(build("eurobert"), pattern)
    assert found == expected or len(found) == expected
