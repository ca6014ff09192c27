# Written by .ci/stubs.py.
# ruff: noqa
from typing import Any
from ontogeny.features.concepts.describe.contexts import contexts as contexts
from ontogeny.features.concepts.describe.enrichment import enrichment as enrichment
from ontogeny.features.concepts.describe.names import names as names
from ontogeny.features.concepts.describe.neighbours import neighbours as neighbours
from ontogeny.features.concepts.describe.rows import concentration as concentration
from ontogeny.features.concepts.describe.rows import orientation as orientation
from ontogeny.features.concepts.describe.tokens import strongest_tokens as strongest_tokens

__all__ = [
    "concentration",
    "contexts",
    "enrichment",
    "names",
    "neighbours",
    "orientation",
    "strongest_tokens",
]

def __getattr__(name: str) -> Any: ...
