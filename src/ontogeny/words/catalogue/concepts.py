"""What pages and cards say of concepts of tokens and their lives: texts alone.

Of concepts beyond the token `ontogeny.words.catalogue.learned_concepts` has the texts.
"""

from __future__ import annotations

# What is said of each kind of life, in a list of kinds.
KINDS = {
    "from the start": "at half of its peak at the first checkpoint; it may weaken later",
    "born": "below a quarter of its peak, then at half of it, and readable at three checkpoints in "
    "a row from there, or at the last two",
    "birth not confirmed": "the same, but not readable for long enough after",
    "grows": "at half of its peak only later, but never below a quarter",
    "fires on more tokens": "writes what an older concept writes, on other tokens",
    "not found again": "readable, but half of the texts does not find it",
}
RULE = (
    "A concept is named by its tokens, where three carry more of its activation than for 95 % of "
    "the untrained model’s concepts in that layer."
)
UNNAMED = (
    "without a name: no sharper than in the untrained model or by chance, little explained by "
    "its tokens, or not borne out by contexts"
)

# The first screen: how many have a name, and which.
UNKNOWN = "Concepts are not known:"
NONE_READ = "None of {latents} latents can be read from two checkpoints."
NONE_NAMED = "{concepts} can be read; none has a name"
NAMED = {1: "{count} of {concepts} has a name", 2: "{count} of {concepts} have a name"}
NO_CONTROL_READ = "; no control run was read"
CONTROLS = " (controls {counts})"
AMONG = "Among them are {names}."
ALL_NAMES = {1: "The name is {names}.", 2: "The names are {names}."}
SUCH_AS = "Such as: {names}."
# Of concepts none of which was born.
NAMES_ARE = {1: "The name is: {names}.", 2: "Names are: {names}."}
BIRTHS_SEEN = (
    "Control runs were read at {read}, where {count} of the births can be seen."
)

# Life lines: which concepts have one, and what their marks mean.
SHADES = (
    "Tint: how close to its peak; hatched: cannot be read from that checkpoint alone."
)
BIRTH_MARKS = "Dot: birth; bar: the checkpoints between which it lies."
GROWING = "grows"
GREW = "grew"
ENDS = "{was}, ends at {share}"  # of its peak
# By whether any is well below its peak at the end.
GROWS = {
    False: "Grows: weaker at first, but not shown to be absent, so no birth.",
    True: "Grows, grew: weaker at first, but not shown to be absent, so no birth; ends at a share "
    "of its peak.",
}
NOT_AT_END = "not at the end"
LEFT = "Not at the end: cannot be read at the last checkpoint."
# Where there is room for eight letters; of other courses no birth is judged or confirmed.
BRIEF = {"from the start": "start", GROWING: "grows", NOT_AT_END: "ended"}
BRIEF_OTHERWISE = "no birth"
ALL_OF = "All {kind}."
ONLY = "The {kind}."
CHOSEN = "{count} of {kind}: {how}."
BEST = "the {best}"
BORN_AND_BEST = "the {born} of them born during the run, and the {best} of the others"
NONE_BORN = "the {best}; none was seen to be born during the run"
OF_STRETCHES = "{count} of their {born} births, the {best} of each stretch of the run"
BORN = "those that were born during the run"
ONLY_ONE = "only {noun}"
OF_ALL = ", of {count} in all"
WITHOUT_NAME = "; none has a name"
AFTER_NAME = "After a name: its layer."
LIFE_LINES = "Life lines of concepts"
LIFE_LINES_UNNAMED = "Life lines of concepts, none named"

# The atlas: what was fitted, and how names were given.
APART = (
    ", which both halves of the texts find; {count} more that one fit alone found stand apart, "
    "under “not found again”"
)
NO_NAMES = ". No name could be given: {reason}."
NUMBERED = ". They were not named, so each stands by its number, the strongest first."
NONE_GOT_A_NAME = (
    ". None got a name: each is no sharper than in the untrained model or by chance, little "
    "explained by its tokens, or not borne out by contexts."
)
GOT_A_NAME = "; {count} got a name."
NO_CONTROL = (
    " No control was run, so it is not known how many names motion alone would give."
)
SHOWN = "{concepts} of {all} shown: the {best} of each layer."
NO_CONTEXTS = "Cards have no contexts, as the result holds none: a study keeps `examples` of each."
BY_NUMBER = "The run holds no tokenizer; tokens are shown by number."
NO_NAME_IN = "In {layer} no name could be given: {reason}."

# A card of a concept, and a table of them, in terminal and notebook.
LIVES = {
    "born": "looks born, but did not stay readable",
    "from the start": "there from the start",
    "grows": "weaker at first, but never absent",
    "fires on more tokens": "an older concept that came to fire on more tokens",
    "not found again": "not found again: a fit to half of the texts does not give it",
    "no concept": "no concept: its code cannot be read from single checkpoints",
}
BORN_BY = "born by {unit} {born}{between}"
BORN_BETWEEN = " (after {unit} {after}{latest})"
AT_THE_LATEST = ", by {unit} {before} at the latest"
GONE_FROM = "; gone from {unit} {gone}"
SETTLED_FROM = "; settled from {unit} {settled}"
UNCONFIRMED = "birth not confirmed"
NOT_NAMED = "not named"
NOT_MEASURED = "not measured"
BY_A_PERSON = " (named by a person)"
WRITES = "per standard deviation of its code; random directions reach {limit}"
WRITES_NOTHING = ", so that it raises no token more than chance"
REMOVAL = "to first order the loss rises by {cost} nats per predicted token"
REMOVAL_BESIDE = "; random directions give {low} to {high}"
OF_TOKENS = "{share} of the tokens"
SHARPNESS = "{share} of its squared code lies on three tokens"
SHARPNESS_BESIDE = "; of the untrained model's latents, 95 % reach at most {limit}"
NO_CONCEPT = "it is no concept: its code cannot be read from single checkpoints"
NO_RULE = "no rule tells its places beyond chance and an untrained model"
NO_SHARPNESS = "its concentration was not measured"
NO_UNTRAINED = "there is no untrained model to compare it with"
TOO_FLAT = "its three strongest tokens carry {share} of its squared code; a name takes over {limit}"
NOT_BORNE_OUT = (
    "its three strongest tokens carry {share} of its squared code, but its code or its strongest "
    "places do not bear a name out"
)
AS_PERMUTED = (
    "its three strongest tokens carry {share} of its squared code, which permuted codes do too "
    "(p = {p}, corrected over concepts)"
)
OTHER_FIT = "{names} is the name of this number in another fit; it does not hold here."
TABLE = "{node}, {unit} {step}: {concepts} concepts, {named} with a name"
STARRED = "* named by a person"
NO_NAMES_FROM_TOKENS = "No names from tokens: {reason}."
