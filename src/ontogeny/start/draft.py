"""The content of a study file while it is filled in, by texts, checkpoint and model."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from .. import activity
from ..capture.predicted import next_tokens
from ..errors import ArgumentError
from ..inputs import Inputs
from ..inputs.scoring import AnswersCutError
from ..observables import ModelFacts
from ..observables.registry import make
from ..trajectory import Trajectory
from ..trajectory.recorded import recorded_losses
from .best_loss import best_loss
from .complete import check_complete, has_own, has_tokenizer, vocabulary_beside
from .controls import controls_of
from .examples import examples_of, no_english
from .further_sets import of_further_sets, training_texts_beside, unused_column
from .id_types import sources_by_model
from .places import of_places, proposed_places
from .presets import Preset, fitted
from .sets import with_sets
from .shown import longest_of
from .source_tables import source_tables
from .wishes import Wishes

LONGEST = 512  # tokens of a text that is read to its answer, unless more are asked for
_Read: TypeAlias = tuple[Trajectory, dict[str, Inputs], dict[str, str], list[str]]


@dataclass
class Draft:
    """A study file's content, with the checkpoints and texts that it names.

    Attributes
    ----------
    folder
        Where the study file is to stand: its paths are relative to it.
    sets
        What was set by hand, but for observables.
    asked_for
        The content before anything was fitted to the model.
    notes
        What is said of the texts beside what they say of themselves.
    """

    wishes: Wishes
    preset: Preset
    folder: Path
    sets: Sequence[str]
    content: dict[str, Any]
    asked_for: dict[str, Any]
    trajectory: Trajectory
    inputs: dict[str, Inputs]
    notes: list[str]

    @classmethod
    def read(
        cls,
        wishes: Wishes,
        run: Trajectory,
        preset: Preset,
        folder: Path,
        sets: Sequence[str],
    ) -> Draft:
        """Read the texts, and choose the checkpoints of a run."""
        vocabulary = vocabulary_beside(wishes)
        tokenizer = wishes.tokenizer
        if vocabulary is not None and not has_own(run):
            tokenizer = str(vocabulary)
        check_complete(wishes, run, tokenizer)
        content = source_tables(wishes, preset, run, folder, tokenizer)
        content = with_sets({**content, "observables": []}, sets)
        asked_for = copy.deepcopy(content)
        read = partial(_read_sources, content, folder, vocabulary)
        trajectory, inputs, found, notes = _answers_whole(wishes, run, content, read)
        content["inputs"] |= found
        return cls(
            wishes,
            preset,
            folder,
            sets,
            content,
            asked_for,
            trajectory,
            inputs,
            list(notes),
        )

    @property
    def first(self) -> Inputs:
        """The input set that is studied."""
        return next(iter(self.inputs.values()))

    def fit(self, model: ModelFacts, agree: Callable[[str], bool]) -> None:
        """Fit length, controls, scored places and objective to what a checkpoint shows."""
        length = self.content["inputs"].get("max_length")
        longest = model.longest
        if longest is not None and isinstance(length, int) and longest < length:
            with _answers_within(longest):
                self._read_anew({"max_length": longest})
        if model.objective == "causal":
            if not _has_scores(self.content["inputs"]):
                scored, notes = _scored_places(self.trajectory, self.inputs, agree)
                self.notes += notes
                if scored:
                    self._read_anew(scored)
            _check_predicted(self.inputs)
        self.content["controls"] = controls_of(
            self.wishes,
            self.content["controls"],
            self.sets,
            self.trajectory,
            self.preset,
            model,
            self.first,
        )
        if model.objective and not model.named:
            self.content["trajectory"].setdefault("objective", model.objective)

    def observe(self, model: ModelFacts) -> tuple[ModelFacts, list[str]]:
        """Choose the observables that fit; return the facts, and what is said of examples."""
        model = self._read_by_tokenizer(model)
        entries, left_out = fitted(self.preset, model, len(self.trajectory))
        entries = _readable(self._as_scored(entries), self.inputs, left_out)
        entries = _with_prompts(entries, self.wishes.prompts, left_out)
        content = self.content
        entries += of_places(
            {**content, "observables": entries}, self.first, self.preset, model
        )
        entries += of_further_sets(content["inputs"], self.preset, model)
        lines: list[str] = []
        if self.wishes.abilities:
            tables, lines = examples_of(
                self.wishes.abilities, self.folder, self.preset, model
            )
            asked = {table["kind"] for table in tables}
            entries = [entry for entry in entries if entry["kind"] not in asked]
            entries += tables
            left_out = {k: why for k, why in left_out.items() if k not in asked}
        content["observables"] = entries
        content["left_out"] = _by_reason(left_out)
        return model, lines

    def texts_read(self) -> list[str]:
        """Return a line for each thing that is said of the texts."""
        lines: list[str] = []
        for name, texts in self.inputs.items():
            # Lines of training texts and of those of the base looked like those of the texts studied.
            of_set = "" if texts is self.first else f"input set {name!r}: "
            said = (texts.sentence, texts.repeats, *texts.warnings)
            lines += [of_set + line for line in filter(None, said)]
        usual = self.asked_for["inputs"]["max_length"]
        length = self.content["inputs"]["max_length"]
        if length > usual:
            lines.append(
                f"texts are read to {length} tokens instead of {usual}, for their answers "
                "(--max-length)"
            )
        return lines + self.notes

    def _read_anew(self, table: Mapping[str, Any]) -> None:
        self.content["inputs"] |= table
        self.inputs = sources_by_model(self.content, self.folder)[1]

    def _read_by_tokenizer(self, model: ModelFacts) -> ModelFacts:
        """Return the facts with what the tokenizer rules out: none, or one that reads no English."""
        named = self.content["trajectory"].get("tokenizer", "")
        if not has_tokenizer(named, self.trajectory):
            why = "there is no tokenizer to read its texts with"
            return replace(model, no_tokenizer=why)
        texts: list[str] = []
        if self.wishes.texts:
            for entry in self.inputs.values():
                texts += entry.texts or ()
        return replace(model, no_english=no_english(self.trajectory.tokenizer(), texts))

    def _as_scored(self, entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return observables with places that are not scored, and with what is beside the loss."""
        further = {"loss": self._beside_loss()}
        if self.wishes.floor and "loss" not in {entry["kind"] for entry in entries}:
            raise ArgumentError(
                f"--floor {self.wishes.floor} is the best possible loss of a token, and no loss of "
                "tokens is measured here."
            )
        if _has_scores(self.content["inputs"]):
            further["place-losses"] = {"every": True}
        return [entry | further.get(entry["kind"], {}) for entry in entries]

    def _beside_loss(self) -> dict[str, Any]:
        """Return the best possible loss and recorded ones; what is said of them is noted."""
        wishes = self.wishes
        trajectory = self.trajectory
        table = self.content["inputs"]
        beside: dict[str, Any] = {}
        floor, notes = best_loss(wishes.floor, wishes.texts, table, self.first)
        if floor is not None:
            beside["floor"] = floor
        recorded = recorded_losses(trajectory.path, list(trajectory), trajectory.unit)
        if recorded is not None:
            beside["recorded"] = [list(pair) for pair in recorded.pairs]
            beside["recorded_of"] = recorded.of
            notes.append(recorded.line)
        notes += training_texts_beside(wishes.texts, wishes.train_texts)
        if "split" not in table:
            notes += unused_column(wishes.texts)
        self.notes += notes
        return beside


def _with_prompts(
    entries: Sequence[dict[str, Any]],
    prompts: Sequence[str],
    left_out: Mapping[str, str],
) -> list[dict[str, Any]]:
    """Return observables with the prompts that were asked for, in presets that write nothing too."""
    if not prompts:
        return list(entries)
    if "writing" in left_out:
        raise ArgumentError(
            f"--prompts: the model cannot write, because {left_out['writing']}."
        )
    others = [entry for entry in entries if entry["kind"] != "writing"]
    return [*others, {"kind": "writing", "prompts": list(prompts)}]


def _readable(
    entries: Sequence[dict[str, Any]],
    inputs: Mapping[str, Inputs],
    left_out: dict[str, str],
) -> list[dict[str, Any]]:
    """Return the tables of a preset whose observables can use the texts; say why others cannot."""
    kept = []
    for table in entries:
        try:
            make(**table).check_inputs(inputs)
        except ArgumentError as error:
            left_out[table["kind"]] = str(error).rstrip(".")
        else:
            kept.append(table)
    return kept


def _by_reason(left_out: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return which observables are left out and why, as a study file has it."""
    kinds: dict[str, list[str]] = {}
    for kind, why in left_out.items():
        kinds.setdefault(why, []).append(kind)
    return [{"kinds": of_why, "why": why} for why, of_why in kinds.items()]


def _read_sources(
    content: dict[str, Any], folder: Path, vocabulary: Path | None
) -> _Read:
    """Return what `sources_by_model` does; of ids without a vocabulary that cannot be theirs."""
    try:
        return sources_by_model(content, folder)
    except ArgumentError as error:
        if vocabulary is None:
            raise
        if "tokens" not in content["inputs"]:
            beside_it = sorted(vocabulary.parent.glob("val*.bin"))
            ids = [f" Its token ids: --texts {path}" for path in beside_it[:1]]
            raise ArgumentError("".join([str(error), *ids])) from error
        content["trajectory"]["tokenizer"] = "none"
        try:
            run, inputs, found, of_ids = sources_by_model(content, folder)
        except ArgumentError:
            raise error from None
        line = f"tokens are shown as numbers, as {vocabulary} is not their vocabulary"
        return run, inputs, found, [*of_ids, f"{line}: {error}"]


def _answers_whole(
    wishes: Wishes, run: Trajectory, content: dict[str, Any], read: Callable[[], _Read]
) -> _Read:
    """Return what is read, with texts that reach to their answers where no length was said."""
    named = any(said.startswith("inputs.max_length=") for said in wishes.sets)
    is_said = named or wishes.max_length is not None
    first: _Read | None = None
    try:
        first = read()
        if is_said or not any(map(_cuts_answers, first[1].values())):
            return first
    except AnswersCutError:
        if is_said:
            raise
    usual = content["inputs"]["max_length"]
    longest = longest_of(run.checkpoints[-1])
    is_bound = longest is not None and longest <= LONGEST
    content["inputs"]["max_length"] = longest if is_bound else LONGEST
    with _answers_within(longest) if is_bound else nullcontext():
        trajectory, inputs, found, notes = read()
    if first is not None and _scored(first[1]) == _scored(inputs):
        content["inputs"]["max_length"] = usual
        return first
    length = max(int(texts.lengths.max()) for texts in inputs.values())
    content["inputs"]["max_length"] = length
    return trajectory, inputs, found, notes


@contextmanager
def _answers_within(longest: int | None) -> Iterator[None]:
    """Refuse texts whose answers a model that reads so many tokens never sees.

    The advice to read further would end here again.
    """
    try:
        yield
    except AnswersCutError:
        raise ArgumentError(
            f"the model reads {longest} tokens of a text, and what is scored stands behind them: "
            "give texts with shorter questions, or --score all."
        ) from None


def _scored(sets: Mapping[str, Inputs]) -> int:
    """Return how many tokens are scored in some input sets."""
    return sum(int(texts.scored.sum()) for texts in sets.values())


def _cuts_answers(texts: Inputs) -> bool:
    """Return whether some texts are cut, of which answers are scored."""
    return texts.answers is not None and texts.truncated + texts.dropped > 0


def _scored_places(
    trajectory: Trajectory, inputs: Mapping[str, Inputs], agree: Callable[[str], bool]
) -> tuple[dict[str, Any], list[str]]:
    """Return which places are scored, if any are proposed and agreed to, or a line that says so.

    Training texts are asked where there are some: what can be learned at all shows there, also of
    a run that does not generalise.
    """
    activity.now("asking three checkpoints at which places they predict")
    texts = inputs.get("training") or next(iter(inputs.values()))
    places = proposed_places(trajectory, texts)
    if places is None:
        return {}, []
    if agree(places.line):
        return places.table, []
    return {}, [f"{places.line}; --yes does it"]


def _check_predicted(inputs: Mapping[str, Inputs]) -> None:
    """Refuse texts of which first tokens alone are scored: nothing predicts them."""
    for name, texts in inputs.items():
        if texts.answers is not None and not next_tokens(texts).any():
            raise ArgumentError(
                f"nothing is scored in the input set {name!r}: only the first token of texts is "
                "asked for, and no token stands before it to predict it."
            )


def _has_scores(table: Mapping[str, Any]) -> bool:
    """Return whether it is said which places of the texts are scored."""
    return not {"score", "answer_after", "token_labels"}.isdisjoint(table)
