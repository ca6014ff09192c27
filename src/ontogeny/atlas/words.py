"""What cards say: shares, steps, reasons, and the text for a language model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..characters import shown, within
from ..report.concepts.facts import Effect, Facts, Life, Token
from ..words.catalogue import concepts as say

SPACE = "\N{OPEN BOX}"


def share(value: float) -> str:
    """Return a share as people read it.

    Examples
    --------
    >>> share(0.456), share(0.0312), share(0.0004), share(0.0), share(float("nan"))
    ('46 %', '3.1 %', '0.04 %', '0 %', 'not measured')
    """
    if not math.isfinite(value):
        return say.NOT_MEASURED
    percent = 100 * value
    percent = 0.0 if abs(percent) < 0.005 else percent
    digits = _decimals(percent, (10, 0.1)) if percent else 0
    return f"{percent:.{digits}f} %".replace("-", "−")


def _decimals(value: float, bounds: Sequence[float]) -> int:
    """Return how many decimals a number needs: one for each of the `bounds` that it is below."""
    return sum(abs(value) < bound for bound in bounds)


def visible(piece: str) -> str:
    r"""Return the piece of a token that stands alone: spaces are seen, control characters escaped.

    Examples
    --------
    >>> visible(" cat"), visible("\n"), visible(" ")
    ('␣cat', '↵', '␣')
    """
    return shown(piece).replace(" ", SPACE) or "(empty)"


def signed(value: float) -> str:
    """Return a number with its sign and two digits.

    Examples
    --------
    >>> signed(-0.0123), signed(2.345), signed(-12.3)
    ('−0.012', '+2.3', '−12')
    """
    digits = _decimals(value, (10, 1, 0.1))
    return f"{value:+.{digits}f}".replace("-", "−")


def written_beside(concept: Facts) -> str:
    """Return what a concept writes to the vocabulary beside random directions."""
    limit = concept.written_random
    words = say.WRITES.format(limit=signed(limit))
    above = concept.written_up and concept.written_up[0].value > limit
    return words if above else words + say.WRITES_NOTHING


def effect_words(effect: Effect) -> str:
    """Return what the removal of a concept costs, in words.

    Examples
    --------
    >>> from ontogeny.report.concepts.facts import Effect
    >>> effect_words(Effect(0.0123, -0.002, 0.002, "matters"))
    'to first order the loss rises by +0.0123 nats per predicted token; ... +0.002; matters'
    """
    words = say.REMOVAL.format(cost=_nats(effect.first_order))
    low, high = effect.random_low, effect.random_high
    if math.isfinite(low) and math.isfinite(high):
        words += say.REMOVAL_BESIDE.format(low=_nats(low), high=_nats(high))
    return f"{words}; {effect.verdict}" if effect.verdict else words


def _nats(value: float) -> str:
    return f"{value:+.3g}".replace("-", "−")


def kind_words(kind: str, born: int | None) -> str:
    """Return the kind of a life in a table: a birth that did not stay readable is none.

    Examples
    --------
    >>> kind_words("born", 20), kind_words("born", None), kind_words("grows", None)
    ('born', 'birth not confirmed', 'grows')
    """
    return say.UNCONFIRMED if kind == "born" and born is None else kind


def life_words(life: Life, unit: str = "step") -> str:
    """Return a life in words; `unit` is what its steps count.

    Examples
    --------
    >>> from ontogeny.report.concepts.facts import Life
    >>> life_words(Life("born", 162, 81, 243, settled=405))
    'born by step 162 (after step 81, by step 243 at the latest); settled from step 405'
    """
    words = say.LIVES.get(life.kind, life.kind)
    if life.kind == "born" and life.born is not None:
        words = say.BORN_BY.format(
            unit=unit, born=f"{life.born:,}", between=_between(life, unit)
        )
    if life.gone is not None:
        return words + say.GONE_FROM.format(unit=unit, gone=f"{life.gone:,}")
    if life.settled is None:
        return words
    return words + say.SETTLED_FROM.format(unit=unit, settled=f"{life.settled:,}")


def _between(life: Life, unit: str) -> str:
    """Return between which steps a concept was born, in brackets."""
    born, after, before = life.born, life.born_after, life.born_before
    if born is None or after is None or before is None:
        return ""
    latest = say.AT_THE_LATEST.format(unit=unit, before=f"{before:,}")
    latest = latest if before > born else ""
    return say.BORN_BETWEEN.format(unit=unit, after=f"{after:,}", latest=latest)


def code_facts(concept: Facts) -> list[tuple[str, str]]:
    """Return on what a concept fires and what explains its code, each under its heading."""
    facts = []
    if math.isfinite(concept.firing):
        tokens = say.OF_TOKENS.format(share=share(concept.firing))
        facts.append(("fires on", tokens))
    parts = [f"{name} {share(part)}" for name, part in concept.enrichment.items()]
    if parts:
        facts.append(("explained by", ", ".join(parts)))
    return facts


def effect_facts(concept: Facts) -> list[tuple[str, str]]:
    """Return what a concept writes, what is near it and what it matters, under headings."""
    facts = []
    for verb, tokens in (
        ("raises", concept.written_up),
        ("lowers", concept.written_down),
    ):
        logits = [f"{visible(token.piece)} {signed(token.value)}" for token in tokens]
        if logits:
            facts.append((verb, "  ".join(logits)))
    if facts and math.isfinite(concept.written_random):
        facts.append(("", written_beside(concept)))
    near = [
        f"{other.index} {shown(other.name or say.NOT_NAMED)} {signed(other.cosine)}"
        for other in concept.neighbours
    ]
    if near:
        facts.append(("near", "; ".join(near)))
    if concept.effect is not None:
        facts.append(("removal", effect_words(concept.effect)))
    return facts


# Columns of a table of concepts.
_TOKENS = 5
HEADS = ("layer", "index", "name", "tokens", "life", "born")


def row_cells(row: Mapping[str, Any]) -> list[str]:
    """Return a row of such a table."""
    born = "" if row["born"] is None else f"{row['born']:,}"
    name = shown(row["name"]) + (" *" if row["labelled"] else "")
    kind = kind_words(row["kind"], row["born"])
    return [row["layer"], str(row["index"]), name, row["tokens"], kind, born]


def where(concept: Facts) -> str:
    """Return where a concept stands in its result."""
    step = "" if concept.step is None else f" · {concept.unit} {concept.step:,}"
    return f"{concept.node} · {concept.layer} · {concept.index}{step}"


def measured_words(concept: Facts) -> str:
    """Return how sharp a concept is beside the untrained model's, in numbers."""
    text = say.SHARPNESS.format(share=share(concept.concentration))
    limit = concept.concentration_limit
    if not math.isfinite(limit):
        return text
    return text + say.SHARPNESS_BESIDE.format(limit=share(limit))


def reason_words(concentration: float, limit: float, p: float, because: str) -> str:
    """Return why a concept has no name.

    Examples
    --------
    >>> reason_words(0.12, 0.28, 0.4, "")
    'its three strongest tokens carry 12 % of its squared code; a name takes over 28 %'
    >>> reason_words(0.12, float("nan"), float("nan"), "there is no untrained model")
    'there is no untrained model'
    """
    if because:
        return because
    if not math.isfinite(concentration):
        return say.NO_SHARPNESS
    if not math.isfinite(limit):
        return say.NO_UNTRAINED
    words = say.NOT_BORNE_OUT if p <= 0.05 else say.AS_PERMUTED
    words = say.TOO_FLAT if concentration <= limit else words
    return words.format(share=share(concentration), limit=share(limit), p=f"{p:.2g}")


def tokens_words(tokens: tuple[Token, ...]) -> str:
    """Return the strongest tokens with their shares, in one line."""
    return "  ".join(f"{visible(t.piece)} {share(t.value)}" for t in tokens[:_TOKENS])


def prompt_of(concept: Facts) -> str:
    """Return the text that asks a language model for a description of a concept."""
    lines = [
        "Below are places of texts at which one feature of a language model is active.",
        "Every line is one place. Each token stands in brackets with the strength of the feature,",
        "from 0 to 9. Describe in at most ten words what the feature responds to. If there is no",
        "common pattern, say so.",
        "",
    ]
    for context in concept.shared_contexts or concept.contexts:
        levels = [round(9 * min(max(code, 0.0), 1.0)) for code in context.codes]
        pairs = zip(context.tokens, levels, strict=True)
        lines.append("".join(f"[{within(token)}|{level}]" for token, level in pairs))
    if concept.tokens:
        lines += ["", "Strongest tokens: " + tokens_words(concept.tokens)]
    return "\n".join(lines) + "\n"
