# Written by .ci/stubs.py.
# ruff: noqa
from typing import Any
from ontogeny.features.wordspace.concepts import svd_concepts as svd_concepts
from ontogeny.features.wordspace.order import first_crossing as first_crossing

__all__ = ["first_crossing", "svd_concepts"]

def __getattr__(name: str) -> Any: ...
