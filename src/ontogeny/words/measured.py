"""What is said of numbers that observables claim beside their rows: a template for each variable.

Beside the phrases of `ontogeny.words.catalogue.sentences` a template may ask for these
(`ontogeny.words.measured_phrases`):

=================  =======================================================================
``{number}``       the number in its units; ``{number_first}`` at the first step
``{whole}``        of how many it is a part; ``{of_whole}`` the same behind the number, if there
``{interval}``     the number, with the range of several in brackets
``{chance}``       what chance or a reference gives
``{against}``      in brackets: all that stands beside it, by name
``{other}``        the name of what stands beside it
``{own}``          the value that belongs to what stands beside it
``{parts}``        behind a colon: what it counts; ``{list}`` the same as it was written
``{at}``           at which step it is so, with its interval
``{each}``         of several: each label with its number and what chance gives
=================  =======================================================================
"""

from __future__ import annotations

from ..claims import Certainty

MEASURED: dict[str, str] = {
    # weight matrices
    "distance_moved": "{number} of {whole} weight matrices never moved.",
    "relative_change": "The weights of {label} moved farthest, by {number} of their first "
    "norm{against}.",
    "last_rank": "The median change of a matrix has an effective rank of {number}.",
    "last_leading": "{number} of a median change lies in the first matrix’s leading directions "
    "(by chance {chance}).",
    "last_intruders": "{number} of {whole} matrices that moved {has|have} intruder dimensions at "
    "the end.",
    # activations
    "outliers": "Outlying tokens of {layer}: {number}; the participation ratio is {own} with "
    "them, {chance} without.",
    "without_outliers": "Outlying tokens of {layer}, left out: {whole}; the participation ratio "
    "is {number}.",
    # labels of texts
    "of_class": "{number} of class {label} get their label at the last {checkpoint}.",
    "accuracy_exchanged": "With labels exchanged among the texts, {interval} would be right at "
    "the last {checkpoint}.",
    "accuracy_p_gain": "{number} of exchanges gain as much as the labels themselves.",
    "accuracy_trained_start": "The first {checkpoint} knows these labels already.",
    # labels of words
    "n_words": "The probe reads {number} {word|words} with {whole} labels.",
    "words_left_out": "Left out: {list}.",
    # predictions and heads
    "closest_step": "The predictions are closest to {label}{at}: {number} apart.",
    "head_score": "{number} of {whole} heads {scores|score} higher in {label} than any without "
    "repetition ({chance} at most).",
    "strongest_head": "The strongest {label} head is {other} of {layer}: {number} (by chance "
    "{chance}).",
    "shared_first_answer": "{number} of {whole} gaps {shares|share} one first answer{at}.",
    "right_leads_from": "The right answer leads in {number} of {whole} gaps in the end{against}.",
    "class_information": "It knows of a {token}’s class: {each}.",
    "exchanged": "The random draws give {number} of these {token}s another class.",
    "reached_step": "Half of {label} is there{at}, before half of {other} ({chance}).",
    "left_out": "{number} of the examples {was|were} left out: {list}.",
    "p_chance": "{number} of {whole} abilities {is|are} above chance in every run.",
    "above_chance": "{number} of {whole} abilities {is|are} above chance in some runs only{parts}.",
    "above_from": "“{label}” left chance in every run before others{parts}.",
    # concepts
    "named": "{number} of {whole} concepts of {layer} got a name{against}{parts}.",
    "stands_in_because": "Names are judged beside this model with shuffled weights: {label}.",
    "found_again": "Concepts are found again: {each}.",
    "code_likeness": "Its codes repeat: half of them correlate by {number} or more with another "
    "one.",
    "converged": "{number} of {whole} fits did not converge.",
    "verdict": "{number} of {whole} concepts removed from {layer} {matters|matter}: the loss "
    "rises by more than by chance{against}.",
    "depends": "The loss does not depend on {layer} at these tokens; nothing can be said of its "
    "concepts.",
    "line_first": "{number} of {whole} concepts can be read from the first layer on; half of "
    "them by layer {chance}.",
    "readable_concept": "The count of concepts that some layer shows went from {number_first} "
    "to {number}.",
    "n_earlier": "{number} of {whole} concepts came to be readable in earlier "
    "layers{against}{parts}.",
    "n_later": "{number} of {whole} concepts came to be readable in later layers{against}{parts}.",
    "n_concepts": "{number} of {whole} latents of {layer} {is|are} concepts, found in both "
    "halves{against}.",
    "n_apart": "{number} more {latent|latents} of {layer} can be read, but not found by one half.",
    "n_steady": "{number} of {whole} concepts of {layer} {keeps|keep} half of {its|their} peak "
    "at every {checkpoint}.",
    "n_born": "{number} of {whole} concepts of {layer} {was|were} born{against}{at}{parts}.",
    "n_gone": "{number} of {whole} concepts of {layer} fell below a quarter of {its|their} peak.",
    "explained": "The codes of {layer} are stale: they explain {number} of the variance "
    "({chance} where fitted){at}.",
    "tied": "The matrix {layer} is the same as {label}, and is counted once.",
    "frequency": "One concept of {layer} follows the frequency of tokens, by {number} (median "
    "concept {chance}).",
    # several runs
    "began_at": "{label} starts from {other}{at}.",
    "half_step": "Between runs the order in which measures changed correlates by {interval}, "
    "over {whole} measures or more.",
}

# Of those that are not sure.
UNSURE: dict[str, dict[Certainty, str]] = {
    "accuracy_p_gain": {
        Certainty.OPEN: "{number} of exchanges gain as much as the labels; two control runs or "
        "more would show the luck in it."
    },
    "accuracy_trained_start": {
        Certainty.OPEN: "The first {checkpoint} knows these labels already; pairs of mirrored "
        "control runs judge the gain: --set controls.kind=mirrored --set controls.count=6."
    },
    "head_score": {
        Certainty.OPEN: "No head is shown to score higher in {label} than without repetition "
        "({chance} at most)."
    },
    "reached_step": {Certainty.OPEN: "The order of all statistics is open: {reason}."},
    "named": {
        Certainty.AS_CONTROLS: "{number} of {whole} concepts of {layer} got a name{against}, no "
        "more than controls.",
        Certainty.OPEN: "{number} of {whole} concepts of {layer} got a name{against}, not shown to "
        "be more than controls.",
        Certainty.NOT_TESTED: "{number} of {whole} concepts of {layer} got a name{parts}; not "
        "tested: {reason}.",
    },
    "unnamed_because": {
        Certainty.NOT_TESTED: "No concept of {layer} can get a name: {label}."
    },
    "n_concepts": {
        Certainty.AS_CONTROLS: "{number} of {whole} latents of {layer} {is|are} concepts, no more "
        "than chance gives{against}.",
        Certainty.NOT_TESTED: "Lives of concepts are not tested: {reason}.",
    },
    "n_born": {
        Certainty.AS_CONTROLS: "{number} of {whole} concepts of {layer} {was|were} born{at}, no more "
        "than chance gives{against}."
    },
    "began_at": {
        Certainty.NOT_TESTED: "Whether {label} starts from {other} is open: no {checkpoint} of "
        "it holds its first weights."
    },
}
