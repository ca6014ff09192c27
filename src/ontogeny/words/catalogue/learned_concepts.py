"""What pages say of concepts that were found beyond the token: texts alone."""

from __future__ import annotations

APART = "in the learned part alone"
# What is said of each kind of life.
KINDS = {
    "from the start": "readable and at half of its peak at the first checkpoint",
    "born": "unreadable and below a quarter of its peak at every checkpoint before, readable and "
    "at half of it from then on, in the fits to all texts and to either half; and unreadable from "
    "the first checkpoint with the norms of later ones",
    "grows": "readable and at half of its peak only later, but not absent before in every fit",
    APART: "found in what the first checkpoint does not predict; no birth is judged",
    "not readable": "found, and never readable from one checkpoint on other texts",
}
RULE = (
    "Independent components of what a layer holds beyond the current {token} are concepts, where "
    "fits to both halves of the texts find them. A name is a rule that its strong places share: "
    "chosen on one half of the texts, judged on the other, and better than 95 % of those of an "
    "untrained model, from which the concept cannot be read."
)
BIRTHS = "A birth tells of learning where it has a name that no control run reaches."
NO_BIRTH_BEYOND = "No birth has a name that no control run reaches."
UNNAMED = (
    "without a name: no rule tells their places beyond chance and an untrained model; first those "
    "of which a rule tells something"
)
BANDS = {
    "top": "Strongest",
    "middle": "Middle of its strong places",
    "low": "Weakest of them",
    "near miss": "Near misses: the rule holds, the concept is silent",
}

# How many there are.
NONE_FOUND = (
    "No concept beyond the {token} is found by fits to both halves of the texts"
)
FOUND = "{concepts} beyond the {{token}}"
HOLDS = "It holds {found}"
WAS_BORN = {1: "was born", 2: "were born"}
NONE_BORN = "none was born"
NONE_NAMED = {
    1: "The only concept beyond the {{token}} has no name",
    2: "None of {concepts} has a name",
}
HAS_NAME = {1: "has a name", 2: "have a name"}
AT_END = {1: "{count} is found at the end", 2: "{count} are found at the end"}
# Of one model: what its learned part adds is no whole of its own.
IN_WHOLE = {
    1: "{count} is found in the whole layer",
    2: "{count} are found in whole layers",
}
LEARNED_ALONE = ", the others in the learned part alone"
NAMED_BIRTHS = {
    1: "{count} named concept was born that no control reaches",
    2: "{count} named concepts were born that no control reaches",
}
IN_ALL = "in all, "
UNTRAINED_HAS = "an untrained model has {count}"
CONTROLS = "controls {counts}"
UNTRAINED = "untrained {count}"
REFITS = "refits {low}–{high}"
OF = " of {counts}"

# A card: how well its name or best rule tells its places, and whether controls have the like.
NAME_TELLS = "Its name"
RULE_TELLS = "The best rule, {rule},"
NO_RULE_TELLS = "No rule is shown to say what it is; the best"
TELLS = (
    "{which} holds at {top}, {middle} and {other} of its strongest, middle and all other places "
    "(other texts; AUC {auc})"
)
NAME_UNREACHED = "No control run names this as well"
NAME_REACHED = "A control run names this as well"
CONTROL_HAS = "Control run {run} has it (correlation {match}), {life} there"
BORN_AT = "born at {step}"
NOT_BORN = "not seen to be born"
NO_CONTROL_HAS = "No control run has it (nearest code {match}, alike from {least})"
NEAREST_LEARNED = (
    "Nearest component of what the first {checkpoint} does not predict: correlation "
    "{match}"
)

# A layer.
LAYER_COUNTS = (
    "By the same rules an untrained model has {components} beyond the {{token}}, and this run "
    "{count}{controls}."
)
LAYER_NAMES = "Named in this layer: {count}{controls}."
LAYER_CONTROLS = "Control runs move as far and learn nothing."
LAYERS_ASKED = (
    'Asked: {asked}, of a model of {blocks}, as each takes five fits; layers = "resid" asks '
    "after every block."
)
