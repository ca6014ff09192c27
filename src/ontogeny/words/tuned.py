"""What a fine-tuned model can do that its base could not, and what it lost."""

from __future__ import annotations

import math
from collections.abc import Sequence

import xarray as xr

from .abilities import Ability, abilities_of, has_abilities, on_these_sentence
from .content import Content, Node
from .controls import began_trained
from .formats import control_runs, joined, plural, sentence_start, value_range
from .loss import Sentence
from .order import owner
from .row_words import direction, values_words
from .rows import Row
from .since_base import WHY, forgotten, why

_NAMED = 2
MOVED = ("new", "lost", "turned")
ENOUGH = 6  # mirrored control runs, which are three pairs


def of_tuned(content: Content) -> tuple[str, Sequence[Sentence]] | None:
    """Return the heading and sentences on a run that began at a base; None of any other.

    A loss on the texts of the study says how well the model predicts these, and forgetting shows in
    abilities of the base; where none was tested, that is said.
    """
    if not content.based or len(content.steps) < 2 or content.headline:
        return None
    abilities = abilities_of(content.nodes)
    others = [node for node in content.nodes if not has_abilities(node.dataset)]
    worse = [_worse_words(node, row) for node in others for row in _worse(node)]
    unsure = [
        _unsure(content, node, row)
        for node in others
        for row in node.rows
        if row.can_learn and not row.learned and (row.changed or (row.moved and why(node.dataset)))
    ]
    gained, lost = ([a for a in abilities if getattr(a, k)] for k in ("gained", "lost"))
    by_words = [ability for ability in gained if ability.by_words]
    gained = [ability for ability in gained if not ability.by_words]
    better = [_course(row) for node in others for row in node.rows if row.learned]
    ups = [*_some(better, "numbers got better"), *_of("it gained", gained)]
    no_more = ", not shown to do so better than n-grams of the texts"
    ups += [f"{text}{no_more}" for text in _of("it answers", by_words)]
    alone = [ability for ability in abilities if ability.on_these]
    ups += _on_these("more", [ability for ability in alone if ability.rose])
    downs = [*_of("it lost", lost, content.steps), *_some(worse, "numbers got worse")]
    downs += _on_these("fewer", [ability for ability in alone if not ability.rose])
    heading = sentence_start("; but ".join(filter(None, map(joined, (ups, downs)))))
    if not heading:
        heading = f"Nothing is shown to be gained{' or lost' if abilities else ''} since the base"
        heading += unsure[0] if unsure else ""  # one that changed for the worse is above
    elif not downs and abilities:
        heading = f"{heading}; no ability is shown to be lost"
    of_concepts = [
        Sentence("Concepts:", concept_changes_text(node.dataset))
        for node in content.nodes
        if "concepts_since" in node.dataset
    ]
    forgot = any(row.lost for row in content.rows)
    sentences = [_beside_the_base(abilities, gained, lost, by_words, forgot=forgot), *of_concepts]
    return heading + content.doubted, sentences


def concept_changes_text(data: xr.Dataset) -> str:
    """Say how many concepts are kept, turned, lost and new at the end, beside control runs.

    Of a node with ``concepts_since(step, layer, change)``, over all its layers.
    """
    n = counts_at_end(data)
    if not n:
        return "its concepts at two checkpoints are not known."
    of = f"of {plural(sum(n.values()), 'concept')}"
    since = f"since {{step}} {int(data.concepts_since.dropna('step', how='all').step[0]):,}"
    text = f"{of}, {joined([f'{n[kind]:,} {kind}' for kind in n])} {since}"
    if "concepts_since_control" in data and data.concepts_since_control.notnull().any():
        ends = _at_end(data.concepts_since_control)
        runs = (value_range(ends.sel(change=k).values, "{:,.0f}".format) + f" {k}" for k in MOVED)
        text += f" ({control_runs(ends.sizes['run'])}: {', '.join(runs)})"
    for kind in (kind for kind in MOVED if n[kind]):
        names = data.called.values[data.change_kind.values == kind].tolist()
        text += f". {sentence_start(kind)}: {joined(_quoted(names))}"
    return f"{text}."


def counts_at_end(data: xr.Dataset) -> dict[str, int]:
    """Return how many concepts are kept, turned, lost, new and unclear at the end.

    Nothing where they are not known at two checkpoints.
    """
    lives = data.concepts_since.dropna("step", how="all")
    return {str(n.change.item()): int(n) for n in _at_end(lives)} if lives.sizes["step"] > 1 else {}


def _at_end(counts: xr.DataArray) -> xr.DataArray:
    """Return counts over all layers at the last step at which any of them is known."""
    return counts.dropna("step", how="all").isel(step=-1).sum("layer", min_count=1)


def _quoted(names: Sequence[str], what: str = "") -> list[str]:
    """Return names in quotation marks; of many the first, and how many more there are."""
    more = len(names) - _NAMED
    return [f"“{name}”" for name in names[:_NAMED]] + [f"{more:,} more{what}"] * (more > 0)


def _worse(node: Node) -> list[Row]:
    """Return the rows of performance that changed for the worse."""
    if "better_sign" not in node.dataset:
        return []
    worse = {1.0: "falls", -1.0: "rises"}
    pairs = zip(node.rows, node.dataset.better_sign.values.tolist(), strict=True)
    return [row for row, sign in pairs if row.changed and direction(row) == worse.get(sign)]


def _worse_words(node: Node, row: Row) -> str:
    """Say what got worse, and whether that was forgotten or why it is not shown to be."""
    if row.lost:
        return f"it forgot {forgotten(node.dataset)}: {_course(row)}"
    reason = WHY.get(why(node.dataset), "") if node.role == "track" else ""
    return f"{_course(row)} {reason}".rstrip()


def _unsure(content: Content, node: Node, row: Row) -> str:
    reason = WHY.get(why(node.dataset), "") if node.role == "track" else ""
    return f"; {_course(row)} {reason}" if reason else f"; {_course(row)}, and {_missing(content)}"


def _missing(content: Content) -> str:
    """Say what would decide whether a gain was learned."""
    if began_trained(node.dataset for node in content.nodes):
        mirrored = sum(name.startswith("mirrored") for name in content.controls)
        if mirrored < ENOUGH:
            return f"{ENOUGH} mirrored control runs would say whether that was learned"
        return "mirrored control runs do not show that it was learned"
    return "it is not shown to be learned"


def _course(row: Row) -> str:
    verb = "rose" if direction(row) == "rises" else "fell"
    return f"{owner(row)} {verb} from {values_words(row.first_value, row.last_value)}"


def _some(clauses: Sequence[str], many: str) -> list[str]:
    """Return clauses, or how many there are where they are more than two."""
    return list(clauses) if len(clauses) <= _NAMED else [f"{len(clauses):,} {many}"]


def _of(verb: str, abilities: Sequence[Ability], steps: Sequence[int] = ()) -> list[str]:
    """Say which abilities, and since when the first of them, where there are steps between."""
    if not abilities:
        return []
    names = joined(_quoted([ability.name for ability in abilities], " abilities"))
    steps_left = [a.left_from for a in abilities if math.isfinite(a.left_from)]
    since = min(steps_left, default=math.nan)
    if len(steps) > 2 and math.isfinite(since):
        names += f"{', the first' * (len(abilities) > 1)} by {{step}} {since:,.0f}"
    return [f"{verb} {names}"]


def _on_these(how: str, abilities: Sequence[Ability]) -> list[str]:
    """Say which abilities changed on the examples asked, and are not shown to on others."""
    if not abilities:
        return []
    names = joined(_quoted([ability.name for ability in abilities], " abilities"))
    return [f"it is right in {how} of the examples of {names}"]


def _beside_the_base(
    abilities: Sequence[Ability], *changed: Sequence[Ability], forgot: bool
) -> Sentence:
    """Say what became of the abilities of the base, or what it takes to ask.

    `forgot` is whether the loss shows something that it lost.
    """
    gained, lost, by_words = changed
    if not abilities:
        return Sentence(
            f"What {'else ' * forgot}it lost of its base is not known:",
            "no ability was tested; minimal-pairs asks for them, and a loss on "
            "texts of the base’s own training says how much of that it forgot.",
        )
    counts = f"{len(gained):,} gained and {len(lost):,} lost since the base"
    lead = f"Of {plural(len(abilities), 'ability')}, {counts}."
    text = [_course_of(item) for item in [*lost, *gained, *by_words][:1]]
    if by_words:
        names = joined(_quoted([item.name for item in by_words]))
        has_liking = all(math.isfinite(item.liking) for item in by_words)
        liking = ", and a liking for single words," if has_liking else ""
        less = f"N-grams of the texts{liking} are not shown to answer {names} worse"
        # The first sentences stay where a screen is full.
        text.insert(0, f"{less}: {{word}} frequencies may be all that was gained there.")
    if alone := on_these_sentence(abilities):
        text.append(alone)
    named = sum(item.on_these for item in abilities)
    if rest := len(abilities) - len(gained) - len(lost) - len(by_words) - named:
        of = "any" if rest == len(abilities) else "the other" + f" {rest:,}" * (rest > 1)
        text.append(f"No gain or loss of {of} is shown, corrected over all.")
    return Sentence(lead, " ".join(text))


def _course_of(item: Ability) -> str:
    """Say from where to where an ability went, and since when it is beyond its first interval."""
    low, high = 100 * item.change_low, 100 * item.change_high
    ends = f"went from {100 * item.first:.0f} % to {100 * item.accuracy:.0f} % of its examples"
    change = f"change {low:+.0f} to {high:+.0f} points".replace("-", "−")
    if math.isnan(low):
        change = f"one {item.cluster}, no interval"
    text = f"{sentence_start(item.quoted)} {ends} ({change})"
    if math.isfinite(item.left_from):
        interval = f"{100 * item.first_low:.0f} to {100 * item.first_high:.0f} %"
        text += (
            f"; from {{step}} {item.left_from:,.0f} on it is outside {interval}, its first interval"
        )
    return f"{text}."
