"""Whether figures can be drawn here: matplotlib is an extra, which the page does not need."""

from __future__ import annotations

from importlib.util import find_spec

from ..errors import MissingExtraError


def check_drawing() -> None:
    """Check that matplotlib is installed.

    Raises
    ------
    MissingExtraError
        If it is not; the message says how to install it.
    """
    if find_spec("matplotlib") is None:
        raise MissingExtraError(
            "figures for papers and notebooks are drawn with matplotlib, which is not installed: "
            "pip install 'ontogeny[figures]'."
        )
