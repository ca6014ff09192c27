"""What the page's scripts say of results, at the slider's step or of a card: templates alone.

A script fills ``{names}`` with numbers; marks of `ontogeny.words.voice` are filled before.
"""

from __future__ import annotations

SCRIPTED = {
    # any figure
    "not measured": "not measured",
    "not drawn": "{left} not measured, not drawn",
    "measured before": ", the last one measured before {at}",
    "in all lines": "{value} in all {count} lines",
    "value outside": "● outside every null   ○ not",
    "interval outside": "● interval outside every null   ○ not",
    "no two": "no two",
    # dated texts
    "given": "not predicted",
    "never": "not predicted by the end",
    "lost": "predicted by the base, not at the end",
    "late": "only from {step} {at} on: fewer than two {checkpoint}s follow",
    "good": "predicted for good from {step} {at}",
    "leads": "its first answer at the end",
    "beyond": "costs {loss} nats; by {guess} {cost}",
    "dated runs": "By {step} {at}, of {total} {tokens} at least twice as likely as by frequency, "
    "for good: {counts}.",
    "dated": "By {step} {at}, {count} of {total} {tokens} are at least twice as likely as by "
    "frequency, for good.",
    # figures of several runs
    "difference": "difference",
    "difference in": "difference in {unit}",
    # a token of the example text
    "not kept": "Not kept for this text.",
    "not measured here": "Not measured at this {step}.",
    "no course": "No course: {why}",
    "course": "Course of this {token} over the {checkpoint}s, first {first}, last {last}",
    "ends": "First {first}, last {last}.",
    "dotted": "Dotted: {value} {what}.",
    "beside": "Beside it: {value} {what}.",
    "likeliest": "The right {token} is the likeliest.",
    "not likeliest": "The right {token} is not the likeliest.",
    "leads never": "The right {token} does not lead at the last {step}.",
    "leads always": "The right {token} leads at every {step}.",
    "leads last": "The right {token} leads at the last {step} only.",
    "leads from": "The right {token} leads from {step} {at} on{between}.",
    "not yet": " (not yet at {at})",
    # examples of abilities
    "none turned": "No example turned.",
    "none kept turned": "None of the examples that are kept turned.",
    "not compared there": "Not measured both there and before.",
    "turned right": "{count} to right since {step} {at}{kept}{more}",
    "turned wrong": "{count} to wrong since {step} {at}{kept}{more}",
    "kept": ", of {kept} of {all} examples",
    "one each": "; one of each group",
    "lucky": "Examples of {count} groups are left out: not shown to be above chance at either end, "
    "they may turn by luck.",
    "lucky one": "Examples of one group are left out: not shown to be above chance at either end, "
    "they may turn by luck.",
    # where a curve turns
    "lowest": "{Whose} was lowest, {value}, at {step} {at}, and rose to {last} by the last "
    "{checkpoint}{also}.",
    "highest": "{Whose} was highest, {value}, at {step} {at}, and fell to {last} by the last "
    "{checkpoint}{also}.",
    "other turns": "; the other line turns as well",
    "others turn": "; {some} of {all} other lines turn as well",
    # a row of the chart at a step
    "no larger": "no larger than chance and noise would give",
    "other way": "{percent} % beyond its first value, in the other direction",
    "overshoot": "{percent} % beyond its last value",
    "on the way": "{percent} % of the way",
    # lives of concepts
    "born by": "born by {step} {at}{between}",
    "of peak": "{percent} % of its peak",
    "unreadable": "cannot be read from this {checkpoint} alone",
    "spark": "Strength of {name} over the {checkpoint}s; {birth}; {strength} at the last "
    "{checkpoint}",
    "layer mean": "Mean strength in {layer} at the last {checkpoint}: {percent} of the peak{beside}",
    "control means": "; control runs {range}",
    "life lines": "Life lines of concepts",
    "life lines unnamed": "Life lines of concepts, none named",
    # the atlas
    "best first": "best names first",
    "strongest first": "strongest first",
    "sharpest first": "sharpest first",
    "of layers": " in the layers that are chosen above",
    "concepts found": "{found} of {all} concepts{layers}.",
    "no concept found": "None of {all} concepts fits{layers}.",
    "folded": "{count} are {without}",
    "folded one": "{count} is {without}",
    "more folded": "{count} more are {without}",
    "more folded one": "{count} more is {without}",
    "show some": "Show {some} more of {left}",
    "show more": "Show {left} more",
    # a card
    "by a person": "named by a person",
    "not named": "not named",
    "not readable": ", not readable",
    "no contexts": "The result holds no contexts.",
    "of squares": "{percent} % of its squared activation",
    "settled from": "settled from",
    "fitted to": "fitted to {step}",
    "since first": "since the first checkpoint",
    "followed from": "can be followed from",
    "strongest": "Where it is strongest",
    "strongest at": "Strongest at {step} {at}",
    "strongest nearest": "Strongest at {step} {at}, the nearest that is kept",
    "strongest fitted": "Strongest at {step} {at}, which it was fitted to",
    "strongest shared": "Strongest in the code that all {point}s share",
    "histogram": "{Token}s by activation, from {low} to {high} standard deviations",
    "histogram bar": "{count} {token}s from {from} standard deviations on",
    "direction": "Its direction, in Python:",
    "more": "more",
    "more of it": "more contexts and numbers",
    "gone": "below a quarter of its peak from",
    "refits": "refits that say born",
    "unsettled": "not by the last {checkpoint}",
    "three tokens": "{percent} of its activation on three {token}s",
    "three untrained": "Three {token}s of the untrained model’s concepts carry at most {percent}, for "
    "95 % of them",
    "fires": "Fires on {percent} of the {token}s{explained}",
    "explains": "; the {what} explains {percent} of its code",
    "found again": "Found again by a fit to {by}{apart}",
    "by half": "either half of the texts with a correlation of {value}",
    "by seed": "another seed with a correlation of {value}",
    "apart": ": it stands apart",
    "adds": "Adds to the logits ",
    "adds at end": "Adds to the logits at the last {checkpoint} ",
    "takes": "and takes from ",
    "by chance": "(no more than chance) ",
    "random logits": "(95 % of random directions: at most {most} on either side)",
    "nearest": "Nearest directions, with their cosine: ",
    "read lost": "It can first be read at {step} {at}, but not at the last {checkpoint}",
    "read from": "It can be read from {step} {at} on{weak}",
    "read twice": "It can first be read at {step} {at}, and at every {checkpoint} from {stays} "
    "on{weak}",
    "weak": ", at first too weak to count as born",
    "removal": "Its removal at {step} {at} costs {cost} nats a {token}{against}: {verdict}",
    "random removal": "random directions at most {cost}",
    "other removal": "on the {token}s of other concepts at most {cost}",
    "matters": "it matters",
    "not surely": "not surely more than these",
    # the card of controls
    "controls": "What controls give · {layer}",
    "untrained": "Control: the untrained model",
    "untrained finds": "The same fit on the untrained model finds “concepts” too: {count} of them. "
    "{most}A concept that is no sharper has no name.",
    "untrained most": "95 % put at most {percent} of their activation on three {token}s. ",
    "named": "Named in this layer: {own}. In control runs: {counts}.",
    "strip": "Share on three {token}s: {own} concepts of this run, {untrained} of the untrained model",
}
