"""Closed English word classes and endings: labels for words that need no tagger."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ontogeny.errors import check_texts

# Where a word is in two lists, the first one counts. "may" is an auxiliary far more often than a
# month, "second" more often a place in an order than a unit.
_LISTS = {
    "auxiliary": """am is are was were be been being do does did done have has had having can could
        may might must shall should will would don't doesn't didn't isn't aren't wasn't weren't
        can't cannot couldn't won't wouldn't shouldn't hasn't haven't hadn't""",
    "month": """january february march april june july august september october november december
        jan feb mar apr jun jul aug sep sept oct nov dec""",
    "weekday": "monday tuesday wednesday thursday friday saturday sunday",
    "number word": """zero one two three four five six seven eight nine ten eleven twelve thirteen
        fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty
        seventy eighty ninety hundred thousand million billion dozen""",
    "ordinal": """first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth
        13th 14th 15th 16th 17th 18th 19th 20th 21st last next final""",
    "pronoun": """i you he she it we they me him us them myself yourself himself herself itself
        ourselves themselves who whom someone something anyone anything everyone everything nobody
        nothing none i'm you're he's she's it's we're they're i'll i've""",
    "determiner": """the a an this that these those my your his her its our their each every some
        any no all both either neither another such several many few most more other much whose
        which what""",
    "preposition": """of in on at by for with from to into onto upon over under above below between
        among through throughout during before after about against across along around behind
        beneath beside besides beyond despite down inside near off out outside past per since
        toward towards up until till via within without like as than""",
    "conjunction": """and or but nor so yet because although though while whereas if unless when
        whenever where wherever whether however therefore thus""",
    "unit": """km kilometre kilometres kilometer kilometers m metre metres meter meters cm mm ft
        foot feet inch inches in. mi mile miles yd yard yards mph kn knot knots kg lb lbs pound
        pounds ton tons g °c °f % percent hectare hectares acre acres hour hours minute minutes
        seconds year years month months week weeks day days""",
    "past": """went said made took came got gave saw found told left felt knew became began brought
        kept held wrote stood heard let meant met ran paid sat spoke led read grew lost fell sent
        built understood drew broke spent cut rose drove bought wore chose won thought put hit sang
        flew ate drank slept threw caught taught fought sold hid shot struck swam woke won lay
        seen taken given known shown written gone born begun grown drawn broken chosen thrown
        spoken driven fallen worn beaten laid sought set""",
}
_LISTED = {
    word: name for name, words in reversed(_LISTS.items()) for word in words.split()
}

_FORMS = (
    ("year", re.compile(r"1[0-9]{3}s?|20[0-9]{2}s?")),
    ("number", re.compile(r"[0-9][0-9.,:/]*")),
    ("ordinal", re.compile(r"[0-9]+(st|nd|rd|th)")),
    ("punctuation", re.compile(r"@?[^\w\s]+@?|=+|[^\w\s@]+")),
    ("-ed", re.compile(r"[a-z]{2,}ed")),
    ("-ing", re.compile(r"[a-z]{3,}ing")),
    ("-ly", re.compile(r"[a-z]{3,}ly")),
    (
        "abstract noun",
        re.compile(r"[a-z]{3,}(tion|sion|ment|ness|ity|ance|ence|ship|ism)"),
    ),
    ("adjective", re.compile(r"[a-z]{3,}(ous|ful|ive|able|ible|ical|less|ish)")),
    ("plural", re.compile(r"[a-z]{3,}[^suioa'\W]s")),
)
# Words that end like a form and are none.
_ENDINGS_ONLY = """
    king ring thing things something spring wing sing bring string morning evening building wedding
    ceiling during red bed need seed feed speed indeed shed united only family early fly reply
    supply italy holy lily daily always perhaps news series politics james paris texas wales thomas
    charles lives
"""
_NOT_FORMS = frozenset(_ENDINGS_ONLY.split())


def word_classes(words: Iterable[str]) -> dict[str, str]:
    """Return the class of every word that belongs to a closed class or has a telling ending.

    Lists of months, weekdays, number words, pronouns and so on, and rules for years, numbers,
    ``-ed``, ``-ing`` and other endings. English only, and approximate where a word has two uses;
    other words get no class. Case and a leading-space mark do not matter.

    Parameters
    ----------
    words
        Any words.

    Returns
    -------
    dict
        From word to class, without the words that have none.

    Examples
    --------
    >>> word_classes(["June", "1998", "walked", "tree", "into"])
    {'June': 'month', '1998': 'year', 'walked': 'past', 'into': 'preposition'}
    """
    texts = check_texts("words", words, "words")
    classes = {word: _class(word.lstrip("Ġ▁# ").lower()) for word in texts}
    return {word: name for word, name in classes.items() if name}


def _class(word: str) -> str:
    if word in _LISTED:
        return _LISTED[word]
    if word in _NOT_FORMS:
        return ""
    name = next((name for name, form in _FORMS if form.fullmatch(word)), "")
    return "past" if name == "-ed" else name
