"""All that is said of claims: a template for each kind and certainty, and words for reasons.

A template is filled with phrases of a claim, or of several alike (`ontogeny.words.phrases`):

===============  ==========================================================================
``{Subject}``    whose change it is, at the beginning of a sentence; ``{subject}`` within one
``{verb}``       fell, rose or changed; ``{title}`` the label, or the subject without one
``{where}``      of several: in how many layers, or for which labels: " in 5 of 6 layers"
``{ends}``       from what to what, with units
``{controls}``   in brackets: by how much control runs change, or how many they have
``{half}``       when half of it was over, such as ". Half was there by step 127 (108–135)"
``{since}``      the step from which on it holds, with its interval
``{label}``      the part of the subject that the claim is about, such as a reference
``{beside}``     what the claim was judged against
``{value}``      the size of what happened
``{values}``     of several the range of their last values
``{levels}``     in brackets: what chance and other ways of answering reach
``{other}``      the name of what stands beside it, such as the run that ends higher
``{next_layer}`` of an order the layer that came later; ``{next_step}`` its step
``{damage}``     what is wrong with a checkpoint
``{held_against}`` the null that a value is held against
``{direction}``  the label without the group of examples
``{what}``       what a direction was asked of: the loss, or a group of examples
``{null}``       the largest of what it was judged against, and what that is
``{reason}``     why it is open
``{word}``       what a token is called
``{kind}``       what happened, as the table of claims has it
``{count}``      of single concepts or features; ``{were}`` was or were, ``{named}`` which
``{is_}``        is or are, by the name of the quantity
``{keeps|keep}``  the first where one is counted, the second of several
``{dates}``      since when it holds of the first and of the last of them
===============  ==========================================================================
"""

from __future__ import annotations

from ...claims import Certainty, Kind, Reason, Reference
from ..measured import MEASURED, UNSURE

SURE = Certainty.SURE
AS_CONTROLS = Certainty.AS_CONTROLS
OPEN = Certainty.OPEN
NOT_TESTED = Certainty.NOT_TESTED

# What goes beyond controls went farther or the other way; else it went at another time, or less far.
BEYOND = {True: "beyond controls", False: "unlike in controls"}

SENTENCES: dict[Kind, dict[Certainty, str]] = {
    Kind.LEARNED: {
        SURE: "{Subject} improved by learning{where}: {ends}{controls}{half}.",
        OPEN: "Whether {subject} improved by learning{where} is open: {reason}.",
        NOT_TESTED: "Whether {subject} improved by learning{where} is not tested: {reason}.",
        AS_CONTROLS: "{Subject} improved{where} as control runs do, {ends}{controls}.",
    },
    Kind.FORGOT: {
        OPEN: "Whether {subject} got worse beyond controls{where} is open: {reason}.",
        SURE: "{Subject} got worse beyond controls{where}: {ends}{controls}{half}.",
    },
    Kind.BEYOND_MOTION: {
        SURE: "{Subject} {verb}{where} {beyond}, {ends}{controls}{half}.",
        AS_CONTROLS: "{Subject} {verb}{where} as control runs do, {ends}{controls}.",
        OPEN: "{Subject} {verb}{where}, {ends}{controls}; beyond controls is open: {reason}.",
        NOT_TESTED: "{Subject} {verb}{where}, {ends}; that is not tested against controls{half}.",
    },
    Kind.CHANGED: {
        SURE: "{Subject} {verb}{where}, {ends}{half}.",
        OPEN: "Whether {subject}{where} changed is open: {reason}.",
    },
    Kind.CHANGED_ON_ITEMS: {
        SURE: "{Subject} changed on these items, from {ends}; others are open."
    },
    Kind.ABOVE_CHANCE: {
        SURE: "{Subject} is above chance{since}: {last}{of_whole} right{levels}.",
        OPEN: "Whether {subject} is above chance is open: {reason}.",
    },
    Kind.READABLE: {
        SURE: "“{label}” can be read from {layer}{since}: {measured}, beside {null}.",
        AS_CONTROLS: "“{label}” can be read from {layer}, but no better than from control runs "
        "or an untrained model: {measured}.",
        OPEN: "Whether “{label}” can be read from {layer} is open ({measured}): {reason}.",
    },
    Kind.NEEDED: {
        SURE: "Without “{direction}” in {layer} {what} {verb} {ends}{since}, beside {null}.",
        OPEN: "Whether {what} needs “{direction}” in {layer} is open ({ends}): {reason}.",
    },
    Kind.STEERS: {
        SURE: "“{direction}” added to {layer} moves {what} {ends}{since}, beside {null}.",
        OPEN: "Whether “{direction}” added to {layer} moves {what} is open: {reason}.",
    },
    Kind.GAINED: {
        SURE: "It gained {subject}{since}: {ends}.",
        OPEN: "Whether it gained {subject} ({ends}) is open: {reason}.",
    },
    Kind.LOST: {SURE: "It lost {subject}{since}: {ends}."},
    Kind.PASSES: {
        SURE: "{Subject} {is_} below that of {label} ({beside}){since}.",
        OPEN: "{Subject} {is_} not shown below that of {label} ({beside}): {reason}.",
    },
    Kind.GAINS_FROM: {SURE: "Half of the gain from {label} was there{since}."},
    Kind.RISES_AGAIN: {
        SURE: "{Subject} reached the lowest value{since}, then rose by {value}."
    },
    Kind.DIFFERS: {
        SURE: "{Subject}{where} {is_} {values}, beside {beside} for {held_against}.",
        OPEN: "{Subject}{where} {is_} {values}, not shown to differ from {held_against} "
        "({beside}): {reason}.",
    },
    Kind.BEFORE: {
        SURE: "{Subject} changed in {layer} before {next_layer}: half by {dated} against "
        "{next_step}."
    },
    Kind.AHEAD: {
        SURE: "{label} ends {value} below {other}.",
        OPEN: "{label} and {other} are not shown to differ in their loss.",
    },
    Kind.MEMORISED: {
        SURE: "It has memorised its training texts{since}: {known}.",
        OPEN: "It is not shown to have memorised its training texts, {known}: {reason}.",
    },
    Kind.GENERALISES: {
        SURE: "It generalises to held-out texts{since}: {known}.",
        OPEN: "It is not shown to generalise to held-out texts, {known}: {reason}.",
    },
    Kind.IN_CONTEXT: {
        SURE: "It learned to use what stands further back: {measured} at {label}, {beside} at "
        "{other}."
    },
    Kind.FAR_FROM_RECORD: {
        SURE: "The run recorded a {label} loss of {beside} at {step}, here {measured}: perhaps "
        "other texts, places, tokenizer or code."
    },
    Kind.OVERFITS: {
        SURE: "It overfits{since}.",
        OPEN: "Whether it overfits is open: {reason}.",
    },
    Kind.DAMAGED: {
        SURE: "The checkpoint of {step} is damaged: {damage}.",
        OPEN: "The checkpoint of {step} may be damaged: {damage}.",
    },
    Kind.REPRODUCES: {
        SURE: "“{label}” reproduces.",
        AS_CONTROLS: "“{label}” is not shown: its null or control has it as well.",
        OPEN: "“{label}” is not shown: {reason}.",
        NOT_TESTED: "“{label}” is not tested: {reason}.",
    },
    Kind.CONTRADICTS: {SURE: "“{label}” does not reproduce."},
    Kind.MEASURED: {
        SURE: "{Subject} {is_} {number}{of_whole}{against}.",
        AS_CONTROLS: "{Subject} {is_} {number}, as in control runs{against}.",
        OPEN: "{Subject} {is_} {number}{against}; that is open: {reason}.",
        NOT_TESTED: "The result lacks {title}: {reason}.",
    },
}

# Of counts, with how sure they are behind.
COUNTS: dict[Kind, str] = {
    Kind.BORN: "{value} of {label} {was|were} born",
    Kind.FADED: "{value} of {label} faded by the end",
    Kind.KEPT: "{value} of {label} {is|are} kept",
    Kind.TURNED: "{value} of {label} turned",
    Kind.SHARED: "In {layer} the runs share {value} of {label}",
}
OF_COUNTS: dict[Certainty, str] = {
    SURE: "{controls}{since}.",
    AS_CONTROLS: "{controls}{since}, no more than in controls.",
    OPEN: "{controls}{since}, not shown to be more than in controls: {reason}.",
    NOT_TESTED: "{since}; not tested: {reason}.",
}
SENTENCES |= {
    kind: {certainty: count + end for certainty, end in OF_COUNTS.items()}
    for kind, count in COUNTS.items()
}

# Of some labels there is a plainer sentence.
OF_LABELS: dict[str, dict[Kind, dict[Certainty, str]]] = {
    Reference.OWN_FREQUENCIES: {
        Kind.PASSES: {
            SURE: "It uses context{since}: averaged over all places, its predictions have a "
            "loss of {beside}.",
            OPEN: "Use of context is not shown beside its averaged predictions ({beside}): "
            "{reason}.",
        }
    },
    Reference.OWN_BIGRAMS: {
        Kind.PASSES: {
            # Since when it surely does is no place in the order of what was learned,
            # which is by halves.
            SURE: "It uses more than the {word} before: averaged for each such {word}, its "
            "predictions have a loss of {beside}."
        }
    },
    Reference.RENAMED: {
        Kind.DIFFERS: {
            SURE: "With {word}s renamed the loss is {beside}: what it learned is about these {word}s."
        }
    },
}

# The same of some quantities: places of texts, gaps, and sets of texts.
OF_QUANTITIES: dict[str, dict[Kind, dict[Certainty, str]]] = {
    "place_loss": {
        Kind.LEARNED: {
            SURE: "The loss at {label} improved by learning{since}: {ends}."
        },
        Kind.CHANGED: {SURE: "The loss at {label} {verb}: {ends}."},
    },
    "share": {
        Kind.READABLE: {
            SURE: "“{label}” is {measured} of the variance of {layer}{since}, beside {null}."
        }
    },
    "explained": {
        Kind.READABLE: {
            SURE: "The dictionary explains {measured} of {layer}{since}, beside {null}.",
            OPEN: "Whether the dictionary explains {layer} ({measured}) is open: {reason}.",
        }
    },
    "place_accuracy": {
        Kind.GAINED: {
            SURE: "The {token} at {label} is right in {last} of the texts (at first "
            "{number_first})."
        }
    },
    "right": {
        Kind.GAINED: {
            SURE: "Against {other}, {subject} is gained{since}: {ends}.",
            OPEN: "No ability is shown to be gained or lost against {other}.",
        },
        Kind.LOST: {SURE: "Against {other}, {subject} is lost: {ends}."},
        Kind.CHANGED_ON_ITEMS: {
            SURE: "Against {other}, {subject} differs on these items, {ends}; others are open."
        },
    },
    "right_probability": {
        Kind.GAINED: {
            OPEN: "In the gap “{label}” the right answer leads, {ends}; others are open."
        }
    },
}

# Of numbers that observables claim beside their rows.
for name in {**MEASURED, **UNSURE}:
    of_sure = {SURE: MEASURED[name]} if name in MEASURED else {}
    of_number = {**of_sure, **UNSURE.get(name, {})}
    OF_QUANTITIES.setdefault(name, {})[Kind.MEASURED] = of_number

# Of what several runs share, layer by layer.
OF_QUANTITIES["born_in_all"] = {
    Kind.BORN: {
        certainty: f"In {{layer}}, {COUNTS[Kind.BORN]}{end}"
        for certainty, end in OF_COUNTS.items()
    }
}

# Of single concepts, with how sure that is behind.
OF_CONCEPTS: dict[Kind, str] = {
    Kind.BORN: "{count} {were} born{dates}: {named}",
    Kind.FADED: "{count} faded{dates}: {named}",
    Kind.KEPT: "{count} {were} kept: {named}",
    Kind.TURNED: "{count} turned: {named}",
}
# What single claims on a quantity are about; on others they are about concepts.
SINGLE: dict[str, str] = {"shown_agreement": "feature"}
SO_SURE: dict[Certainty, str] = {
    SURE: ".",
    AS_CONTROLS: "; no name sets these apart from control runs.",
    OPEN: "; that is open: {reason}.",
    NOT_TESTED: "; not tested: {reason}.",
}

# Of claims that only observables of others make: so sure of such a kind, or without a count.
OTHERWISE: dict[Certainty, str] = {
    SURE: "“{kind}” holds of {subject}{since}.",
    AS_CONTROLS: "“{kind}” holds of {subject} no more than of control runs.",
    OPEN: "Whether “{kind}” holds of {subject} is open: {reason}.",
    NOT_TESTED: "Whether “{kind}” holds of {subject} is not tested: {reason}.",
}

# An example that the model came to get right: of a pair of texts, and of a question.
EXAMPLES = {
    "pair": "An example is “{right}”, not “{wrong}”.",
    "answer": "An example is “{right}”.",
}

# Of several abilities at once.
OPEN_ABILITIES = "{some} of {all} abilities are not shown above chance: {reason}."

# How a row stands, in a table, and as the heading of those that stand alike; ``{how}`` is by which
# test of its own it changed.
STANDINGS: dict[tuple[Kind, Certainty], str] = {
    (Kind.LEARNED, SURE): "learned",
    (Kind.FORGOT, SURE): "forgot",
    (Kind.BEYOND_MOTION, SURE): "changed beyond controls",
    (Kind.BEYOND_MOTION, NOT_TESTED): "changed{how}; not tested against controls",
    (Kind.BEYOND_MOTION, OPEN): "changed{how}; beyond controls is open",
    (Kind.BEYOND_MOTION, AS_CONTROLS): "changed as control runs do{how}",
    (Kind.CHANGED, OPEN): "open{how}",
}
# The same of rows that do not count.
UNCOUNTED = {
    "last": "distance to the end, 0 there by definition, not counted",
    "motion": "weight change, not counted",
}
OF_RUNS = {"every": "{} in every run", "some": "{} in some runs"}

# Why a claim is open, after a colon.
REASONS: dict[Reason, str] = {
    Reason.FEW_CHECKPOINTS: "too few checkpoints{needed}",
    Reason.FEW_CONTROLS: "too few control runs{needed}",
    Reason.NO_CONTROLS: "no control run",
    Reason.NOISE_UNKNOWN: "noise unknown",
    Reason.SLOW_NOISE: "slow noise draws such curves too",
    Reason.WITHIN_NOISE: "noise gives as much",
    Reason.SMALL: "too small to matter",
    Reason.WITHIN_CHANCE: "chance gives as much",
    Reason.ORDER: "chance gives such an order of checkpoints too",
    Reason.SHORT_MEMORY: "noise between checkpoints draws such curves too",
    Reason.REFERENCE_MEMORY: "the memory of the reference draws such curves too",
    Reason.FEW_TURNED: "chance turns as many items",
    Reason.FEW_TEXTS: "too few texts{needed}",
    Reason.FEW_CONTRASTS: "too few contrasts{needed}",
    Reason.ONE_ANSWER: "one answer is right everywhere",
    Reason.SURER: "the model is only surer of what it says",
    Reason.LESS_SURE: "the model is only less sure of what it says",
    Reason.PREFERENCES: "the model only prefers other {word}s",
    Reason.NO_GAIN: "no gain",
    Reason.WORD_COUNTS: "counts of {word}s answer as well",
    Reason.NOT_REACHED: "the loss is never below",
    Reason.BELOW_SHARE: "95 % is not reached for good",
    Reason.NOT_HELD: "it holds for a time, and not to the end",
    Reason.CONTROLS_SPREAD: "control runs differ too much",
    Reason.NOTHING_SCORED: "nothing was scored",
    Reason.NOT_COMPARABLE: "control runs cannot be compared",
    Reason.CASES_DIFFER: "seeds or layers differ",
    Reason.PROBABLE: "probable only",
    Reason.FAILED: "it could not be computed",
    Reason.EARLIER_VERSION: "the result is of an earlier version",
}
NEEDED = " ({needed} would do)"

# What nodes of one title are called: by the set of texts that they are of, or by their own name.
OF_TEXTS = {"base": "{} of the base’s texts", "other": "{} of the texts “{of}”"}
OF_NODE = "{} ({of})"

# Labels of claims that are no names of the study's own.
LABELS = {
    Reference.UNIFORM: "a uniform guess",
    Reference.FREQUENCIES: "{word} frequencies",
    Reference.BIGRAMS: "bigrams",
    Reference.OWN_FREQUENCIES: "its own {word} frequencies",
    Reference.OWN_BIGRAMS: "its own bigrams",
    "frequencies": "{word} frequencies",
    "before": "the {token} before",
    "context": "context",
    Reference.RENAMED: "renamed {word}s",
}

# By which findings of an audit the values of a step are not those of that step, and how it is said.
DAMAGES = {
    "identical": "its weights are those of another checkpoint",
    "shared-shard": "it holds a file of another checkpoint",
    "copied": "part of its weights is copied from another checkpoint",
    "branch": "it belongs to a branch that training left",
    "exchanged": "its weights and those of another checkpoint are exchanged",
    "mislabelled": "it is of another {step} than its name says",
    "altered": "its files were changed after they were written",
    "non-finite": "it holds values that are not finite",
}

# What is left of a sentence under a heading that says what it begins with.
PARTS = {
    "ends": "{Subject} went {ends}.",
    "controls": "Control runs changed by {changes}.",
    "reason": "That is open: {reason}.",
}

# How a sentence goes on that says when half of a change was over.
HALF = ". Half was there by"
