"""Observables that ask files of examples with a right answer: the files, and their tokens."""

from __future__ import annotations

import abc
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from ...claims import Claim, Subject, measurement
from ...errors import ArgumentError
from ...figures import Figure
from ...observables.of_predictions import OfPredictions
from ...observables.pieces import object_array
from ...observables.readings import Run
from ...quantities import Quantity
from ...tasks.records import (
    GROUP_FIELDS,
    Example,
    digest_of,
    group_field,
    read_examples,
    read_records,
    some_of,
)
from ...tasks.rows import Rows
from ...trees import Nodes
from ...words.names import Names
from .between_runs import claims_of_runs
from .groups import GROUP_NAMES, OVERALL, group_figures, with_courses
from .ngrams import ORDER
from .token_texts import HEADLESS, TokenTexts, tokenised

log = logging.getLogger("ontogeny.abilities")
SHARE: dict[str, Any] = {"minimum": 0.0, "better": "higher", "series": "group"}
TRIED = 8  # examples of a dry run

Maker = Callable[[Mapping[str, Any], str, str], Example]
"""From a record, the name of its file and its line to an example, or `ArgumentError`."""


class OfGroups(OfPredictions):
    """An observable of groups of examples with a right answer.

    Attributes
    ----------
    one
        What an example is called; also the dimension of examples.
    measured
        The variable of cells that is there where anything was measured.
    """

    one: ClassVar[str] = "example"
    measured: ClassVar[str] = "rank"
    price = (
        "one pass over the texts of the examples at each step, where they begin alike once; of a "
        "masked model one for each token"
    )
    obstacles = ("no_prediction", "no_tokenizer")

    @abc.abstractmethod
    def right_of(
        self, data: xr.Dataset
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return whether each example is right (step, n), and its probability by chance (n,).

        And a number for those that go together (n,), None where their words say it.
        """

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Return the cells with intervals, noise, and the steps from which groups are above chance.

        Groups stand in the order in which they leave chance.
        """
        group = data.get(f"group_of_{self.one}")
        if self.measured not in data or group is None:
            return data
        right, chance, cluster = self.right_of(data)
        if cluster is not None:
            data = data.assign(cluster=(self.one, cluster))
        return with_courses(
            data, right, group, chance, data.get("right_ngrams"), self.one
        )

    def figures(self, data: xr.Dataset, nodes: Nodes) -> Sequence[Figure]:
        """Return a map of many groups."""
        return group_figures(data)

    claims_of_runs = staticmethod(claims_of_runs)

    def claims(self, name: str, data: xr.Dataset) -> Sequence[Claim]:
        """Return what was left out."""
        if "left_out" not in data:
            return []
        lines = [str(line) for line in data.left_out.values]
        return [measurement(Subject(name, "left_out"), len(lines), parts=lines)]


@dataclass(frozen=True)
class OfExamples(OfGroups):
    """An observable of files of examples, which its subclasses explain."""

    examples: tuple[str, ...]

    file_arguments = ("examples",)
    # Of these fields none is a group; without any only a field of a usual name is.
    used_fields: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def group_field(cls, path: str) -> str | None:
        """Return the field of a file's records that says their group, if one does."""
        return group_field(read_records(path), cls.used_fields)

    @abc.abstractmethod
    def example_of(self, record: Mapping[str, Any], stem: str, where: str) -> Example:
        """Return the example of a record, or raise `ArgumentError` with why it is none."""

    def makes_examples(self, path: str) -> Maker:
        """Return what makes examples of the records of a file."""
        return self.example_of

    def check(self) -> None:
        """Refuse files without an example; say what is left out of others."""
        if left_out := said_of(self.read()[1]):
            _warn(left_out, tuple(map(str, self.paths)))

    def files_read(self) -> Sequence[str | Path]:
        """Return none: `arguments` tells what they hold, wherever they lie."""
        return ()

    def arguments(self) -> dict[str, Any]:
        """Return the fields; of files their names, and a digest of what they hold."""
        names = tuple(_apart(self.examples, "name"))
        return {
            **super().arguments(),
            "examples": names,
            "content": digest_of(self.paths),
        }

    @property
    def stem(self) -> str:
        """The names of its files without their endings."""
        return "-".join(Path(path).stem for path in self.examples)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files."""
        return self.examples

    def read(self) -> tuple[list[Example], list[str]]:
        """Return the examples of all files, and in a line each what was left out and why."""
        examples = []
        left_out = []
        # Examples that are read twice would count twice.
        paths = [*dict.fromkeys(self.paths)]
        digest_of(paths)  # which names the argument where one cannot be read
        for path, stem in zip(paths, _apart(paths, "stem"), strict=True):
            some, problems = read_examples(
                _with_groups(read_records(path), self.group_field(path)),
                Path(path).name,
                self.makes_examples(path),
                self.one,
                stem,
            )
            examples += some
            left_out += problems
        examples, repeated = _once(examples, self.one)
        left_out += repeated
        if not examples:
            why = f"; {said_of(left_out)}" if left_out else "; none is named."
            raise ArgumentError(
                f"examples must be files of {self.form}, with the fields {self.fields_of_form}{why}"
            )
        return examples, left_out

    def prepare(self, run: Run) -> xr.Dataset:
        """Return the examples as tokens, with what is known of them before a model is asked."""
        asked, texts = self.needs()
        reading = run.reading(run.reference_step)
        predictor = reading[asked]
        inputs = reading[texts]
        examples, left_out = self.read()
        examples = examples[:TRIED] if run.is_trial else examples
        examples, tokens, problems = _as_tokens(examples, run.tokenizer(), predictor)
        counted = (inputs, predictor.vocabulary(inputs))
        groups = (self.one, object_array([example.group for example in examples]))
        before = {
            f"group_of_{self.one}": groups,
            **self.before_asking(examples, tokens, counted),
        }
        state = xr.Dataset({**tokens.variables(), **before})
        left_out = left_out + problems
        return (
            state.assign(left_out=("left_out", object_array(left_out)))
            if left_out
            else state
        )

    @abc.abstractmethod
    def before_asking(
        self, examples: Sequence[Example], tokens: TokenTexts, counted: tuple[Any, int]
    ) -> dict[str, Any]:
        """Return further variables of the state; `counted` is what `ngram_scores` counts."""


def _with_groups(records: Rows, field: str | None) -> Rows:
    """Give records with a field by whose name their group is known."""
    for line, record in records:
        is_group = isinstance(record, dict) and field in record
        yield line, {**record, GROUP_FIELDS[0]: record[field]} if is_group else record


def _once(examples: Sequence[Example], one: str) -> tuple[list[Example], list[str]]:
    """Return examples without those that repeat another one, which is no more evidence.

    And without pairs that set the same texts against each other the other way round: one of them
    would be right whatever a model says. `one` is what an example is called.
    """
    first: dict[Example, Example] = {}
    for example in examples:
        first.setdefault(replace(example, where=""), example)
    repeated = {id(example) for example in examples} - {id(e) for e in first.values()}
    turned = {
        id(e) for key, e in first.items() if one == "pair" and _turned(key) in first
    }
    left_out = [
        f"{e.where}: it repeats another one" for e in examples if id(e) in repeated
    ]
    left_out += [
        f"{e.where}: another one says the reverse" for e in examples if id(e) in turned
    ]
    return [
        example for example in first.values() if id(example) not in turned
    ], left_out


def _turned(example: Example) -> Example:
    """Return the pair in which the other text is right."""
    return replace(example, texts=example.texts[::-1], before=example.before[::-1])


def accuracy(
    one: str, title: str, chance: str, ngrams: bool = True, units: str = ""
) -> tuple[Quantity, Quantity]:
    """Return the share of examples that are right, as quantities: by groups, and of all.

    Its intervals are over `units`, the examples by default.
    """
    level = {"ngrams": f"{ORDER}-grams of the study's texts"} if ngrams else {}
    over: dict[str, Any] = {
        "unit": f"{one}s",
        "shade": f"95 % over {units or f'{one}s'}",
    }
    over |= {"nulls": {**level, "chance": chance}}
    over |= {"minimum": 0.0, "better": "higher"}
    heading = f"{one.capitalize()}s {title}"
    title = f"share of {one}s {title}"
    whole: dict[str, Any] = {
        "rows": f"{one}s of all groups",
        "heading": f"{heading}, all groups",
    }
    return (
        Quantity(
            "accuracy", title, series="group", rows="{group}", heading=heading, **over
        ),
        Quantity(OVERALL, f"{title}, all groups", optional=True, **whole, **over),
    )


def names_of(one: str) -> Names:
    """Return titles and units of what all such observables give."""
    return {
        f"group_of_{one}": (f"group of the {one}", ""),
        "right_from": (
            f"{{checkpoint}} from which on the {one} stays right",
            "{step}s",
        ),
        "right_ngrams": ("whether n-grams of the study's texts are right", "1"),
        "left_out": ("examples that were left out, and why", ""),
        **GROUP_NAMES,
    }


def by_group(state: xr.Dataset, one: str, right: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the groups in the order of the files, the share that is right in each, its size."""
    of_example = [str(label) for label in state[f"group_of_{one}"].values]
    places = {name: place for place, name in enumerate(dict.fromkeys(of_example))}
    place = np.array([places[label] for label in of_example])
    size = np.bincount(place)
    return object_array(list(places)), np.bincount(place, right) / size, size


def commonest(groups: Sequence[str], answers: Sequence[str]) -> np.ndarray:
    """Return (n,) the share of the commonest answer of each example's group.

    Examples
    --------
    >>> commonest(["a", "a", "b"], ["no", "yes", "no"]).tolist()
    [0.5, 0.5, 1.0]
    """
    most = dict[str, int]()
    sizes = Counter(groups)
    for (group, _), number in Counter(zip(groups, answers, strict=True)).items():
        most[group] = max(number, most.get(group, 0))
    return np.array([most[group] / sizes[group] for group in groups])


def _apart(paths: Sequence[str], part: str) -> list[str]:
    """Return names or stems of files, with their folders where several have the same."""
    places = [Path(path).expanduser().absolute() for path in paths]
    names = [str(getattr(place, part)) for place in places]
    return [
        f"{place.parent.name}/{name}" if names.count(name) > 1 else name
        for place, name in zip(places, names, strict=True)
    ]


@cache
def _warn(left_out: str, paths: Sequence[str]) -> None:
    """Say what is left out of files once: a study makes its observables several times."""
    log.warning("%s", left_out)


def said_of(left_out: Sequence[str]) -> str:
    """Return one sentence on what was left out; empty where nothing was."""
    if not left_out:
        return ""
    verb = "was" if len(left_out) == 1 else "were"
    return f"{len(left_out):,} of the examples {verb} left out: {some_of(left_out)}."


def _differ(values: np.ndarray, of_text: np.ndarray) -> np.ndarray:
    """Return (n,) which texts have another value than the first text of their example."""
    _, begin = np.unique(of_text, return_index=True)
    return np.asarray(values != values[begin][of_text])


def _as_tokens(
    examples: Sequence[Example], tokenizer: Any, predictor: Any
) -> tuple[list[Example], TokenTexts, list[str]]:
    """Return examples of which all texts can be read, their tokens, and why others cannot.

    Raises
    ------
    ArgumentError
        If none can be read.
    """
    before = list(chain.from_iterable(example.before for example in examples))
    texts = list(chain.from_iterable(example.texts for example in examples))
    of_text = np.repeat(
        np.arange(len(examples)), [len(example.texts) for example in examples]
    )
    options = {"masked": predictor.masked, "longest": predictor.longest}
    tokens, problems = tokenised(before, texts, tokenizer, **options)
    why: dict[int, str] = {}
    for place, problem in zip(of_text.tolist(), problems, strict=True):
        if problem:
            why.setdefault(place, f"{examples[place].where}: {problem}")
    first = tokens.first_unscored
    for place in np.unique(of_text[_differ(first, of_text)]).tolist():
        why.setdefault(place, f"{examples[place].where}: {HEADLESS}")
    good = [example for place, example in enumerate(examples) if place not in why]
    if not good:
        raise ArgumentError(
            f"none of the examples can be read: {said_of([*why.values()])}"
        )
    if why:
        tokens = tokens.without(np.isin(of_text, [*why]))
    return good, tokens, [*why.values()]
