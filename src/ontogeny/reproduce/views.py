"""How each observable of a reproduction is drawn, by the name of its node."""

from __future__ import annotations

from .learning_views import ACCURACY, ATTENTION, RANKS
from .update_views import COMMUTATORS, LATENTS, PROJECTION

VIEWS = {view.node: view for view in (RANKS, ACCURACY, ATTENTION, COMMUTATORS, PROJECTION, LATENTS)}
