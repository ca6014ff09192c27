"""What the model puts in gaps of texts, and from which step on it is right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ...claims import Beside, Certainty, Claim, Kind, Reason, Subject, measurement
from ...claims.places import RIGHT
from ...claims.values import of_controls
from ...figures import Column, Curves, Figure, Section, Table
from ...inputs import Inputs
from ...observables import PresetEntry, Run, dataset
from ...observables.crossing import leads_from
from ...observables.of_predictions import OfPredictions
from ...observables.pieces import PIECES, pieces_variable, whole_numbers, with_pieces
from ...observables.word_frequencies import shares_elsewhere
from ...quantities import Measured, Quantity
from ...trees import Nodes
from ...words.one_model import is_one_model
from .choice import choose_gaps
from .gaps import Gaps, check_sentences, gaps_at, given_gaps, labelled
from .word_gaps import Words, choose_words, letters_of, likeliest_words, with_words

_LINE = {"frequencies": "{word} frequencies alone"}


@dataclass(frozen=True)
class Predictions(OfPredictions):
    """What the model puts in gaps: its likeliest answers, and how likely it finds the right one.

    A masked model sees the text with the gap masked; a causal model sees what stands before the
    gap, and nothing behind it. Where tokens are characters it is asked for whole words, which are
    spelled out: see `ontogeny.features.predictions.word_gaps`. Beside the model stands a guess from
    frequencies, those of the other texts of the input set.

    Parameters
    ----------
    sentences
        Sentences with one gap each, written ``____``, or ``____[answer]`` where the right answer
        is known. An answer of several tokens is masked as a whole, and its first token is asked
        for. Without sentences, gaps are chosen in the texts of the input set, by a rule that sees
        no model: see `ontogeny.features.predictions.choice`.
    n_gaps, random_state
        How many gaps are chosen, and the seed of the draw.
    top
        How many of the likeliest answers are kept.
    on
        Input set; the first by default. Its texts should not be those of training.
    objective
        ``"auto"``, ``"causal"`` or ``"masked"``.

    Examples
    --------
    >>> Predictions(["Return the number of ____[items] in the list."]).top
    5
    """

    sentences: tuple[str, ...] = ()
    n_gaps: int = 6
    top: int = 5
    random_state: int = 0

    kind = "predictions"
    minima = {"n_gaps": 1, "top": 1}
    question = "What does the model say in gaps of sentences, and is it right?"
    price = "a few texts"
    presets = (
        PresetEntry(
            ("quick", "standard", "circuits", "fine-tuning", "everything", "one-model"),
            {"top": "$answers"},
            20,
        ),
    )
    state_variables = (
        *("right_id", "frequency", "frequent_id", "frequent_share"),
        *("right_letter", "frequent_letter"),
        *("gap_before", "gap_after", PIECES),
    )
    quantities = (
        Quantity(
            "right",
            "probability of the right answer",
            minimum=0.0,
            better="higher",
            nulls=_LINE,
            optional=True,
            heading="Probability of the right answer, mean over gaps",
            caption="Grey: how frequent the right answers are in the other texts.",
        ),
        Quantity(
            "right_first",
            "share of gaps whose first answer is right",
            minimum=0.0,
            better="higher",
            nulls=_LINE,
            optional=True,
            figure=False,
        ),
        Quantity(
            "shared_first_answer",
            "gaps that share one first answer",
            units="gaps",
            noise="exact",
            nulls=_LINE,
            caption="The largest number of gaps with the same first answer. Who knows nothing but "
            "frequencies gives the same answer everywhere (grey).",
        ),
    )
    compared = ("right_probability",)
    section = Section(
        title="What the model says",
        definition="The likeliest answers at gaps in fixed texts, and the probability of the one "
        "that stands there: a {word}, and in texts of characters a whole word, whose probability is "
        "the product of those of its characters and of its end. The right answer leads from a "
        "{checkpoint} on if it is the first answer at this and all later {checkpoint}s.",
        symbol="p(x | text around the gap; θₜ)",
        null="Frequencies: the share of the right answer in the other texts, and their most "
        "frequent one as the answer to all gaps.",
        care="A few examples; the measure of the model is its loss. Other answers may be as good "
        "as the one that stands in the text. A causal model does not see what follows a gap.",
    )
    variables = {
        "answer_id": ("likeliest answers", ""),
        "answer_probability": ("probability of the likeliest answers", "1"),
        "right_id": ("right answer", ""),
        "right_probability": ("probability of the right answer", "1"),
        "right_rank": ("rank of the right answer among those looked at", ""),
        "right_leads_from": (
            "{checkpoint} from which on the right answer leads",
            "{step}s",
        ),
        "right_leads_after": (
            "last {checkpoint} before the right answer leads",
            "{step}s",
        ),
        "frequency": ("share of the right answer in other texts", "1"),
        "frequent_id": ("most frequent answer in the other texts", ""),
        "frequent_share": ("share of the most frequent answer in the other texts", "1"),
        "gap_before": ("text before the gap", ""),
        "gap_after": ("text after the gap", ""),
        "gap_text": ("text", ""),
        "right_text": ("right answer", ""),
        "answer_at_first": ("first answer at the first {checkpoint}", ""),
        "answer_at_last": ("first answer at the last {checkpoint}", ""),
        "piece_text": ("how a token is written", ""),
    }

    def check(self) -> None:
        """Refuse sentences without one gap."""
        check_sentences(self.sentences)

    def prepare(self, run: Run) -> xr.Dataset:
        """Return the gaps, with what word frequencies say of them."""
        asked, texts = self.needs()
        reading = run.reading(run.reference_step)
        inputs = reading[texts]
        pieces = run.pieces(texts)
        masked = reading[asked].masked
        # One letter is no answer: words are spelled out, which a masked model does not do.
        is_spelled = not masked and inputs.is_spelled
        words = Words.of(inputs) if is_spelled else None
        if words is not None and not words.position.any():
            words = None  # none that something stands before
        if self.sentences:
            gaps = given_gaps(self.sentences, run.tokenizer())
            unit = np.full(len(gaps), -1)  # texts of their own
        else:
            gaps = self._chosen(inputs, words, pieces)
            unit = gaps.unit
        if words is not None:
            right = letters_of(gaps)
            beside = words.elsewhere(inputs.groups, right, unit)
            beside["right_letter"] = (("gap", "letter"), right)
        else:
            right_ids = np.maximum(gaps.right_id, 0)
            share, frequent, its = shares_elsewhere(inputs, right_ids, unit)
            share[gaps.right_id < 0] = np.nan
            beside = {
                "frequency": ("gap", share),
                "frequent_id": ("gap", frequent),
                "frequent_share": ("gap", its),
            }
        beside[PIECES] = pieces_variable(pieces)
        state = (gaps if masked else gaps.cut()).to_dataset().assign(beside)
        return state.assign_attrs(longest=inputs.ids.shape[1])

    def _chosen(
        self, inputs: Inputs, words: Words | None, pieces: Sequence[str]
    ) -> Gaps:
        """Return gaps in the texts of the input set, of whole words where these are known."""
        if words is None:
            places = choose_gaps(inputs, self.n_gaps, self.random_state)
            return gaps_at(inputs, *places, pieces)
        at = choose_words(inputs, words, self.n_gaps, self.random_state)
        return gaps_at(
            inputs, words.text[at], words.position[at], pieces, words.width[at]
        )

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return the answers of one checkpoint."""
        assert state is not None
        gaps = Gaps.of_dataset(state)
        kind, at_gaps = self._answers(reading[self.needs()[0]], gaps, state)
        has_answer = gaps.right_id >= 0
        probability = np.exp(at_gaps["right_log_probability"])
        first = at_gaps["right_rank"] == 1
        answers = at_gaps[kind]
        dims = ("gap", "rank", "letter")[: answers.ndim]
        counts = np.unique(answers[:, 0], return_counts=True, axis=0)[1]
        measured: dict[str, Any] = {
            "shared_first_answer": int(counts.max()),
            kind: (dims, answers),
            "answer_probability": (
                ("gap", "rank"),
                np.exp(at_gaps["answer_log_probability"]),
            ),
        }
        if has_answer.any():
            unit = gaps.unit[has_answer]
            measured["right"] = _over_gaps(probability[has_answer], unit)
            measured["right_first"] = _over_gaps(
                first[has_answer].astype(np.float64), unit
            )
        data = dataset(measured).assign_coords(rank=np.arange(1, self.top + 1))
        return data.assign(
            right_probability=("gap", np.where(has_answer, probability, np.nan)),
            right_rank=("gap", np.where(has_answer, at_gaps["right_rank"], -1)),
        )

    def _answers(
        self, model: Any, gaps: Gaps, state: xr.Dataset
    ) -> tuple[str, dict[str, np.ndarray]]:
        """Return the name of the answers, and what `Predictor.at` or `likeliest_words` gives."""
        if "right_letter" in state:
            pieces = [str(piece) for piece in state[PIECES].values]
            letters = state["right_letter"].values
            room = int(state.attrs["longest"])
            return "answer_letter", likeliest_words(
                model.at, gaps, letters, pieces, self.top, room
            )
        at_gaps = model.at(
            gaps.inputs,
            np.arange(len(gaps)),
            gaps.position,
            width=gaps.width,
            top=self.top,
        )
        return "answer_id", {name: at_gaps[name].values for name in at_gaps}

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Return the cells with the steps at which the right tokens lead, and tokens as texts."""
        if "right_rank" not in data:
            return data
        leads = (data.right_rank == 1).where(data.right_rank.notnull())
        begin, before = leads_from(
            data.step.values, leads.transpose("step", "gap").values
        )
        if "answer_letter" in data:
            data = whole_numbers(with_words(data), ["right_rank"])
        else:
            ids = ["answer_id", "right_id", "frequent_id"]
            data = with_pieces(whole_numbers(data, [*ids, "right_rank"]), ids)
        data = data.assign(
            right_leads_from=("gap", begin), right_leads_after=("gap", before)
        )
        return labelled(data.assign(_by_frequencies(data)))

    def figures(self, data: xr.Dataset, nodes: Nodes) -> Sequence[Figure]:
        """Return the gaps as a table, and the probability of each right token."""
        if "gap_text" not in data:
            return []
        has_answers = bool((data.right_id >= 0).any())
        columns = (
            [Column("gap_text", "text"), Column("right_text", "right")]
            if has_answers
            else []
        )
        columns = columns or [Column("gap_text", "text")]
        if is_one_model(data):
            return [_of_one_model(columns)]
        columns += [
            Column("answer_at_first", "first {checkpoint}"),
            Column("answer_at_last", "last {checkpoint}"),
        ]
        columns += (
            [Column("right_leads_from", "right from {checkpoint} on")]
            if has_answers
            else []
        )
        table = Table(
            "answers",
            "What it puts in the gap",
            columns=columns,
            rows="gap",
            caption="First answers with their probabilities at the first and the last "
            "{checkpoint}. The right answer leads from a {checkpoint} on if it stays the first "
            "answer; it took the lead between this checkpoint and the one before.",
        )
        curves = Curves(
            "right-of-gaps",
            "Probability of the right answer in each gap",
            value="right_probability",
            series="gap",
        )
        return [table, curves] if has_answers else [table]

    def claims(self, name: str, data: xr.Dataset) -> Sequence[Claim]:
        """Return which gaps came to be right, above 90 %, and how many are."""
        if "right_rank" not in data or "run" in data.right_rank.dims:
            return []
        return [*_gained(name, data), *_shared(name, data), *_led(name, data)]


def _gained(name: str, data: xr.Dataset) -> list[Claim]:
    """Return which gaps went from a wrong first answer to the right one."""
    there = data.dropna("step", subset=["right_rank"], how="all")
    if there.sizes["step"] < 2:
        return []
    ends = there.isel(step=[0, -1])
    (first, last), ranks = (
        ends[of].transpose("step", "gap").values
        for of in ("right_probability", "right_rank")
    )
    gained = (ranks[0] > 1) & (ranks[1] == 1) & (last >= RIGHT)
    return [
        Claim(
            Kind.GAINED,
            Subject(name, "right_probability", label=str(data.gap.values[gap])),
            Certainty.OPEN,
            Reason.FEW_TEXTS,  # an example is one text
            value=float(last[gap] - first[gap]),
            first=float(first[gap]),
            last=float(last[gap]),
            units="1",
            evidence=(f"{name}/right_probability",),
            figure=f"{name}/right-of-gaps",
        )
        for gap in np.flatnonzero(gained)
    ]


def _of_one_model(columns: Sequence[Column]) -> Table:
    caption = "First answers with their probabilities."
    heads = [*columns, Column("answer_at_last", "answer")]
    return Table(
        "answers", "What it puts in the gap", columns=heads, rows="gap", caption=caption
    )


def _shared(name: str, data: xr.Dataset) -> Iterator[Claim]:
    """Give how many gaps share an answer where most do, and at the end."""
    shared = data.shared_first_answer.dropna("step")
    most = shared.isel(step=int(shared.values.argmax()))
    if int(most) < 2:  # none shares one with another
        return
    last = shared.isel(step=-1)
    for one in (most, last) if int(last) < int(most) else (last,):
        if int(one) > 1:
            yield measurement(
                Subject(name, "shared_first_answer"),
                int(one),
                whole=float(data.sizes["gap"]),
                since=float(one.step),
            )


def _led(name: str, data: xr.Dataset) -> Iterator[Claim]:
    """Give in how many gaps the right token leads at the end, beside a guess."""
    count = int((data.right_id >= 0).sum())
    if not count:
        return
    steps = data.shared_first_answer.dropna("step").step.values
    at_first = (data.right_rank.sel(step=steps[0]) == 1).sum()
    beside = [Beside("reference", "at first", int(at_first))]
    if "right_first_frequencies" in data:
        guessed = int((data.frequent_id == data.right_id).sum())
        beside.append(Beside("null", "most frequent answer", guessed))
    if "right_first_control" in data:
        beside += of_controls(data.right_first_control.sel(step=steps[-1]) * count)
    yield measurement(
        Subject(name, "right_leads_from"),
        int(data.right_leads_from.notnull().sum()),
        whole=count,
        beside=beside if steps[0] < steps[-1] else beside[1:],
        figure=f"{name}/answers",
    )


def _over_gaps(values: np.ndarray, unit: np.ndarray) -> Measured:
    return Measured.over_texts(float(values.mean()), values, np.ones(len(values)), unit)


def _by_frequencies(data: xr.Dataset) -> dict[str, float]:
    """Return what a guess from word frequencies gives for each quantity."""
    has_answer = data.right_id >= 0
    variables = {"shared_first_answer_frequencies": float(data.sizes["gap"])}
    if "right" in data and data.frequency[has_answer.values].notnull().all():
        variables["right_frequencies"] = float(data.frequency[has_answer.values].mean())
        right = (data.frequent_id == data.right_id)[has_answer.values]
        variables["right_first_frequencies"] = float(right.mean())
    return variables
