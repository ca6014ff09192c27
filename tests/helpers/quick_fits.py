"""Cheaper fits for tests that are about anything else than what is fitted."""

import pytest

from ontogeny.concepts.joint import sources


@pytest.fixture(scope="module")
def few_starts():
    """Joint codes of what is not skewed, such as tiny random models, are fitted from one start."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sources, "DRAWS", 1)
        patched.setattr(sources, "FEW", 1)
        yield
