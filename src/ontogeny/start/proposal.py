"""A study that fits a run: what was wished, filled in by what one of its checkpoints shows."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import activity, own_code
from ..capture.predicted import next_tokens
from ..errors import ArgumentError
from ..inputs import Inputs
from ..inputs.vocabularies import VOCABULARY_FILES
from ..machine import one_thread
from ..observables import ModelFacts
from ..summary.learning import MIRRORED
from ..trajectory import Trajectory
from ..trajectory.audit import early as early_findings
from ..trajectory.audit.weight_values import is_initialisation
from ..trajectory.elsewhere import checkpoints_below
from ..trajectory.recorded import recorded_losses
from .asked import not_as_asked
from .best_loss import best_loss
from .examples import examples_of, no_english
from .further_sets import of_further_sets, training_texts_beside, unused_column
from .id_types import sources_by_model
from .one_shape import of_other_shapes
from .places import of_places, proposed_places
from .presets import FINE_TUNING, ONE_MODEL, Preset, fitted, preset_named
from .sets import with_sets
from .shown import look
from .source import check_source, is_repository, open_source
from .source_tables import WITHOUT_RENAMING, are_token_ids, classifies, source_tables
from .wishes import Wishes

_RENAMED = 7  # tokens have 5,040 renamings; six have fewer than are drawn


@dataclass(frozen=True)
class Proposal:
    """A study file's content, and what it was made of.

    Attributes
    ----------
    available
        Checkpoints that there are.
    lines
        Which they are, in which order, and what is left out.
    texts
        What the texts are, and what too little of them costs.
    """

    wishes: Wishes
    preset: Preset
    content: Mapping[str, Any]
    shown: ModelFacts
    available: int
    lines: Sequence[str]
    texts: Sequence[str] = ()

    @property
    def left_out(self) -> dict[str, str]:
        """Why observables of the preset are not in it, by kind."""
        entries = self.content.get("left_out", ())
        reasons: dict[str, str] = {}
        for entry in entries:
            reasons |= dict.fromkeys(entry["kinds"], entry["why"])
        return reasons

    def left_out_lines(self) -> list[str]:
        """Return for each reason which observables of the preset are left out."""
        return [
            f"left out: {', '.join(entry['kinds'])}, because {entry['why']}"
            for entry in self.content.get("left_out", ())
        ]


@one_thread()
def propose(
    wishes: Wishes,
    folder: Path,
    before: Callable[[Trajectory], None] = lambda _: None,
    agree: Callable[[str], bool] = lambda _: False,
) -> Proposal:
    """Load one checkpoint and return the study that fits.

    Parameters
    ----------
    wishes
        What was asked for.
    folder
        Where the study file is to stand: its paths are relative to it.
    before
        Called with the chosen checkpoints before the first is loaded, and so perhaps downloaded.
    agree
        Called with what trial passes show of the places that can be learned, where that is not all
        of them; whether these are to be scored.

    Raises
    ------
    OntogenyError
        If anything that was asked for cannot be; the message says what can.
    """
    check_source(wishes.source)
    early = [arg for arg in wishes.sets if not arg.startswith("observables.")]
    late = [arg for arg in wishes.sets if arg.startswith("observables.")]
    preset_named(wishes.preset)  # wrong names are refused before anything is opened
    _check_files(wishes)
    activity.now(f"opening {wishes.source}")
    as_given = wishes
    wishes, run, of_shapes = _opened(wishes)
    preset = preset_named(_fitting_preset(wishes, run))
    activity.now("reading texts and tokenizer")
    beside_texts = _vocabulary(wishes)
    tokenizer = wishes.tokenizer
    if beside_texts is not None and not _has_own(run):
        tokenizer = str(beside_texts)
    _check_complete(wishes, run, tokenizer)
    content = source_tables(wishes, preset, run, folder, tokenizer)
    content = with_sets({**content, "observables": []}, early)
    asked_for = copy.deepcopy(content)
    trajectory, inputs, found, of_ids = _read_sources(content, folder, beside_texts)
    content["inputs"] |= found
    before(trajectory)
    lines = _trajectory_lines(wishes, preset, trajectory, run)
    if of_shapes:
        lines.insert(1, of_shapes)
    activity.now(
        "looking at the last checkpoint: its layers, losses and attention maps"
    )
    model = look(trajectory[int(trajectory.steps[-1])], next(iter(inputs.values())))
    length = content["inputs"].get("max_length")
    longest = model.longest
    if longest is not None and isinstance(length, int) and longest < length:
        content["inputs"]["max_length"] = longest
        inputs = sources_by_model(content, folder)[1]
    content["controls"] = _controls(
        wishes, content["controls"], early, trajectory, preset, model
    )
    if model.objective == "causal" and not _has_scores(content["inputs"]):
        scored, notes = _scored_places(trajectory, inputs, agree)
        of_ids = [*of_ids, *notes]
        if scored:
            content["inputs"] |= scored
            inputs = sources_by_model(content, folder)[1]
    if model.objective == "causal":
        _check_predicted(inputs)
    if model.objective and not model.named:
        content["trajectory"].setdefault("objective", model.objective)
    lines += not_as_asked(early, wishes.max_length, asked_for, content)
    model = _read_by_tokenizer(model, wishes, content, trajectory, inputs)
    entries, left_out = fitted(preset, model, len(trajectory))
    first = next(iter(inputs.values()))
    of_loss, notes = _beside_loss(wishes, trajectory, content["inputs"], first)
    entries = _as_scored(entries, content["inputs"], of_loss)
    of_ids = [*of_ids, *notes]
    so_far = {**content, "observables": entries}
    entries += of_places(so_far, first, preset, model)
    entries += of_further_sets(content["inputs"], preset, model)
    if wishes.abilities:
        tables, notes = examples_of(wishes.abilities, folder, preset, model)
        asked = {table["kind"] for table in tables}
        entries = [entry for entry in entries if entry["kind"] not in asked]
        entries += tables
        left_out = {kind: why for kind, why in left_out.items() if kind not in asked}
        lines += notes
    content["observables"] = entries
    content["left_out"] = _by_reason(left_out)
    read: list[str] = []
    for name, texts in inputs.items():
        # Lines of training texts and of those of the base looked like those of the texts studied.
        of_set = "" if texts is first else f"input set {name!r}: "
        lines_of = (texts.sentence, texts.repeats, *texts.warnings)
        read += [of_set + line for line in filter(None, lines_of)]
    read += of_ids
    final = with_sets(content, late)
    return Proposal(as_given, preset, final, model, len(run), lines, read)


def _by_reason(left_out: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return which observables are left out and why, as a study file has it."""
    kinds: dict[str, list[str]] = {}
    for kind, why in left_out.items():
        kinds.setdefault(why, []).append(kind)
    return [{"kinds": of_why, "why": why} for why, of_why in kinds.items()]


def _opened(wishes: Wishes) -> tuple[Wishes, Trajectory, str]:
    """Return a run, without checkpoints of other shapes unless steps were named, and what to say."""
    run = open_source(wishes.source, choice=wishes.choice)
    if is_repository(wishes.source) or run.has_base or "," in wishes.steps:
        return wishes, run, ""
    others, line = of_other_shapes(run, wishes.model)
    if others:
        wishes = replace(wishes, exclude=[*wishes.exclude, *others])
        run = open_source(wishes.source, choice=wishes.choice)
    return wishes, run, line


def _read_sources(
    content: dict[str, Any], folder: Path, vocabulary: Path | None
) -> tuple[Trajectory, dict[str, Inputs], dict[str, str], list[str]]:
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


def _check_files(wishes: Wishes) -> None:
    """Refuse files that are not there."""
    for option, paths in (
        ("--texts", wishes.texts),
        ("--abilities", wishes.abilities),
        ("--token-labels", wishes.token_labels),
        ("--train-texts", wishes.train_texts),
        ("--base-texts", wishes.base_texts),
    ):
        for path in paths:
            path = path.rpartition(":")[0] if own_code.is_own(path) else path
            if not {*path} & {*"*?["} and not Path(path).expanduser().exists():
                raise ArgumentError(f"{option} {path}: there is no such file.")


def _trajectory_lines(
    wishes: Wishes, preset: Preset, trajectory: Trajectory, run: Trajectory
) -> list[str]:
    """Return which checkpoints are taken of a run, and what an audit finds at once."""
    lines = trajectory.lines()
    if len(trajectory) < len(run) and not wishes.steps:
        thinned = f"preset {preset.name} takes {len(trajectory)}; --steps all takes all"
        lines.insert(1, thinned)
    # Before anything is computed; the audit of the result says the same.
    if not is_repository(wishes.source):
        findings = early_findings(list(trajectory), run.catalogue, run.path)
        lines += [f"audit: {finding.message}" for finding in findings]
    return lines


def _read_by_tokenizer(
    model: ModelFacts,
    wishes: Wishes,
    content: Mapping[str, Any],
    trajectory: Trajectory,
    inputs: Mapping[str, Inputs],
) -> ModelFacts:
    """Return the facts with what the tokenizer rules out: none, or one that reads no English."""
    named = content["trajectory"].get("tokenizer", "")
    if not _has_tokenizer(named, trajectory):
        return replace(
            model, no_tokenizer="there is no tokenizer to read its texts with"
        )
    texts: list[str] = []
    if wishes.texts:
        for entry in inputs.values():
            texts += entry.texts or ()
    return replace(model, no_english=no_english(trajectory.tokenizer(), texts))


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


def _as_scored(
    entries: Sequence[dict[str, Any]],
    table: Mapping[str, Any],
    of_loss: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Return observables with places that are not scored, and with what stands beside the loss."""
    further: dict[str, dict[str, Any]] = {}
    if _has_scores(table):
        further["place-losses"] = {"every": True}
    further["loss"] = dict(of_loss)
    return [entry | further.get(entry["kind"], {}) for entry in entries]


def _beside_loss(
    wishes: Wishes, trajectory: Trajectory, table: Mapping[str, Any], inputs: Inputs
) -> tuple[dict[str, Any], list[str]]:
    """Return the best possible loss and recorded ones, and what is said of them and the texts."""
    beside: dict[str, Any] = {}
    floor, notes = best_loss(wishes.floor, wishes.texts, table, inputs)
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
    return beside, notes


def _has_scores(table: Mapping[str, Any]) -> bool:
    """Return whether it is said which places of the texts are scored."""
    return not {"score", "answer_after", "token_labels"}.isdisjoint(table)


def _check_reads_texts(run: Trajectory) -> None:
    """Refuse models of images and of sound, by the class that their configuration names."""
    import transformers

    names = (run.checkpoints[-1].configuration() or {}).get("architectures")
    # Whatever a foreign file holds there.
    for name in names if isinstance(names, list) else ():
        name = str(name)
        reads = getattr(
            getattr(transformers, name, None), "main_input_name", "input_ids"
        )
        if reads != "input_ids":
            raise ArgumentError(
                f"{name} reads {reads}; only models that read texts are studied."
            )


def _controls(
    wishes: Wishes,
    table: Mapping[str, Any],
    sets: Sequence[str],
    run: Trajectory,
    preset: Preset,
    model: ModelFacts,
) -> Mapping[str, Any]:
    """Return the table of control runs that fits these checkpoints; what was set stays."""
    if len(run) == 1:  # nothing moves that a control could follow
        return {"count": 0}
    chosen = {assignment.partition("=")[0].strip() for assignment in sets}
    if _begins_trained(run, wishes.source) and "controls.kind" not in chosen:
        count = (
            _in_pairs(table["count"])
            if "controls.count" in chosen
            else 2 * preset.controls
        )
        table = {**table, "kind": MIRRORED, "count": count}
    elif _is_hardly_renamed(model) and "controls.count" not in chosen:
        least = WITHOUT_RENAMING if table["count"] else 0
        table = {**table, "count": max(table["count"], least)}
    if "controls.steps" not in chosen:
        # Of mirrored ones only the luck from the first step to the last counts; the one between is
        # for a run that diverged at the end. Others have half-change steps, which take four. More
        # only costs: of SmolLM2 with six steps, controls took 36 of 42 readings.
        least = 3 if table["kind"] == MIRRORED else max(4, len(run) // 2)
        table = {**table, "steps": min(preset.control_steps, least)}
    return table


def _is_hardly_renamed(model: ModelFacts) -> bool:
    """Return whether a model has so few tokens that renaming them has hardly another outcome."""
    return model.tokens is not None and model.tokens < _RENAMED


def _check_complete(wishes: Wishes, run: Trajectory, tokenizer: str) -> None:
    """Refuse what has no class or no tokenizer; both are said at once, with how to give them."""
    if not wishes.model:
        _check_reads_texts(run)
    last = run.checkpoints[-1]
    lacking = []
    ways = []
    if not wishes.model and last.template is None and last.configuration() is None:
        lacking.append("no config.json, so its model class is not known")
        ways.append("name a function that builds the model, --model model.py:build")
    if not any(are_token_ids(wishes.texts)) and not _has_tokenizer(tokenizer, run):
        lacking.append("no tokenizer to read texts with")
        ways.append(
            "give --tokenizer, a name on the Hub, a folder or nanoGPT's meta.pkl, or token ids "
            "with --texts val.bin (or .npy, .pt)"
        )
    if lacking:
        # Composer's files have a folder `huggingface` beside them.
        below = checkpoints_below(run.path, 1) if run.path and run.path.is_dir() else []
        others = f" Or name {below[0]}, which holds checkpoints too." if below else ""
        what = ", and ".join(lacking)
        how = "; and ".join(ways)
        raise ArgumentError(f"{wishes.source} has {what}: {how}.{others}")


def _in_pairs(count: Any) -> Any:
    """Return the next even number; what is no number is refused where the study is made."""
    return count + count % 2 if isinstance(count, int) else count


def _begins_trained(run: Trajectory, source: str) -> bool:
    """Return whether the first checkpoint is no initialisation: motion mostly harms such a run.

    Of a repository, whose first weights may be large, only the step is asked.
    """
    first = int(run.steps[0])
    return first > 0 if is_repository(source) else not is_initialisation(run[first])


def _fitting_preset(wishes: Wishes, run: Trajectory) -> str:
    """Return the preset that was asked for; of the standard one, what the run's kind needs."""
    if wishes.preset != "standard":
        return wishes.preset
    if len(run) == 1:
        return ONE_MODEL
    return FINE_TUNING if run.has_base or classifies(run) else wishes.preset


def _vocabulary(wishes: Wishes) -> Path | None:
    """Return the file of a vocabulary beside token ids or texts, as of nanoGPT."""
    if wishes.tokenizer or not wishes.texts:
        return None
    folder = Path(wishes.texts[0]).expanduser().parent
    places = (folder / name for name in VOCABULARY_FILES)
    return next((place for place in places if place.is_file()), None)


def _has_own(run: Trajectory) -> bool:
    """Return whether a run has a tokenizer that can be read."""
    try:
        return run.tokenizer() is not None
    except ArgumentError:
        return False


def _has_tokenizer(tokenizer: str, run: Trajectory) -> bool:
    return tokenizer != "none" if tokenizer else run.tokenizer() is not None
