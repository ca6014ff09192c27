"""What judged nodes claim, and the sentences that a section of the page says of them."""

from __future__ import annotations

from collections import Counter

import xarray as xr

from ontogeny.claims import Certainty, Claim, Kind
from ontogeny.words.content import read_content
from ontogeny.words.page_claims import claims_of
from ontogeny.words.sections import section_sentences


def flat(table) -> dict[tuple, str]:
    """Return the templates of a nested table of the catalogue, by all of their keys."""
    found = {}
    for key, value in table.items():
        if isinstance(value, str):
            found[(key,)] = value
        else:
            found |= {(key, *keys): text for keys, text in flat(value).items()}
    return found


def claims(data, *kinds: Kind) -> list[Claim]:
    """Return the claims of one node, or those of some kinds."""
    return [c for c in claims_of({"x": data}, {}) if not kinds or c.kind in kinds]


def certainties(data, kind: Kind) -> dict[Certainty, int]:
    """Return how many rows of a node are how sure of one kind."""
    return dict(Counter(claim.certainty for claim in claims(data, kind)))


def spoken(data) -> list[str]:
    """Return the sentences of the section of one node."""
    content = read_content(xr.DataTree.from_dict({"x": data}))
    return [one.text for one in section_sentences(content, content.nodes[0])]
