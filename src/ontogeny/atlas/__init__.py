"""The concept atlas: what one concept of a result is, as a card, a table and a label by a person.

``result.concept("joint-concepts", layer=3, index=5)`` is made here. This package knows results
only; `ontogeny.observables` measures what stands on the cards.
"""

from .accessor import with_labels
from .labels import Labels, read_labels
from .readouts import Direction, export_sae

__all__ = ["Direction", "Labels", "export_sae", "read_labels", "with_labels"]
