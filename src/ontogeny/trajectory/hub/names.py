"""Names of revisions on the Hub: which training step and how many tokens they stand for.

A small table knows the naming of public checkpoint suites; a regular expression of the user's own
replaces it. Step and tokens are read from the whole name or not at all.
"""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ...errors import ArgumentError, CheckpointError
from ..findings import Finding, some
from ..selection import check_step

__all__ = [
    "PATTERNS",
    "Chosen",
    "Revisions",
    "UnknownRevisionError",
    "choose",
    "compile_pattern",
    "parse",
]

_NUMBER = r"\d+(?:\.\d+)?[kKmMbBtT]?"
PATTERNS: Mapping[str, str] = {
    "pythia": r"step(?P<step>\d+)",
    "olmo": rf"(?:stage\d+-)?(?:ingredient\d+-)?step(?P<step>\d+)-tokens(?P<tokens>{_NUMBER})",
    "eurobert": r"(?:.*[-_/])?step[-_]?(?P<step>\d+)",
    "multiberts": rf"(?:.*[-_/])?step_(?P<step>{_NUMBER})",
    "trainer": r"(?:.*[-_/])?checkpoint[-_](?P<step>\d+)",
}
"""Regular expressions of known suites by name, tried in this order on the whole name."""

_USUAL = ("step*", "stage1-*", "checkpoint-*")  # OLMo's later stages count their steps anew

Revisions: TypeAlias = "str | Iterable[str | int] | Callable[[str], int | None]"
_SCALE = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}


class UnknownRevisionError(CheckpointError, KeyError):
    """A revision that the repository does not have."""

    __str__ = Exception.__str__  # KeyError would print the message in quotes


@dataclass(frozen=True)
class Chosen:
    """The revisions that make a trajectory.

    Attributes
    ----------
    names
        ``{step: (revision name, tokens or None)}``, increasing.
    gaps
        Steps that were asked for and do not exist, with the reason.
    noted
        Findings on the names.
    """

    names: dict[int, tuple[str, int | None]]
    gaps: dict[int, str]
    noted: tuple[Finding, ...]


def compile_pattern(pattern: str | re.Pattern[str] | None) -> tuple[re.Pattern[str], ...]:
    """Return the regular expressions to try: all known ones, a known one by name, or the user's.

    Raises
    ------
    ArgumentError
        If `pattern` is no regular expression or has no group named ``step``.

    Examples
    --------
    >>> len(compile_pattern("olmo"))
    1
    """
    if pattern is None:
        return tuple(re.compile(known) for known in PATTERNS.values())
    try:
        compiled = re.compile(
            PATTERNS.get(pattern, pattern) if isinstance(pattern, str) else pattern
        )
    except (re.error, TypeError) as error:
        raise ArgumentError(
            f"pattern must be a regular expression or one of {', '.join(PATTERNS)}; "
            f"got {pattern!r} ({error})."
        ) from None
    if "step" not in compiled.groupindex:
        raise ArgumentError(
            "pattern must have a group (?P<step>...), and may have (?P<tokens>...); "
            f"got {pattern!r}."
        )
    return (compiled,)


def parse(name: str, patterns: Iterable[re.Pattern[str]]) -> tuple[int, int | None] | None:
    """Return ``(step, tokens or None)`` of a revision name, or None if no pattern fits all of it.

    Examples
    --------
    >>> parse("stage1-step101000-tokens424B", compile_pattern(None))
    (101000, 424000000000)
    >>> parse("step_20k", compile_pattern(None)), parse("main", compile_pattern(None))
    ((20000, None), None)
    """
    for pattern in patterns:
        match = pattern.fullmatch(name)
        if match is not None:
            tokens = match.groupdict().get("tokens")
            return _count(match["step"], name), None if tokens is None else _count(tokens, name)
    return None


def _count(text: str | None, name: str) -> int:
    """Return a count such as ``"20k"`` or ``"4.2B"`` exactly."""
    match = re.fullmatch(r"(\d+)(?:\.(\d+))?([kKmMbBtT]?)", text or "")
    if match is None:
        raise ArgumentError(f"pattern reads {text!r} from {name!r}, which is no number.")
    whole, part, scale = match[1], match[2] or "", _SCALE[match[3].lower()]
    count, rest = divmod(int(whole + part) * scale, 10 ** len(part))
    if rest:
        raise ArgumentError(f"pattern reads {text!r} from {name!r}, which is no whole number.")
    return count


def choose(
    commits: Mapping[str, str],
    revisions: Revisions | None,
    pattern: str | re.Pattern[str] | None,
    strict: bool,
    repo: str,
) -> Chosen:
    """Return which of the existing names (``{name: commit}``) make the trajectory.

    Of two names for one step the shorter one counts, then the alphabetically first; that is a
    finding unless both are the same commit.

    Raises
    ------
    ArgumentError
        If `revisions` or `pattern` is not as described in `Trajectory.from_hub`.
    UnknownRevisionError
        If nothing matches, or (with `strict`) anything in a list does not exist.
    """
    patterns = compile_pattern(pattern)
    if not commits:
        raise UnknownRevisionError(f"{repo} is empty: it has no revisions.")
    if revisions is None:
        revisions = _usual(commits, patterns, own=pattern is not None)
    if isinstance(revisions, str) and not set(revisions) & set("*?["):
        revisions, strict = [revisions], True
    gaps: dict[int, str] = {}
    noted: list[Finding] = []
    if isinstance(revisions, str):
        numbered = _globbed(commits, revisions, patterns, noted, repo)
    elif callable(revisions):
        numbered = _called(commits, revisions)
    elif isinstance(revisions, Iterable):
        numbered = _listed(commits, revisions, patterns, gaps, strict, repo)
    else:
        raise ArgumentError(
            "revisions must be a glob such as 'step*', a list of names or steps, or a function "
            f"from name to step; got {type(revisions).__name__}."
        )
    if not numbered:
        raise UnknownRevisionError(_nothing(commits, revisions, repo))
    by_step: dict[int, list[tuple[str, int | None]]] = {}
    for name, (step, tokens) in numbered.items():
        by_step.setdefault(step, []).append((name, tokens))
    names = {step: _one(step, by_step[step], commits, noted) for step in sorted(by_step)}
    return Chosen(names, dict(sorted(gaps.items())), tuple(noted))


def _usual(
    commits: Mapping[str, str], patterns: tuple[re.Pattern[str], ...], own: bool
) -> str | list[str]:
    """Return the first usual glob that gives a step; with the user's `own` pattern, what it reads.

    Without one, names of another kind are not taken unasked: they may be of several runs.
    """
    numbered = [name for name in commits if parse(name, patterns) is not None]
    for glob in _USUAL:
        if any(fnmatch.fnmatchcase(name, glob) for name in numbered):
            return glob
    return numbered if own and numbered else _USUAL[0]


def _one(
    step: int,
    names: list[tuple[str, int | None]],
    commits: Mapping[str, str],
    noted: list[Finding],
) -> tuple[str, int | None]:
    names = sorted(names, key=lambda entry: (len(entry[0]), entry[0]))
    if len({commits[name] for name, _ in names}) > 1:
        listed = ", ".join(name for name, _ in names)
        text = f"step {step} has several revisions ({listed}); {names[0][0]} is used"
        noted.append(Finding("ambiguous", "certain", (step,), text))
    return names[0]


def _globbed(
    commits: Mapping[str, str],
    glob: str,
    patterns: tuple[re.Pattern[str], ...],
    noted: list[Finding],
    repo: str,
) -> dict[str, tuple[int, int | None]]:
    matching = [name for name in commits if fnmatch.fnmatchcase(name, glob)]
    found = {name: parse(name, patterns) for name in matching}
    without = sorted(name for name, parsed in found.items() if parsed is None)
    if matching and len(without) == len(matching):
        raise ArgumentError(
            f"{repo} has revisions that match {glob!r} ({some(without)}), but no step can be read "
            "from their names; pass pattern= with a group (?P<step>...)."
        )
    if without:
        text = f"no step can be read from {some(without)}, left out"
        noted.append(Finding("unnumbered", "certain", (), text))
    return {name: parsed for name, parsed in found.items() if parsed is not None}


def _called(
    commits: Mapping[str, str], to_step: Callable[[str], int | None]
) -> dict[str, tuple[int, int | None]]:
    steps = {name: to_step(name) for name in commits}
    known = compile_pattern(None)
    return {
        name: (check_step(f"revisions({name!r})", step), (parse(name, known) or (0, None))[1])
        for name, step in steps.items()
        if step is not None
    }


def _listed(
    commits: Mapping[str, str],
    wanted: Iterable[str | int],
    patterns: tuple[re.Pattern[str], ...],
    gaps: dict[int, str],
    strict: bool,
    repo: str,
) -> dict[str, tuple[int, int | None]]:
    parsed = {name: parse(name, patterns) for name in commits}
    found: dict[str, tuple[int, int | None]] = {}
    for entry in wanted:
        if isinstance(entry, str):
            names, step = [entry] if entry in commits else [], parse(entry, patterns)
        else:
            step = (check_step("an entry of revisions", entry), None)
            names = [name for name, own in parsed.items() if own and own[0] == step[0]]
        for name in names:
            own = parsed[name]
            if own is None:
                raise ArgumentError(
                    f"no step can be read from {name!r}; pass pattern= with a group (?P<step>...), "
                    "or a function as revisions=."
                )
            found[name] = own
        if not names:
            message = (
                f"{repo} has no revision {entry!r}; the nearest are {_near(entry, step, parsed)}"
            )
            if strict or step is None:
                raise UnknownRevisionError(f"{message}.")
            gaps[step[0]] = message
    return found


def _near(
    entry: object,
    step: tuple[int, int | None] | None,
    parsed: Mapping[str, tuple[int, int | None] | None],
) -> str:
    numbered = {name: own[0] for name, own in parsed.items() if own is not None}
    if step is not None and numbered:
        wanted = step[0]
        near = sorted(numbered, key=lambda name: (abs(numbered[name] - wanted), numbered[name]))[:3]
        return ", ".join(sorted(near, key=lambda name: numbered[name]))
    close = difflib.get_close_matches(str(entry), list(parsed), n=3, cutoff=0.0)
    return ", ".join(close) or "none"


def _nothing(commits: Mapping[str, str], revisions: object, repo: str) -> str:
    there = f"it has {len(commits)}, such as {some(sorted(commits))}"
    what = f"matches {revisions!r}" if isinstance(revisions, str) else "is chosen by revisions="
    return f"no revision of {repo} {what}; {there}."
