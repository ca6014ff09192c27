"""STEP imbalance: free embeddings, the paper's reweighting, and digits (App. A.4, D.1, Figs 9, 13).

The claim is an order of three questions: majorities are distinguished first, then
majorities from minorities, then minorities from each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import xarray as xr

from ontogeny import semantics
from ontogeny.figures import Band, Curves, Section, attach
from ontogeny.quantities import Quantity

from .. import tasks, training
from ..averages import mean_of_seeds
from ..recipe import Findings, Materials
from ..verdicts import RunsOf, Verdict, in_all

_KINDS = ("majority", "between", "minority")
_RULES = {
    "none": "no weights",
    "paper": "ω = R^−1/2, the paper's",
    "equal-rates": "ω = R^−1/4",
}
_QUESTIONS = ("majority", "between", "minority", "majority images", "minority images")
_ANSWERED = 0.95
_EVEN = 1.25  # half-times within a quarter of each other count as equal
_DIGITS = {
    "0, 1 many; 2, 3 few": ((0, 1), (2, 3), True),
    "2, 3 many; 0, 1 few": ((2, 3), (0, 1), True),
    "equal classes": ((0, 1), (2, 3), False),
}


@dataclass(frozen=True)
class ImbalanceSize:
    """Classes, ratio, images of a majority, updates, and seeds."""

    classes: int = 8
    ratio: int = 10
    per_majority: int = 100
    steps: int = 200
    every: int = 2
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)


def measure_imbalance(size: ImbalanceSize, materials: Materials) -> Findings:
    """Return when each kind of concept is learned, by free embeddings and by a network."""
    step = semantics.step_imbalance(size.classes, size.ratio)
    materials.progress.note(
        f"free embeddings: {size.classes} classes, ratio {size.ratio}"
    )
    piece = materials.pieces.piece
    flow = {rule: piece(f"flow-{rule}", partial(_flow, step, rule)) for rule in _RULES}
    nodes: dict[str, list[xr.Dataset]] = {}
    for i, (label, (majorities, minorities, uneven)) in enumerate(_DIGITS.items()):
        ratio = size.ratio if uneven else 1
        nodes[label] = materials.of_seeds(
            f"digits-{i}",
            f"digits, {label}",
            size.seeds,
            partial(_digits, majorities, minorities, ratio, size),
        )
    views = {"free-embeddings": _flow_view(flow), "digits": _digit_view(nodes)}
    factors = {
        ratio: _singular_values(size.classes, ratio) for ratio in (1, size.ratio)
    }
    error = np.abs(factors[size.ratio] - step.sigma).max()
    spread = {str(ratio): float(s.max() / s.min()) for ratio, s in factors.items()}
    numbers = (float(error), spread, flow, nodes)
    return Findings(views, numbers)


def judge_imbalance(
    error: float, spread: dict[str, float], flow: dict[str, xr.Dataset], nodes: RunsOf
) -> list[Verdict]:
    """Judge singular values, the order of free embeddings, and that of digits.

    `spread` is the largest singular value over the smallest, by the ratio of the classes.
    """
    return [
        _of_factors(error),
        _of_balance(spread),
        *_of_flow(flow),
        *_of_digits(nodes),
    ]


def _singular_values(classes: int, ratio: int) -> np.ndarray:
    return np.linalg.svd(semantics.step_imbalance(classes, ratio).S_centred)[1][
        : classes - 1
    ]


def _of_balance(spread: dict[str, float]) -> Verdict:
    (_, balanced), (ratio, uneven) = spread.items()
    return Verdict(
        "with equal classes all concepts are equally strong (App. A.4)",
        balanced < 1 + 1e-9,
        f"largest singular value {balanced:.3f} times the smallest",
        f"{uneven:.2f} times with {ratio} images of a majority for one of a minority",
    )


# ---- free embeddings ----------------------------------------------------------------------------


def _flow(step: semantics.StepImbalance, rule: str) -> xr.Dataset:
    """Return projection and half-time of each kind, in the weighted loss's own time."""
    weights = step.reweighting(rule) ** 2
    # Train_ufm scales weights to mean 1, which changes the time only.
    unit = weights.mean()
    run = semantics.train_ufm(
        step.S_centred,
        len(step.S),
        pi=weights,
        duration=40 * unit,
        step_size=0.05,
        records=100,
    )
    kinds = run.assign_coords(kind=("concept", step.kind)).groupby("kind").mean()
    data = kinds[["half_time"]] / unit
    data["learned"] = kinds.projection / kinds.sigma
    return data.assign_coords(time=run.time / unit).sel(kind=list(_KINDS))


def _of_factors(error: float) -> Verdict:
    return Verdict(
        "singular values √R, √((R+1)/2) and 1",
        error < 1e-10,
        f"largest difference to the numerical ones {error:.1g}",
        "the printed V needs a factor 1/√R to be orthonormal",
    )


def _of_flow(flow: dict[str, xr.Dataset]) -> list[Verdict]:
    times = {rule: data.half_time.values for rule, data in flow.items()}
    spread = {rule: float(t.max() / t.min()) for rule, t in times.items()}
    ordered = bool((np.diff(times["none"]) > 0).all())
    return [
        Verdict(
            "free embeddings learn majorities, then majorities against minorities, then minorities",
            ordered,
            f"half-times {_joined(times['none'])}",
            f"with ω = R^−1/4 {_joined(times['equal-rates'])}",
        ),
        Verdict(
            "weights ω = R^−1/2 make all concepts learned together",
            spread["paper"] <= _EVEN,
            f"half-times {_joined(times['paper'])}: the slowest takes {spread['paper']:.1f} times "
            "as long"
            + (", in reversed order" if times["paper"][0] > times["paper"][-1] else ""),
            f"no weights {spread['none']:.1f} times",
        ),
        Verdict(
            "ω = R^−1/4 does",
            spread["equal-rates"] <= _EVEN,
            f"half-times {_joined(times['equal-rates'])}: {spread['equal-rates']:.1f} times",
            f"no weights {spread['none']:.1f} times",
            of_paper=False,
        ),
    ]


def _flow_view(flow: dict[str, xr.Dataset]) -> xr.Dataset:
    data = xr.concat(
        [dataset.interp(time=flow["none"].time) for dataset in flow.values()],
        dim=xr.Variable("weights", list(_RULES.values())),
    )
    data.learned.attrs.update(
        long_name="share of the singular value reached", units="1"
    )
    data.time.attrs.update(long_name="time of the weighted loss's flow", units="1")
    figure = Curves(
        "kinds",
        "Which kind of concept is learned when",
        value="learned",
        x="time",
        series="kind",
        facet="weights",
        caption="Aligned start, square loss; mean of the concepts of a kind.",
    )
    section = Section(
        "Free embeddings",
        "Half of the classes have R examples, the others one; the weighted square loss.",
        symbol="½ ‖(S̃ − W H) Ω‖²",
        care="Growth rates are the singular values of S̃ Ω², not of S̃ Ω.",
    )
    return attach(data, section, [figure])


# ---- digits -------------------------------------------------------------------------------------


def _digits(
    majorities: tuple[int, int],
    minorities: tuple[int, int],
    ratio: int,
    size: ImbalanceSize,
    seed: int,
) -> xr.Dataset:
    """Return how well each question is answered along one training, and since when for good."""
    # The same number of images in all, so that only their shares differ.
    per_majority = round(size.per_majority * (1 + 1 / size.ratio) / (1 + 1 / ratio))
    data = tasks.imbalanced_digits(
        majorities,
        minorities,
        per_majority=per_majority,
        ratio=ratio,
        random_state=seed,
    )
    labels = data.labels
    few_images = data.labels >= 2

    def measure(logits: np.ndarray) -> xr.Dataset:
        many = logits[:2]
        few = logits[2:]
        answers = [
            _balanced(many[1] > many[0], labels == 1, labels < 2),
            _balanced(few.max(0) > many.max(0), few_images, labels >= 0),
            _balanced(few[1] > few[0], labels == 3, few_images),
        ]
        right = logits.argmax(0) == labels
        answers += [float(right[~few_images].mean()), float(right[few_images].mean())]
        return xr.Dataset(
            {"right": ("question", answers)}, coords={"question": list(_QUESTIONS)}
        )

    run = training.record_logits(
        training.digit_network(4, random_state=seed),
        training.DigitTask(data),
        size.steps,
        at=range(0, size.steps + 1, size.every),
        measure=measure,
        random_state=seed,
    )
    since = semantics.first_crossing(run.step, run.right.T, _ANSWERED, lasting=True)
    return run[["right"]].assign(since=("question", since))


def _balanced(answers: np.ndarray, true: np.ndarray, asked: np.ndarray) -> float:
    """Return the mean of the shares of right answers of the two sides: 0.5 by chance."""
    return float(
        np.mean([answers[asked & true].mean(), 1 - answers[asked & ~true].mean()])
    )


def _of_digits(nodes: RunsOf) -> list[Verdict]:
    since = {
        label: np.array([one.since for one in runs]) for label, runs in nodes.items()
    }
    *uneven, even = since
    many, between, few, many_images, few_images = np.nan_to_num(
        np.concatenate([since[label] for label in uneven]).T, nan=np.inf
    )
    middle = (between > many) & (between < few)
    last = (between > many) & (between >= few)
    chance = f"by chance in all of {len(many)} runs: {0.5 ** len(many):.2g}"
    return [
        Verdict(
            "images of minorities are classified correctly later than those of majorities (Fig. 9)",
            in_all(few_images > many_images),
            "; ".join(
                f"{label}: {_steps(since[label], slice(3, 5))}" for label in uneven
            ),
            f"equal classes {_steps(since[even], slice(3, 5))}; {chance}",
        ),
        Verdict(
            "minorities are distinguished from each other after the majorities",
            in_all(few > many),
            "; ".join(
                f"{label}: {_steps(since[label], slice(0, 3, 2))}" for label in uneven
            ),
            f"equal classes {_steps(since[even], slice(0, 3, 2))}; {chance}",
        ),
        Verdict(
            "majorities against minorities come between the two",
            in_all(middle),
            f"in {int(middle.sum())} of {len(many)} runs; last of the three in {int(last.sum())}",
            "between the two in a third of random orders",
        ),
    ]


def _steps(since: np.ndarray, part: slice) -> str:
    """Return the range over seeds of the steps of the chosen questions."""
    finite = [column[np.isfinite(column)] for column in since.T]
    return ", ".join(
        f"{question} {c.min():.0f} to {c.max():.0f}" if len(c) else f"{question} never"
        for question, c in zip(_QUESTIONS[part], finite[part], strict=True)
    )


def _digit_view(nodes: RunsOf) -> xr.Dataset:
    figure = Curves(
        "right",
        "Which question is answered when",
        value="right",
        series="question",
        facet="run",
        bands=[Band("chance", "chance", "chance")],
    )
    section = Section(
        "Digits",
        "A network of three convolutions learns four digits, two of them with few images; for each "
        "question the share of right answers, mean of its two sides; for images the share that is "
        "classified correctly among all four.",
        null="Equal classes of the same digits, and the digits exchanged.",
        care="Some digits are harder than others: compare with the equal classes.",
    )
    taken = {
        label: [one[["right"]].assign(chance=0.5) for one in runs]
        for label, runs in nodes.items()
    }
    right = Quantity("right", "share of right answers", figure=False)
    return mean_of_seeds(taken, [right], section, figures=[figure])


def _joined(times: np.ndarray) -> str:
    return ", ".join(f"{kind} {t:.1f}" for kind, t in zip(_KINDS, times, strict=True))
