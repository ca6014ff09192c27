"""What a concept is: the tokens that it fires on, its contexts, and a name where it has earned one.

Functions of codes (n, r) and of the tokens that their rows are of. Codes may have any sign: each
concept is first turned to the side where it is strongest, see `orientation`.
"""

from ._exports import exported_names, exporter

__all__ = [*exported_names("describe")]

__getattr__ = exporter("describe")
