"""What a page says beside its sentences: headings, tiles, tables, and lines over texts."""

from __future__ import annotations

# The heading of a page, by what matters most.
MOST_WORDS = 12
HEADINGS = {
    "learned": "{Subject} improved by learning: {ends}",
    "learned in order": "It learned {one} first, then {others}",
    "learned together": "It learned {names}",
    "learned both": "{names} improved by learning",
    "learned several": "{count} quantities improved by learning",
    "memorised": "It memorised its training texts from {begin}",
    "memorised, open": "It memorised its training texts from {begin}; generalising is not shown",
    "generalises": "It generalises from {begin}",
    "both sets": "It memorised its training texts from {begin}, generalises from {other}",
    "overfits": "It overfits from {begin}",
    "generalises, overfits": "It generalises from {begin}, overfits from {other}",
    "memorised, overfits": "It memorised its training texts from {begin}, overfits from {other}",
    "answered": "The {token} at {label} is right in {last} of the texts",
    "place": "The loss at {label} improved by learning: {ends}",
    "forgot": "{Subject} got worse beyond controls: {ends}",
    "learned, forgot": "{name} improved; {other} got worse, both beyond controls",
    "forgot both": "{name} and {other} got worse beyond controls",
    "went": "{Subject} {verb}",
    "only": "{Subject} {verb}: {reason}",
    "fell": "{Subject} {verb}; learning is open: {reason}",
    "fell, open": "{Subject} {verb}; learning is open",
    "fell, not tested": "{Subject} {verb}; learning is not tested",
    "moved": "{Subject} {verb}; beyond controls is open: {reason}",
    "moved, open": "{Subject} {verb}; beyond controls is open",
    "moved, not tested": "{Subject} {verb}; not tested against controls",
    "change open": "Whether {subject} changed is open",
    "as controls": "{Subject} {verb} as control runs do",
    "open": "Whether {subject} improved by learning is open",
    "too few": "{count} are too few to tell a change",
    "able": "{some} of {abilities} {are} above chance",
    "gained": "it gained {names}",
    "lost": "it lost {names}",
    "none gained": "Nothing is shown to be gained or lost since the base",
    "better": "It predicts better than {label}",
    "not better": "It is not shown to predict better than {label}",
    "learned rows": "{some} of {rows} improved by learning",
    "forgot rows": "{some} of {rows} got worse beyond controls",
    "open rows": "{some} of {rows} {are} open",
    "beyond": "{some} of {rows} changed beyond controls",
    "changed": "{some} of {rows} changed; not tested against controls",
    "changed open": "{some} of {rows} changed; beyond controls is open",
    "changed, some open": "{some} of {rows} changed; {as_controls} as control runs do, {open} open",
    "changed as controls": "{some} of {rows} changed as control runs do",
    "nothing": "No change is shown",
    "untested": "Nothing was tested",
    "distances": "distances to the end",
    "only distances": "Only distances to the end were measured",
    "reproduced": "{some} of {claims} reproduce{s}",
    "learned in runs": "{subject} improved by learning{where}",
    "forgot in runs": "{subject} got worse beyond controls{where}",
    "beyond in runs": "{subject} changed beyond controls{where}",
    "changed in runs": "{subject} changed{where}",
    "runs": "{count} runs side by side",
    "one model": "One model, at one checkpoint",
}

# What a page says first where the loss, as observables are called, is left out.
LOSS = "loss"
NO_LOSS = "No loss was measured:"

# What the loss is called where training texts are measured as well.
HELD_OUT = "held-out loss"

# Under the numbers of the first screen, a few words each.
TILES = {
    "was": "{name}, was {first}",
    "of runs": "loss of {count} runs",
    "some": "{some} of {all}",
    "able": "abilities above chance",
    "turned": "concepts turned",
    "turned, not tested": "concepts turned; not tested",
    "born": "concepts born",
    "born, beside": "concepts born (controls {controls})",
    "born, comparable": "concepts born, {seen} comparable (controls {controls})",
    "named births": "named births beyond controls; {count} born",
    "alone": "; no control run",
    "have names": "named concepts",
    "have names, beside": "named concepts (controls {controls})",
    "not yet": "not yet",
    "below": "below {word} frequencies",
    "nats below": "nats below {word} frequencies",
    "nats above": "nats above {word} frequencies",
    "finding": "audit finding",
    "findings": "audit findings",
}

# In tables, and over what rests on no claim.
PAGE = {
    "sure": "How sure",
    "how sure": "How sure that is",
    "nothing": "Nothing was claimed",
    "unexpected": "Not as you expected",
    "expected": "All that you expected is so.",
    "one finding": "One finding of the audit",
    "findings": "{count} findings of the audit",
    "open": "open",
    "needs": "open: {count} {cluster}s are needed",
    "able": "above chance",
    "able since": "above chance since {step}",
    "able always": "always",
    "at the end": "at the end",
    "one unable": "1 group not shown to be above chance",
    "unable": "{count} groups not shown to be above chance",
    "leads from": "leads from {step} {at}",
    "leads never": "not first at the end",
    "no two": "no two",
    "open dot": "An open dot in ink: not shown to have moved by more than noise or chance gives.",
    "open dot, controlled": "An open dot in ink: not shown to have moved by more than noise, "
    "chance or controls give.",
}

# Of a run whose first weights are not there.
UNSEEN = "What was learned before {step} is not seen."

# The error rate of a count of rows.
BY_CHANCE = " (by chance one or more in {level} of runs)"

# Over the texts whose tokens are coloured by the step from which they are predicted for good.
DATED = (
    "By {step} {last}, {count} of {total} {tokens} {are} at least twice as likely as by frequency, "
    "for good{controls}."
)

# Of several runs, with DATED_RUN for each.
DATED_RUNS = (
    "By {step} {last}, {counts} of {total} {tokens} are at least twice as likely as by frequency, "
    "for good{controls}."
)
DATED_RUN = "{count} ({run})"
DATED_CONTROLS = " (control runs{of} {counts})"
DATED_AS_CONTROLS = "; that control runs{of} ({counts}) have fewer is not shown{for}"
# Some of several runs: those that have control runs, and those of which it is not shown.
DATED_OF = " of {runs}"
DATED_FOR = " for {runs}"

# Over the texts of the first control run and of the run, at the steps of both.
DATED_BESIDE = ("A control run", "The run at these {step}s")

# Of one model, beside what bigrams of the other texts give, or word frequencies.
BEYOND_BIGRAMS = (
    "{count} of {total} {tokens} {are} at least twice as likely as by {guess}."
)
GUESSES = {
    "bigrams": "bigrams of the other texts",
    "frequencies": "their frequencies in the other texts",
}
DATED_FROM_BASE = (
    " The base predicts {first} of these, and {lost} more that are lost by then."
)

# What one control run of each kind does, and what several do; others are trained, on texts
# without sense.
CONTROLS = {
    "turned": ("moves", "move", "as far in random directions"),
    "mirrored": ("moves", "move", "as far in random directions and back"),
    "walk": ("takes", "take", "random steps as long as the run’s"),
    "line": ("goes", "go", "straight from the first weights to the last"),
    "shuffled": ("goes", "go", "the run’s directions in another order"),
    "": ("is", "are", "trained in the same way on tokens without sense"),
}
