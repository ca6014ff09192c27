"""What rows are called where they are counted: layers, some layers of a model, or measures."""

import json

import pytest

from helpers import report_examples as examples
from ontogeny.words.content import read_content
from ontogeny.words.sections import section_sentences


def said(blocks):
    tree = examples.controlled_tree(layers=6)
    tree.attrs["model"] = json.dumps({"class": "M", "blocks": blocks})
    content = read_content(tree)
    node = next(node for node in content.nodes if node.path == "attention-entropy")
    return " ".join(one.text for one in section_sentences(content, node))


@pytest.mark.parametrize(
    ("blocks", "words"), [(6, "layers"), (30, "layers that were read")]
)
def test_layers_of_a_larger_model_are_said_to_be_those_that_were_read(blocks, words):
    assert f" in 4 of 6 {words} beyond controls" in said(blocks)
