"""Studies that others can open: on the Hub, as a data set with a card.

`prepare` puts together what would be pushed and lists what in it looks private; nothing leaves this
machine before `Parcel.push`. `ontogeny.open_study` opens what was pushed by its name.
"""

from .parcel import prepare

__all__ = ["prepare"]
