"""What an observable says of its node, in the words of the catalogue."""

from ontogeny.words.sentences import sentences
from ontogeny.words.subjects import Names
from ontogeny.words.voice import OF_STEPS


def said_of(observable, data, voice=OF_STEPS):
    """Return the sentences on the claims of an observable, layers by their paths."""
    claims = observable.claims("node", data)
    return [one.text for one in sentences(claims, voice, Names())]
