"""Names of revisions on the Hub: which training step and how many tokens they stand for.

A small table knows the naming of public checkpoint suites; a regular expression of the user's own
replaces it. Step and tokens are read from the whole name or not at all.
"""

from __future__ import annotations

import difflib
import fnmatch
import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

from ...errors import ArgumentError, CheckpointError
from ..findings import Finding, some
from ..order.choosing import order_of
from ..order.names import count, read_name
from ..selection import check_step

_NUMBER = r"\d+(?:\.\d+)?[kKmMbBtT]?"
# Regular expressions of known suites by name, tried in this order on the whole name.
PATTERNS: Mapping[str, str] = {
    "pythia": r"step(?P<step>\d+)",
    "olmo": rf"(?:stage\d+-)?(?:ingredient\d+-)?step(?P<step>\d+)-tokens(?P<tokens>{_NUMBER})",
    "eurobert": r"(?:.*[-_/])?step[-_]?(?P<step>\d+)",
    "multiberts": rf"(?:.*[-_/])?step_(?P<step>{_NUMBER})",
    "trainer": r"(?:.*[-_/])?checkpoint[-_](?P<step>\d+)",
}

# OLMo's later stages count their steps anew.
_USUAL = ("step*", "stage1-*", "checkpoint-*")

Revisions: TypeAlias = "str | Iterable[str | int] | Callable[[str], int | None]"


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


def compile_pattern(
    pattern: str | re.Pattern[str] | None,
) -> tuple[re.Pattern[str], ...]:
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
        return tuple(re.compile(form) for form in PATTERNS.values())
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


def parse(
    name: str, patterns: Iterable[re.Pattern[str]]
) -> tuple[int, int | None] | None:
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
            return _count(match["step"], name), None if tokens is None else _count(
                tokens, name
            )
    return None


def _count(text: str | None, name: str) -> int:
    """Return a count such as ``"20k"`` or ``"4.2B"`` exactly."""
    number = count(text or "")
    if number is None:
        raise ArgumentError(
            f"pattern reads {text!r} from {name!r}, which is no whole number."
        )
    return number


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
        If `revisions` or `pattern` is not as described in `Trajectory.from_hub`, or a glob matches
        the names of several runs that each count their steps anew.
    UnknownRevisionError
        If nothing matches, or (with `strict`) anything in a list does not exist.
    """
    choice = _Choice(repo, commits, compile_pattern(pattern))
    given_revisions = revisions
    if not commits:
        raise UnknownRevisionError(f"{repo} is empty: it has no revisions.")
    if revisions is None and pattern is None and choice.is_one_model():
        return Chosen({0: ("main", None)}, {}, ())
    if revisions is None:
        revisions = choice.usual(own_pattern=pattern is not None)
    if isinstance(revisions, str) and set(revisions) & set("*?["):
        numbered = choice.matching(revisions)
    elif isinstance(revisions, str):
        numbered = choice.listed([revisions], strict=True)
    elif callable(revisions):
        numbered = choice.called(revisions)
    elif isinstance(revisions, Iterable):
        numbered = choice.listed(revisions, strict)
    else:
        raise ArgumentError(
            "revisions must be a glob such as 'step*', a list of names or steps, or a function "
            f"from name to step; got {type(revisions).__name__}."
        )
    if not numbered:
        what = (
            f"matches {revisions!r}"
            if isinstance(revisions, str)
            else "is chosen by revisions="
        )
        raise UnknownRevisionError(
            f"no revision of {repo} {what}; it has {len(commits)}, such as {some(sorted(commits))}."
        )
    names = choice.one_per_step(numbered)
    if not callable(revisions):
        choice.check_one_run(numbered, names, given_revisions)
    return Chosen(names, dict(sorted(choice.gaps.items())), tuple(choice.noted))


_Number: TypeAlias = tuple[int, int | None]  # step and tokens


def _has_word_for_steps(name: str) -> bool:
    """Return whether a word in a name marks its step; a bare number may be a size or a version."""
    return read_name(name) is not None and re.search("[A-Za-z]{2}", name) is not None


@dataclass(eq=False)
class _Choice:
    """The names of a repository, and what was found while some of them were chosen."""

    repo: str
    commits: Mapping[str, str]
    patterns: tuple[re.Pattern[str], ...]

    def __post_init__(self) -> None:
        self.gaps: dict[int, str] = {}
        self.noted: list[Finding] = []

    def parsed(self, names: Iterable[str]) -> tuple[dict[str, _Number], list[str]]:
        """Return what names stand for, and those of which no step can be read."""
        numbers = {name: parse(name, self.patterns) for name in names}
        without = sorted(name for name, number in numbers.items() if number is None)
        return {
            name: number for name, number in numbers.items() if number is not None
        }, without

    def usual(self, own_pattern: bool) -> Revisions:
        """Return the first usual glob that gives a step, or what the user's own pattern reads.

        Without such a pattern, other names count where words in them mark steps of one form, as
        ``iter_500`` and ``epoch-3``: names of several forms may be of several runs.
        """
        numbered, _ = self.parsed(self.commits)
        for glob in _USUAL:
            if fnmatch.filter(numbered, glob):
                return glob
        if own_pattern:
            return list(numbered) or _USUAL[0]
        with suppress(CheckpointError):
            steps = {
                name: step for step, name in order_of(list(self.commits)).names.items()
            }
            if len(steps) > 1 and all(map(_has_word_for_steps, steps)):
                return steps.get
        return _USUAL[0]

    def is_one_model(self) -> bool:
        """Return whether there is a main branch, and no other name has a number."""
        others = self.commits.keys() - {"main"}
        return "main" in self.commits and not any(
            re.search(r"\d", name) for name in others
        )

    def matching(self, glob: str) -> dict[str, _Number]:
        """Return the names that match, but for those without a step."""
        matching = [name for name in self.commits if fnmatch.fnmatchcase(name, glob)]
        numbered, without = self.parsed(matching)
        if matching and not numbered:
            raise ArgumentError(
                f"{self.repo} has revisions that match {glob!r} ({some(without)}), but no step can "
                "be read from their names; pass pattern= with a group (?P<step>...)."
            )
        if without:
            text = f"no step can be read from {some(without)}, left out"
            self.noted.append(Finding("unnumbered", "certain", (), text))
        return numbered

    def called(self, to_step: Callable[[str], int | None]) -> dict[str, _Number]:
        """Return the names to which a function gives a step; tokens are read from the name."""
        steps = {name: to_step(name) for name in self.commits}
        default = compile_pattern(None)
        return {
            name: (
                check_step(f"revisions({name!r})", step),
                (parse(name, default) or (0, None))[1],
            )
            for name, step in steps.items()
            if step is not None
        }

    def listed(self, wanted: Iterable[str | int], strict: bool) -> dict[str, _Number]:
        """Return the names, or the names of the steps, that are listed; note what is missing."""
        numbered, _ = self.parsed(self.commits)
        listed: dict[str, _Number] = {}
        for entry in wanted:
            if isinstance(entry, str):
                names = [entry] if entry in self.commits else []
                number = parse(entry, self.patterns)
            else:
                number = (check_step("an entry of revisions", entry), None)
                names = [
                    name
                    for name, numbers in numbered.items()
                    if numbers[0] == number[0]
                ]
            for name in names:
                if name not in numbered:
                    raise ArgumentError(
                        f"no step can be read from {name!r}; pass pattern= with a group "
                        "(?P<step>...), or a function as revisions=."
                    )
                listed[name] = numbered[name]
            if not names:
                near = self._near(entry, number, numbered)
                message = (
                    f"{self.repo} has no revision {entry!r}; the nearest are {near}"
                )
                if strict or number is None:
                    raise UnknownRevisionError(f"{message}.")
                self.gaps[number[0]] = message
        return listed

    def _near(
        self, entry: object, number: _Number | None, numbered: dict[str, _Number]
    ) -> str:
        """Return the three names nearest to what is missing, by step or else by spelling."""
        if number is None or not numbered:
            close = difflib.get_close_matches(
                str(entry), list(self.commits), n=3, cutoff=0.0
            )
            return ", ".join(close) or "none"
        steps = {name: numbers[0] for name, numbers in numbered.items()}
        near = sorted(
            steps, key=lambda name: (abs(steps[name] - number[0]), steps[name])
        )[:3]
        return ", ".join(sorted(near, key=lambda name: steps[name]))

    def one_per_step(
        self, numbered: Mapping[str, _Number]
    ) -> dict[int, tuple[str, int | None]]:
        """Return ``{step: (name, tokens)}``, increasing."""
        by_step: dict[int, list[str]] = {}
        for name in sorted(numbered, key=lambda name: (len(name), name)):
            by_step.setdefault(numbered[name][0], []).append(name)
        for step, names in sorted(by_step.items()):
            if len({self.commits[name] for name in names}) > 1:
                text = f"step {step} has several revisions ({', '.join(names)}); {names[0]} is used"
                self.noted.append(Finding("ambiguous", "certain", (step,), text))
        return {
            step: (names[0], numbered[names[0]][1])
            for step, names in sorted(by_step.items())
        }

    def check_one_run(
        self,
        numbered: Mapping[str, _Number],
        chosen: Mapping[int, tuple[str, int | None]],
        choice: Revisions | None,
    ) -> None:
        """Refuse several runs that count their steps anew, unless they were listed; else note it.

        A run is what names have in common before the step, such as ``stage1-step``. Two names of
        one commit are one name.
        """
        runs: dict[str, list[int]] = {}
        for name, (step, _) in numbered.items():
            first, _ = chosen[step]
            same = self.commits[name] == self.commits[first]
            runs.setdefault(self._before_step(first if same else name), []).append(step)
        # One run, or another number before each step.
        if len(runs) in (1, len(numbered)):
            return
        spans = sorted((min(steps), max(steps), run) for run, steps in runs.items())
        what = some([f"{run}* (steps {low} to {high})" for low, high, run in spans])
        listed = choice is not None and not isinstance(choice, str)
        if not listed and any(b[0] < a[1] for a, b in itertools.pairwise(spans)):
            raise ArgumentError(
                f"revisions={choice!r} matches several runs of {self.repo} that count their steps "
                f"anew: {what}; choose one of them, such as revisions={spans[0][2] + '*'!r}, or "
                "list the names."
            )
        text = f"the names are of several runs or stages, taken as one: {what}"
        self.noted.append(Finding("mixed", "certain", tuple(chosen), text))

    def _before_step(self, name: str) -> str:
        """Return the beginning of a name, up to its step."""
        matches = (pattern.fullmatch(name) for pattern in self.patterns)
        return next(
            name[: match.start("step")] for match in matches if match is not None
        )
