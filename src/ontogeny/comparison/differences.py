"""What differs between runs besides their training, and so forbids a comparison unless allowed."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from ..capture.loss import objective_of_class
from ..errors import ArgumentError, check_choice
from .sources import Run, levels_of

# What may be allowed to differ.
KINDS = ("inputs", "tokenizers", "arguments", "settings", "checkpoints")


Differences = Iterator[tuple[str, str]]
"""Things in which runs differ: the kind of each, and a sentence that names it."""


def check_differences(runs: Sequence[Run], allow: Sequence[str]) -> list[str]:
    """Return in words what differs and is allowed to; refuse what is not.

    Raises
    ------
    ArgumentError
        If runs differ in something that is not allowed, or `allow` names no kind of difference.
    """
    kinds = [allow] if isinstance(allow, str) else list(allow)
    for kind in kinds:
        check_choice("allow", kind, KINDS)
    finders = (_of_inputs, _of_arguments, _of_settings, _of_checkpoints)
    differences = list(chain.from_iterable(find(runs) for find in finders))
    refused = [(kind, words) for kind, words in differences if kind not in kinds]
    if refused:
        names = list(dict.fromkeys(kind for kind, _ in refused))
        raise ArgumentError(
            " ".join(words for _, words in refused)
            + f" Their curves would differ for that reason too. allow={json.dumps(names)} (--allow "
            f"{','.join(names)}) compares them all the same and says so on the page."
        )
    return [words for _, words in differences]


def kernel_differences(runs: Sequence[Run]) -> list[str]:
    """Return in words whether runs were computed with other kernels or versions of libraries.

    That forbids no comparison: it changes last digits, and what is fitted by more.
    """
    provenance = [run.attribute("provenance", {}) for run in runs]
    lines = []
    for key, what in (("kernels", "kernels"), ("libraries", "versions of libraries")):
        parts = [
            (p.get(key) if isinstance(p, Mapping) else None) or {} for p in provenance
        ]
        recorded = [part for part in parts if part]
        if all(part == recorded[0] for part in recorded):
            continue
        every = dict.fromkeys(chain(*recorded))
        names = [n for n in every if len({part.get(n) for part in recorded}) > 1]
        words = [
            ", ".join(f"{n} {p.get(n, 'none')}" for n in names if p) for p in parts
        ]
        listed = _listed(runs, [word or "not recorded" for word in words])
        sentence = f"The runs were computed with different {what}: {listed}. Numbers differ in "
        lines.append(
            f"{sentence}their last digits for that reason, and fits of concepts may differ by more."
        )
    return lines


def _of_inputs(runs: Sequence[Run]) -> Differences:
    """Tell other texts from the same texts cut up by another tokenizer, where that is known."""
    sets = [
        {str(i.get("name")): i for i in run.attribute("inputs", [])} for run in runs
    ]
    shared = [name for name in sets[0] if all(name in entries for entries in sets)]
    if not shared and any(sets):
        what = _listed(runs, [", ".join(entries) or "none" for entries in sets])
        yield "inputs", f"The runs share no set of texts: {what}."
    for name in shared:
        texts = [entries[name] for entries in sets]
        if _alike(texts, "fingerprint"):
            continue
        if not (texts[0].get("texts_digest") and _alike(texts, "texts_digest")):
            what = _listed(runs, map(_texts, texts))
            yield (
                "inputs",
                f"The runs were studied on different texts: {name!r} holds {what}.",
            )
            sizes = [entry.get("vocabulary") for entry in texts]
            if None not in sizes and len(set(sizes)) > 1:
                what = _listed(runs, [f"{size:,} ids" for size in sizes])
                yield "tokenizers", f"The runs have different tokenizers: {what}."
        elif _alike(texts, "vocabulary") and not _alike(texts, "cut_at"):
            ends = [entry.get("cut_at") for entry in texts]
            what = _listed(
                runs, [f"{end:,} tokens" if end else "whole" for end in ends]
            )
            yield (
                "inputs",
                f"The runs read the same texts {name!r}, cut at other lengths: {what}.",
            )
        elif _alike(texts, "tokens") and _alike(texts, "vocabulary"):
            other = "labels, documents or ids"
            yield "inputs", f"The runs read the same texts {name!r} with other {other}."
        else:
            what = _listed(
                runs, [f"{entry.get('tokens', 0):,} tokens" for entry in texts]
            )
            words = (
                f"The runs were studied with different tokenizers: {name!r} is {what}."
            )
            yield "tokenizers", words


def _texts(entry: Mapping[str, Any]) -> str:
    print_ = str(entry.get("fingerprint", "unknown"))[:8]
    return (
        f"{entry.get('texts', '?')} texts, {entry.get('tokens', '?')} tokens ({print_})"
    )


def _of_arguments(runs: Sequence[Run]) -> Differences:
    """Compare the arguments of the observables that all runs have."""
    studied = [run.attribute("settings", {}).get("observables", {}) for run in runs]
    models = [run.attribute("model", {}) for run in runs]
    # Other sizes and architectures have other layers, which are matched with one another.
    matched = (
        () if all(model == models[0] for model in models) else ("layers", "blocks")
    )
    for name in studied[0]:
        if any(name not in observables for observables in studied):
            continue
        arguments = [
            _with_objective(observables[name], model)
            for observables, model in zip(studied, models, strict=True)
        ]
        for key in dict.fromkeys(chain(*arguments)):
            if key not in matched and not _alike(arguments, key):
                what = _values(runs, arguments, key)
                yield (
                    "arguments",
                    f"{name!r} was measured with other values of {key}: {what}.",
                )


def _with_objective(
    arguments: Mapping[str, Any], model: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return arguments with what the model predicts, where it was left to the model's class."""
    if arguments.get("objective") != "auto":
        return arguments
    shown = objective_of_class(str(model.get("class", "")))
    return {**arguments, "objective": shown or "auto"}


def _of_settings(runs: Sequence[Run]) -> Differences:
    """Compare how models were run, and what distances are measured to."""
    settings = [run.attribute("settings", {}) for run in runs]
    for key, words in (
        ("dtype", "in different dtypes"),
        ("reference", "to different references"),
    ):
        if not _alike(settings, key):
            what = _values(runs, settings, key)
            yield "settings", f"The runs were measured {words}: {what}."
    if len(levels_of(runs)) > 1:
        what = _listed(runs, [f"α = {run.levels.change:g}" for run in runs])
        yield "settings", f"The levels of the tests differ between the runs: {what}."


def _of_checkpoints(runs: Sequence[Run]) -> Differences:
    """Find runs that are the same run: that they agree says nothing."""
    digests = [run.attribute("trajectory", {}).get("digests", {}) for run in runs]
    for (a, one), (b, other) in itertools.combinations(
        zip(runs, digests, strict=True), 2
    ):
        if one and one == other:
            which = f"{a.name!r} and {b.name!r} are the same checkpoints"
            yield "checkpoints", f"{which}, so that their agreement says nothing."


def _alike(entries: Sequence[Mapping[str, Any]], key: str) -> bool:
    return all(entry.get(key) == entries[0].get(key) for entry in entries)


def _values(runs: Sequence[Run], entries: Sequence[Mapping[str, Any]], key: str) -> str:
    return _listed(runs, [json.dumps(entry.get(key)) for entry in entries])


def _listed(runs: Sequence[Run], words: Iterable[str]) -> str:
    return "; ".join(
        f"{of_run} in {run.name!r}" for run, of_run in zip(runs, words, strict=True)
    )
