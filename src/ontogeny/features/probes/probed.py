"""Which labels of words a layer tells, at every checkpoint, beside a control task."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr

from ...arrays import to_numpy
from ...claims import Beside, Claim, Subject, measurement
from ...concepts.joint.snapshots import fixed_half
from ...errors import ArgumentError, CheckpointError, NonFiniteError
from ...figures import Section
from ...inputs import Inputs
from ...inputs.sampling import TokenSample
from ...needs import InputSet, Need
from ...observables import Observable, Reading, Run, by_layer
from ...observables.crossing import Crossing
from ...observables.own_texts import LayerReader, OwnTexts
from ...observables.pieces import object_array
from ...observables.readable import UNTRAINED, Case, Course, claims_of_readable
from ...quantities import Measured, Quantity
from ...summary.noise import mean_stderr
from ...tails import normal_above
from ...tasks.records import digest_of
from ...units import Units
from .fits import control_labels, majority, right
from .labelled_words import read_sentences
from .pieces_of_words import placed

log = logging.getLogger("ontogeny.probes")
LONGEST = 512  # tokens of a text at most
TYPES = "labels drawn per word type"
MAJORITY = "the most frequent label"


@dataclass(frozen=True)
class Probe(Observable):
    r"""How often a linear probe of a layer tells the label of a word, on texts it was not fitted to.

    The label of a word goes to its last token. Each half of the texts is told by a probe of the
    other half. Beside it stands a control task: labels drawn per word type, as frequent as the
    true ones, which a probe can only memorise. The difference is the selectivity.

    Parameters
    ----------
    labelled
        A file: CoNLL-U, or a word and its label on each line and an empty line between texts.
    field
        Of CoNLL-U: ``"upos"``, ``"xpos"``, ``"deprel"``, or a feature such as ``"Number"``.
    layers
        Patterns of layers.
    max_words
        Words that are kept, drawn once by whole texts; None keeps all.
    n_draws
        Control tasks.
    on
        Input set that says how the model is read; the first by default.
    random_state
        Seed of the words that are kept and of the control tasks.

    Notes
    -----
    J. Hewitt and P. Liang, "Designing and interpreting probes with control tasks", EMNLP 2019.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "tags.tsv"
    >>> _ = file.write_text("dogs\tNOUN\nrun\tVERB\n\nwe\tPRON\nsing\tVERB\n")
    >>> Probe(str(file)).stem
    'tags'
    """

    labelled: str | tuple[str, ...]
    field: str = ""
    layers: str | tuple[str, ...] = "resid"
    max_words: int | None = 5000
    n_draws: int = 5
    on: str | None = None
    random_state: int = 0

    kind = "probe"
    question = "Since when can a label of words be read from a layer?"
    requires = "a file of labelled words, a tokenizer"
    price = "one pass over the labelled texts and a fit for each layer"
    obstacles = ("no_tokenizer",)
    file_arguments = ("labelled",)
    minima = {"n_draws": 2, "max_words": 20}
    state_variables = ("words_left_out", "n_words", "n_labels")
    quantities = (
        Quantity(
            "accuracy",
            "words whose label a probe tells",
            several=True,
            units="share of words",
            rows="{layer} · label of words",
            minimum=0.0,
            better="higher",
            beats="majority",
            nulls={"types": TYPES, "majority": MAJORITY, "untrained": UNTRAINED},
            caption="On texts that the probe was not fitted to.",
        ),
        Quantity(
            "selectivity",
            "accuracy beyond that of labels drawn per word type",
            units="share of words",
            caption="What a probe does not memorise word by word.",
        ),
    )
    variables = {
        "n_words": ("labelled words", "words"),
        "n_labels": ("different labels", "labels"),
        "words_left_out": ("words that were left out, and why", ""),
        "types_of_text": ("accuracy of control tasks on each text", "share of words"),
        "majority_of_text": ("accuracy of the commonest label", "share of words"),
    }
    section = Section(
        title="Labels of words: {labelled} {field}",
        definition="Share of the words of held-out texts whose label a linear probe tells from the "
        "activation at their last token.",
        symbol="P(argmax W a = y)",
        null="Labels drawn per word type with the same frequencies, which a probe can only "
        "memorise; the most frequent label; the untrained model; control runs.",
        care="A label that can be read need not be used, and one that no linear probe reads may be "
        "there in another form.",
        source="Hewitt and Liang 2019",
    )

    def check(self) -> None:
        """Refuse a file that is none."""
        read_sentences(self._path, self.field)

    @property
    def _path(self) -> str:
        one = self.labelled
        return one if isinstance(one, str) else one[0]

    @property
    def stem(self) -> str:
        """The name of the file without its ending, and the field."""
        return "-".join(filter(None, [Path(self._path).stem, self.field]))

    def arguments(self) -> dict[str, Any]:
        """Return the fields; of the file its name, and a digest of what it holds."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        content = digest_of([self._path])
        return given | {"labelled": Path(self._path).name, "content": content}

    def files_read(self) -> Sequence[str | Path]:
        """Return none: `arguments` tells what they hold, wherever they lie."""
        return ()

    def needs(self) -> Sequence[Need]:
        """Return the layers to be read, and how the study's texts are laid out."""
        return [OwnTexts(self.layers, self.on), InputSet(self.on)]

    @property
    def _layers(self) -> OwnTexts:
        return OwnTexts(self.layers, self.on)

    def prepare(self, run: Run) -> xr.Dataset:
        """Return the labelled words as tokens, and what the untrained model tells of them."""
        reader: LayerReader = run.reading(run.reference_step)[self._layers]
        sentences = read_sentences(self._path, self.field)
        longest = min(reader.longest or LONGEST, LONGEST)
        words = placed(sentences, run.tokenizer(), longest)
        for line in words.left_out if run.is_trial else ():
            log.warning("%s: left out: %s", self.name, line)
        rows = _some(words.text, self.max_words, self.random_state)
        labels, label = np.unique(words.label[rows], return_inverse=True)
        text = words.text[rows]
        if len(np.unique(text)) < 2:
            raise ArgumentError("labelled words must come from at least two texts.")
        half = fixed_half(text)
        _check_labels(label, labels, half)
        tasks = control_labels(words.kind[rows], label, self.n_draws, self.random_state)
        inputs = words.inputs
        state = xr.Dataset(
            {
                "ids": (("text", "place"), inputs.ids),
                "mask": (("text", "place"), inputs.mask),
                "special": (("text", "place"), inputs.special),
                "word_text": ("word", text),
                "word_position": ("word", words.position[rows]),
                "task": (("of_task", "word"), np.concatenate([label[None], tasks])),
                "half": ("word", half),
                "n_words": float(len(rows)),
                "n_labels": float(len(labels)),
            }
        )
        if words.left_out:
            state["words_left_out"] = ("left", object_array(words.left_out))
        try:
            told = self._told(run.untrained()[self._layers], state)
        except (ArgumentError, CheckpointError, NonFiniteError):
            return state
        found = by_layer(told, lambda _, right: {"untrained": float(right[0].mean())})
        return state.merge(found.drop_vars("status"))

    def observe(self, reading: Reading, state: xr.Dataset | None) -> xr.Dataset:
        """Return how often probes of one checkpoint tell the labels, and those of controls."""
        assert state is not None
        units = Units(state.word_text.values)
        common = majority(state.task.values[0], state.half.values)

        def one(path: str, told: np.ndarray) -> dict[str, Any]:
            shares, counts = units.means(np.concatenate([told, common[None]]))
            types = shares[1:-1].mean(axis=0)
            nulls: dict[str, Any] = {
                "types": ("draw", told[1:].mean(axis=1)),
                "majority": float(common.mean()),
            }
            if "untrained" in state:
                nulls["untrained"] = float(state.untrained.sel(layer=path))
            own = Measured(
                float(told[0].mean()),
                of_text=("text", shares[0]),
                weights=("text", counts),
                nulls=nulls,
            )
            beyond = Measured(
                float(told[0].mean() - told[1:].mean()),
                of_text=("text", shares[0] - types),
                weights=("text", counts),
            )
            return {
                "accuracy": own,
                "selectivity": beyond,
                "types_of_text": ("text", types),
                "majority_of_text": ("text", shares[-1]),
            }

        return by_layer(self._told(reading[self._layers], state), one)

    def _told(self, reader: LayerReader, state: xr.Dataset) -> dict[str, np.ndarray]:
        """Return whether each word's label is told in each task (tasks, n), by layer."""
        parts = (state[name].values for name in ("ids", "mask", "special"))
        ids, mask, special = parts
        inputs = Inputs.from_tokens(ids, mask=mask, special=special)
        sample = TokenSample(state.word_text.values, state.word_position.values)
        values: dict[str, torch.Tensor] = reader.activations(inputs, sample)
        tasks = state.task.values
        half = state.half.values.astype(bool)
        return {path: right(to_numpy(A), tasks, half) for path, A in values.items()}

    def claims(self, name: str, data: xr.Dataset) -> Sequence[Claim]:
        """Return since when the label can be read from each layer, beyond both nulls."""
        return [
            *_counted(name, data),
            *claims_of_probe(name, data, self.field or "label"),
        ]


def _check_labels(label: np.ndarray, labels: np.ndarray, half: np.ndarray) -> None:
    """Refuse labels of one kind, of which nothing can be told."""
    if len(labels) < 2:
        raise ArgumentError(
            f"labels must be of at least two kinds; all words have {str(labels[0])!r}."
        )
    for part in (half, ~half):
        if len(np.unique(label[part])) < 2:
            raise ArgumentError(
                "each half of the texts must hold two labels at least; use more texts."
            )


def _some(text: np.ndarray, most: int | None, seed: int) -> np.ndarray:
    """Return rows of texts that are drawn until there are `most` words, in order."""
    if most is None or len(text) <= most:
        return np.arange(len(text))
    texts = np.random.default_rng([seed, 23]).permutation(np.unique(text))
    sizes = np.bincount(text)[texts]
    kept = texts[np.cumsum(sizes) <= most]
    return np.flatnonzero(np.isin(text, kept if len(kept) > 1 else texts[:2]))


def _counted(node: str, data: xr.Dataset) -> Iterator[Claim]:
    """Give how many words and labels there are, and what was left out."""
    if "n_words" not in data:
        return
    labels = float(data.n_labels)
    yield measurement(Subject(node, "n_words"), float(data.n_words), whole=labels)
    if "words_left_out" in data:
        lines = [str(line) for line in data.words_left_out.values]
        yield measurement(Subject(node, "words_left_out"), len(lines), parts=lines)


def claims_of_probe(node: str, data: xr.Dataset, label: str) -> Iterator[Claim]:
    """Give for each layer whether a label can be read from it, and since when."""
    if "accuracy" not in data or "step" not in data.accuracy.dims:
        return
    courses = {
        str(layer): Course.of(data, "accuracy", layer=layer)
        for layer in data.layer.values
    }
    cases = [_case(layer, label, c) for layer, c in courses.items() if c is not None]
    yield from claims_of_readable(node, cases, "types")


def _case(layer: str, label: str, course: Course) -> Case:
    """Return what the last step says of one layer, and since when it is above both nulls."""
    data = course.data
    draws = data.accuracy_types.transpose("step", "draw").values
    lines = [
        data[f"{n}_of_text"].transpose("step", "text").values
        for n in ("types", "majority")
    ]
    dates = [course.since(np.nan_to_num(line)) for line in lines]
    counted = course.weights[-1]
    above = [course.of_text[-1] - line[-1] for line in lines]
    errors = [float(mean_stderr(each, counted)) for each in above]
    errors[0] = math.hypot(errors[0], float(draws[-1].std(ddof=1)))
    means = [float(each @ counted / counted.sum()) for each in above]
    p_values = [
        float(normal_above(mean / error)) if error > 0 else float(mean <= 0)
        for mean, error in zip(means, errors, strict=True)
    ]
    return Case(
        layer,
        label,
        course,
        max(p_values),
        Crossing(*(max(getattr(d, n) for d in dates) for n in ("step", "low", "high"))),
        (
            Beside("null", TYPES, float(draws[-1].mean())),
            Beside("null", MAJORITY, float(data.accuracy_majority[-1])),
        ),
    )
