"""What learned concepts declare: variables, quantities and the words of their section."""

from __future__ import annotations

from ...figures import Section
from ...observables import control_matches
from ...observables.pieces import SHOWN
from ...quantities import Quantity
from ...words.names import Names

COUNTS: Names = {
    "n_again": (
        "components beyond the {token} that both halves of the texts find",
        "components",
    ),
    "n_learned": ("components of the learned part that both halves find", "components"),
    "n_untrained": (
        "components beyond the {token} of an untrained model",
        "components",
    ),
    "n_named": ("components with a name", "components"),
}
LIVES: Names = {
    "concept_kind": ("kind of life", ""),
    "concept_born": ("step of the birth", "steps"),
    "concept_born_after": ("last step that is surely before the birth", "steps"),
    "concept_born_before": ("first step that is surely not before the birth", "steps"),
    "concept_born_share": (
        "share of refits that say born, of those made when it was there",
        "1",
    ),
    "concept_gone": ("step from which on it is absent", "steps"),
    "concept_turned": (
        "cosine of the decoders where it is first there and last there",
        "1",
    ),
    "n_born": ("components born during the run", "components"),
    "n_born_low": ("fewest births of a refit", "components"),
    "n_born_high": ("most births of a refit", "components"),
    "life": ("strength as a share of its peak", "1"),
}
NAMES: Names = {
    "name": ("name: what its strong places share", ""),
    "rule": ("rule that the name was made of, also where it is not shown", ""),
    "words": ("words that are most typical of its strong places", ""),
    "name_phi": (
        "correlation of the name's rule with the strong places, on other texts",
        "1",
    ),
    "named_phi": ("the same of names that are shown; 0 without one", "1"),
    "named_about": ("what a shown name is about, by number; -1 without one", "1"),
    "name_limit": ("95th percentile of it among components of an untrained model", "1"),
    "name_p": (
        "p-value beside places shuffled within their texts, corrected (Holm)",
        "1",
    ),
    "name_auc": (
        "how well the name's rule tells strong places from others, on other texts",
        "1",
    ),
    "name_auc_low": ("lower end of it", "1"),
    "name_auc_high": ("upper end of it", "1"),
    "name_top": (
        "share of the strongest fifth of its strong places at which the rule holds, on other texts",
        "1",
    ),
    "name_middle": ("the same of their three middle fifths", "1"),
    "name_other": ("share of all other places at which the rule holds", "1"),
}
CONTEXTS: Names = {
    "context_id": ("token ids of the contexts; -1 beyond the text", ""),
    "context_code": ("code, as a share of the largest; -1 where not sampled", "1"),
    "context_text": ("text of the context", ""),
    "context_place": ("place in its text", "tokens"),
    "histogram": ("tokens by their code", "tokens"),
    "piece_text": ("characters of a token", ""),
    **SHOWN,
    "shown_fires": ("1 where it is strong; -1 where not sampled", ""),
    "fit_id": ("digest of the codes: which fit the concepts are of", ""),
    "code_sketch": ("by what a concept is known again in another fit", "1"),
}
TOKENS: Names = {
    "frequent_id": ("token id", ""),
    "token_part": ("share of the layer that the mean of a token is", "1"),
    "token_text": ("token", ""),
    "token_first": ("share at the first {checkpoint}", "1"),
    "token_last": ("share at the last {checkpoint}", "1"),
    "token_half": ("{step} from which on it has half of its last share", "{step}s"),
}
DIRECTIONS: Names = {
    "decoder": ("what one unit of a code writes", "activation units"),
    "readout": ("weights on scaled features that read a code", "1"),
    "raw_agreement": (
        "correlation of a code with its read-out from whole activations",
        "1",
    ),
    "mean": ("mean activation", "activation units"),
    "scale": ("standard deviation of what the token leaves", "activation units"),
}
FOUND: Names = {
    "again": (
        "correlation with the nearest component of either half, the smaller one",
        "1",
    ),
    "grown_readability": (
        "readability of the codes where the first checkpoint has only grown",
        "1",
    ),
    "untrained_readability": (
        "readability of the codes from an untrained model, also grown where a run begins with it",
        "1",
    ),
    "sharpness": ("excess kurtosis of the codes", "1"),
    "in_learned": ("correlation with the nearest component of the learned part", "1"),
    "found_at": ("step whose activations it was found in", "steps"),
    "fit_step": ("step whose activations a fit was made to", "steps"),
    "found_in": ("part of the activations that it was found in", ""),
    "first_step": (
        "step that the learned part is taken against; -1: an untrained model",
        "steps",
    ),
    "firing": ("share of the tokens at which it is strong", "1"),
}
VARIABLES: Names = {
    **COUNTS,
    **LIVES,
    **NAMES,
    **CONTEXTS,
    **TOKENS,
    **DIRECTIONS,
    **FOUND,
    **control_matches.VARIABLES,
    "readability": ("correlation of the codes with a read-out of this checkpoint", "1"),
    "strength": ("root of the share of the variance that a component writes", "1"),
    "refit_readability": ("readability of the nearest component of a refit", "1"),
    "refit_strength": ("strength of the nearest component of a refit", "1"),
    "least_readability": ("readability from which on a component is there", "1"),
    "fit": ("fit that the codes are of", ""),
    "refit": ("fit to a half of the texts, or to an earlier step", ""),
    "band": ("from where on the range of codes a context is", ""),
    "bin": ("lower end of a bin of codes", "standard deviations"),
}
QUANTITIES = (
    Quantity(
        "token_share",
        "current token’s share of the layer",
        symbol="1 − ‖A − E[A | token]‖² / ‖A‖²",
        rows="{layer} · share of the token",
        caption="Variance that the mean activation of the token in other texts explains.",
    ),
    Quantity(
        "learned_share",
        "learned share of the layer",
        symbol="‖A − E[A | token] − W A₀‖² / ‖A‖²",
        rows="{layer} · learned share",
        minimum=0.0,
        optional=True,
        caption="Variance that neither the token nor a linear map of the first checkpoint predicts "
        "on other texts; all that the token leaves where such a map predicts worse than none, as with "
        "fewer tokens than features. At the first checkpoint it is nothing by construction, and left "
        "out.",
    ),
)
SECTION = Section(
    title="Concepts that training made",
    definition="Of every activation the mean of its token in other texts is taken off. Concepts "
    "are independent components of what is left at the end, which fits to both halves of the "
    "texts find. One is born where it cannot be read from any checkpoint before its rise, in "
    "every fit.",
    symbol="Aₜ = E[Aₜ | token] + W A₀ + learned part",
    null="Control runs move as far and learn nothing: what they give by the same rules stands "
    "beside. A name beats 95 % of those of an untrained model, which cannot tell its code.",
    care="That the learned part cannot be read at the first checkpoint is so by construction. A "
    "birth says that the layer comes to write something, not that the model uses it.",
    source="Tokenised autoencoders, crosscoders; by exact methods",
)
