"""Tasks of EleutherAI's lm-evaluation-harness, asked at every checkpoint (extra ``eval``)."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from ...errors import ArgumentError, MissingExtraError
from ...figures import Section
from ...observables.pieces import object_array
from ...observables.readings import Run
from .examples import OfGroups, accuracy, by_group, commonest, names_of
from .guesses import guesses, one_answer
from .token_texts import HEADLESS, TokenTexts, tokenised


@dataclass(frozen=True)
class Harness(OfGroups):
    """Tasks of the lm-evaluation-harness, whose every example is right or wrong, by tasks.

    The harness makes the prompts and judges the answers; the checkpoint that is loaded is asked.
    Nothing is fetched where task and data lie in `folders`. Chance is one over the number of
    choices, or the share of the commonest right one where examples share their choices, or without
    choices that of the commonest answer.

    Parameters
    ----------
    tasks
        Names of tasks or groups.
    folders
        Folders with task files, in the place of those of the package. Code that they name is run:
        read a stranger's before.
    metric
        Which metric of a task; the first by default. Its values must be 0 or 1.
    limit
        How many examples of each task.
    on
        Input set whose layout counts; the first by default.
    objective
        ``"auto"`` or ``"causal"``.

    Examples
    --------
    >>> Harness("arc_easy", limit=200).tasks  # doctest: +SKIP
    ('arc_easy',)
    """

    tasks: tuple[str, ...]
    folders: tuple[str, ...] = ()
    metric: str = ""
    limit: int | None = None

    kind = "harness"
    measured = "right"
    question = "How well does the model do on tasks of the evaluation harness?"
    requires = "texts, a vocabulary head, pip install 'ontogeny[eval]'"
    minima = {"limit": 1}
    file_arguments = ("folders",)
    state_variables = (
        "group_of_example",
        "prompt",
        "answer_text",
        "chance",
        "cluster",
        "left_out",
    )
    quantities = accuracy("example", "that are right", "chance", ngrams=False)
    section = Section(
        title="Evaluation harness",
        definition="The share of a task's examples that are right, by its own metric.",
        null="One over the number of choices, or the share of the commonest right answer among "
        "examples that share them.",
        source="Gao et al., lm-evaluation-harness",
    )
    variables = {
        "prompt": ("prompt", ""),
        "answer_text": ("right answer", ""),
        "chance": ("probability to be right by chance", "1"),
        **names_of("example"),
    }

    def check(self) -> None:
        """Refuse a place where the harness is not installed, and folders that are not there."""
        harness_library()
        for folder in self.folders:
            if not Path(folder).is_dir():
                raise ArgumentError(
                    f"folders must name folders of task files; got {folder!r}."
                )

    def files_read(self) -> Sequence[Path]:
        """Return all files of its folders."""
        paths = chain.from_iterable(Path(folder).rglob("*") for folder in self.folders)
        return sorted(p for p in paths if p.is_file() and p.suffix != ".pyc")

    def samples(self, answers: Sequence[tuple[float, bool]] = ()) -> Judged:
        """Return what the harness asks for, and what it says of each example by the answers.

        Parameters
        ----------
        answers
            Log-probability of each continuation that is asked for, and whether each of its tokens
            is the likeliest. Without, of a model that knows nothing.

        Raises
        ------
        ArgumentError
            If there is no such task or metric, a task asks for something else, or a value is
            neither 0 nor 1.
        """
        library = harness_library()
        model = _answering(answers)
        manager = _manager(
            self.folders, tuple(p.stat().st_mtime_ns for p in self.files_read())
        )
        if unknown := [task for task in self.tasks if not manager.match_tasks([task])]:
            raise ArgumentError(
                f"tasks must be tasks of the harness; got {unknown[0]!r}."
            )
        options = {"limit": self.limit, "bootstrap_iters": 0, "task_manager": manager}
        with _one_at_a_time:
            results = library.simple_evaluate(model, tasks=[*self.tasks], **options)
        samples = []
        for task, of_task in results["samples"].items():
            for sample in sorted(of_task, key=lambda record: record["doc_id"]):
                if sample["filter"] == of_task[0]["filter"]:
                    right = self._right(sample)
                    samples.append({**sample, "group": task, "right": right})
        return samples, model.asked

    def _right(self, sample: Mapping[str, Any]) -> float:
        metric = self.metric or sample["metrics"][0]
        if metric not in sample["metrics"]:
            raise ArgumentError(
                f"metric must be one of {sample['metrics']}; got {metric!r}."
            )
        if not np.isscalar(sample[metric]) or float(sample[metric]) not in (0, 1):
            raise ArgumentError(
                f"metric must be 0 or 1 for each example, and {metric!r} is not."
            )
        return float(sample[metric])

    def prepare(self, run: Run) -> xr.Dataset:
        """Return what the harness asks for as tokens, and its examples."""
        predictor = run.reading(run.reference_step)[self.needs()[0]]
        samples, asked = self.samples()
        options = {"masked": predictor.masked, "longest": predictor.longest}
        before, after = zip(*asked, strict=True)
        tokens, problems = tokenised(before, after, run.tokenizer(), **options)
        bad = {pair: why for pair, why in zip(asked, problems, strict=True) if why}
        first = dict(zip(asked, tokens.first_unscored.tolist(), strict=True))
        why = [_why_not(s["arguments"], bad, first) for s in samples]
        groups = [s["group"] for s in samples]
        targets = [str(s["target"]) for s in samples]
        # Beside answers to a prompt a metric may ask for them without it (acc_mutual_info).
        asked_of = [s["arguments"] for s in samples]
        choices = [
            [str(a[1]) for a in pairs if a[0] or not any(b[0] for b in pairs)]
            for pairs in asked_of
        ]
        right = [_right_text(*both) for both in zip(samples, choices, strict=True)]
        chance, cluster = guesses(groups, choices, right)
        is_free = np.array([len(some) < 2 for some in choices])
        chance = np.where(is_free, commonest(groups, targets), chance)
        cluster = np.where(is_free, len(cluster) + one_answer(groups, targets), cluster)
        state = {
            "group_of_example": ("example", object_array(groups)),
            "prompt": (
                "example",
                object_array([str(s["arguments"][0][0]) for s in samples]),
            ),
            "answer_text": ("example", object_array(targets)),
            "chance": ("example", chance),
            "cluster": ("example", cluster),
        }
        good = np.array([not reason for reason in why])
        data = xr.Dataset(state).isel(example=good)
        if left_out := [f"{g}: {w}" for g, w in zip(groups, why, strict=True) if w]:
            data["left_out"] = ("left_out", object_array(left_out))
        return data.assign({**tokens.variables(), "good": ("sample", good)})

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return whether each example is right, and the accuracy of each task."""
        assert state is not None
        scores, ranks = TokenTexts.of_state(state).scores_and_ranks(
            reading[self.needs()[0]]
        )
        samples, _ = self.samples(
            [*zip(scores.tolist(), (ranks == 1).tolist(), strict=True)]
        )
        right = np.array([sample["right"] for sample in samples])[
            state.good.values.astype(bool)
        ]
        groups, share, _ = by_group(state, "example", right)
        variables = {"right": ("example", right), "accuracy": ("group", share)}
        return xr.Dataset(variables, coords={"group": groups})

    def right_of(self, data: xr.Dataset) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return which examples are right, the chance of each, and which go together."""
        right = data.right.transpose("step", "example").values
        return right, data.chance.values, data.cluster.values


def _why_not(
    pairs: Sequence[tuple[str, str]],
    bad: Mapping[tuple[str, str], str],
    first: Mapping[tuple[str, str], int],
) -> str:
    """Return why an example cannot be asked, empty if it can."""
    heads = {first[pair] for pair in pairs} - {-1}
    compared = HEADLESS if len(heads) > 1 else ""
    return next((bad[pair] for pair in pairs if pair in bad), compared)


def _right_text(sample: Mapping[str, Any], options: Sequence[str]) -> str:
    """Return the right one of some answers, which a task may name by its place."""
    target = sample["target"]
    is_place = isinstance(target, int) and 0 <= target < len(options)
    return options[target] if is_place else str(target)


Judged = tuple[list[dict[str, Any]], list[tuple[str, str]]]


def harness_library() -> Any:
    """Return the package of the harness.

    Raises
    ------
    MissingExtraError
        If it is not installed.
    """
    try:
        return import_module("lm_eval")
    except ImportError as error:
        raise MissingExtraError(
            "the harness needs the package lm-eval: pip install 'ontogeny[eval]'."
        ) from error


# Tasks hold what they ask and are told until they are judged.
_one_at_a_time = threading.Lock()


@lru_cache(maxsize=2)
def _manager(folders: tuple[str, ...], _changed: tuple[int, ...]) -> Any:
    """Return the tasks of folders, each of which is built once and asked at every checkpoint."""
    kind = import_module("lm_eval.tasks").TaskManager
    manager = kind(include_path=list(folders) or None, include_defaults=not folders)
    load = cache(lambda tasks: kind.load(manager, [*tasks]))
    manager.load = lambda tasks: load(tuple(tasks))
    return manager


def _answering(answers: Sequence[tuple[float, bool]]) -> Any:
    """Return a model for the harness that gives these answers, and notes what it was asked."""
    LM = import_module("lm_eval.api.model").LM

    class Answering(LM):  # type: ignore[misc, valid-type]
        asked: ClassVar[list[tuple[str, str]]] = []

        def loglikelihood(self, requests: Sequence[Any]) -> list[tuple[float, bool]]:
            first = len(self.asked)
            self.asked.extend(request.args for request in requests)
            given = list(answers[first : len(self.asked)])
            return given or [(-1.0, False) for _ in requests]

        def generate_until(self, requests: Sequence[Any]) -> list[str]:
            raise ArgumentError(
                "tasks must ask for probabilities of texts; one of them asks for free text or for "
                "perplexities."
            )

        loglikelihood_rolling = generate_until

    return Answering()
