"""What is said first of concepts: how many have a name, beside control runs, and which."""

from __future__ import annotations

from dataclasses import replace

import xarray as xr

from ...words.catalogue import concepts as say
from ...words.catalogue.learned_concepts import BIRTHS, NO_BIRTH_BEYOND
from ...words.content import Content
from ...words.formats import joined, plural, sentence_start, value_range
from ...words.story import Line
from ...words.voice import Voice
from .learned import born_beyond_controls, found_words, is_learned
from .lives import Concepts
from .nodes import asked_for, failure, without_lives

MOST_NAMES = 3


def appeared(content: Content, concepts: Concepts | None) -> Line | None:
    """Return how many concepts have a name, beside control runs; None without concepts."""
    if concepts is None and (alone := without_lives(content)) is not None:
        return _beyond_token(alone.dataset, alone.id, content.voice)
    if concepts is None:
        reason = failure(content).rstrip(".") if asked_for(content) else ""
        return Line(say.UNKNOWN, f"{reason}.", "#verdict") if reason else None
    if is_learned(concepts.data):
        line = _beyond_token(concepts.data, concepts.node.id, content.voice)
        ruled = _ruled(concepts, content.voice.unit)
        return replace(line, text=" ".join(filter(None, [line.text, ruled])))
    total = plural(len(concepts.every), "concept")
    if not concepts.every:
        lead = say.NONE_READ.format(latents=f"{concepts.latents:,}")
        return Line(lead, link=f"#{concepts.node.id}")
    if not concepts.named:
        why = f"{concepts.unnamed.rstrip('.')}." if concepts.unnamed else ""
        end = ":" if why else "."
        lead = say.NONE_NAMED.format(concepts=sentence_start(total))
        return Line(f"{lead}{end}", why, "#atlas")
    named = say.NAMED[1 if concepts.named == 1 else 2]
    lead = named.format(count=f"{concepts.named:,}", concepts=total)
    counts = [count for count, _ in concepts.named_controls]
    is_sure = bool(counts) and concepts.named > max(counts)
    beside = _in_controls(concepts)
    return Line(f"{lead}{beside}.", _listed(concepts), "#atlas", sure=is_sure)


def _beyond_token(data: xr.Dataset, section: str, voice: Voice) -> Line:
    """Return what is found beyond the token; without a concept there is no atlas."""
    link = "#atlas" if data["again"].notnull().any() else f"#{section}"
    first, *further = map(voice.fill, found_words(data))
    text = f"{sentence_start('; '.join(further))}." if further else ""
    # A count of what both halves of the texts find is one; births and names are held against controls.
    is_sure = "n_born" not in data or bool(born_beyond_controls(data))
    return Line(f"{first}.", text, link, sure=is_sure)


def _ruled(concepts: Concepts, unit: str) -> str:
    """Return the best names, what controls can show of births, and what these are worth.

    Names of births stand first. Names hold quotation marks of their own.
    """
    born_first = sorted(concepts.with_name, key=lambda concept: concept.kind != "born")
    names = list(dict.fromkeys(concept.name for concept in born_first))
    of_births = any(concept.kind == "born" for concept in born_first)
    words = say.SUCH_AS if of_births else say.NAMES_ARE[1 if len(names) == 1 else 2]
    such = words.format(names="; ".join(names[:MOST_NAMES])) if names else ""
    seen = ""
    if concepts.born_controls and concepts.born_seen < len(concepts.born):
        read = plural(concepts.control_steps, unit)
        seen = say.BIRTHS_SEEN.format(read=read, count=f"{concepts.born_seen:,}")
    # Where some have one, the line counts them apart from the others.
    cautions = {None: BIRTHS, 0: NO_BIRTH_BEYOND} if concepts.born else {}
    caution = cautions.get(born_beyond_controls(concepts.data), "")
    return " ".join(filter(None, [such, seen, caution]))


def _in_controls(concepts: Concepts) -> str:
    counts = [count for count, _ in concepts.named_controls]
    if not counts:
        return say.NO_CONTROL_READ
    totals = [total for _, total in concepts.named_controls if total is not None]
    of = f" of {value_range(totals, '{:,.0f}'.format)}" if totals else ""
    return say.CONTROLS.format(counts=f"{value_range(counts, '{:,.0f}'.format)}{of}")


def _listed(concepts: Concepts) -> str:
    """Return the first names, each once: classes of words before tokens."""
    names = list(dict.fromkeys(concept.name for concept in concepts.with_name))
    quoted = joined([f"“{name}”" for name in names[:MOST_NAMES]])
    whole = say.ALL_NAMES[1 if len(names) == 1 else 2]
    return (say.AMONG if len(names) > MOST_NAMES else whole).format(names=quoted)
