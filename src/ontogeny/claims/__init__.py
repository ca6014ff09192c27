"""What a study says, as data: a value for each claim, and tables of them.

A claim says what happened to what (`Kind`, `Subject`), how sure that is (`Certainty`, and a
`Reason` where it is open), by how much, since when, and beside what. Claims are made where verdicts
are made, and stand in a result as columns over ``claim`` of the node ``claims``.
"""

from .claim import Beside, Claim, Subject
from .table import from_dataset, to_dataset
from .values import measurement
from .vocabulary import RULES, Certainty, Kind, KindRule, Reason, Reference

__all__ = [
    "Beside",
    "Certainty",
    "Claim",
    "Kind",
    "KindRule",
    "RULES",
    "Reason",
    "Reference",
    "Subject",
    "from_dataset",
    "measurement",
    "to_dataset",
]
