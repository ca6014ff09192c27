"""The texts of which every token is shown, as a state holds them."""

from __future__ import annotations

from typing import Any

from ..inputs import ShownTexts
from ..words.names import Names

SHOWN: Names = {
    "shown_text_number": ("number of the text in its input set", ""),
    "shown_token_id": ("token; -1 beyond the text", ""),
}


def shown_variables(texts: ShownTexts) -> dict[str, Any]:
    """Return numbers of the texts and ids of their tokens, under the names of `SHOWN`."""
    return {
        "shown_text_number": ("shown_text", texts.number),
        "shown_token_id": (("shown_text", "shown_place"), texts.ids),
    }
