"""Algorithm 1: AdamW as the report prints it, PyTorch's, and the loop that trains here."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ontogeny.figures import Section
from ontogeny.quantities import Quantity
from ontogeny.tasks import split_texts, train_tokenizer
from ontogeny.training import demo_model, masked_language_modelling, train
from ontogeny.training.loop import adamw_one_cycle
from ontogeny.training.masked import MaskedBatch, MaskedLanguageModelling, masked_logits

from ..averages import mean_of_seeds
from ..formats import short
from ..recipe import Findings, Materials, MeasuredRecipe
from ..verdicts import Runs, Verdict, each, if_finite, unanimous

# Of the way that the weights went: updates that are the same up to rounding.
_EQUAL = 1e-6
_CLIP = 1.0
_RATE = 3e-3
_BETAS = (0.9, 0.999)
_EPSILON = 1e-8
_DECAY = 0.1  # large, so that where it is applied can be seen in a short run


@dataclass(frozen=True)
class AdamWSize:
    """Updates, hidden units of a model of one block, size of the vocabulary, seeds."""

    steps: int = 200
    width: int = 64
    vocab_size: int = 1024
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)


class Moments(NamedTuple):
    """First and second moment of one parameter's gradient, as Algorithm 1 keeps them."""

    m: Tensor
    v: Tensor


def printed_update(
    theta: Tensor,
    gradient: Tensor,
    moments: Moments,
    t: int,
    rate: float,
    betas: tuple[float, float],
    decay: float,
) -> Moments:
    """Change `theta` in place by one line of Algorithm 1 after the other; return the moments."""
    beta1, beta2 = betas
    m = beta1 * moments.m + (1 - beta1) * gradient
    v = beta2 * moments.v + (1 - beta2) * gradient**2
    m_hat = m / (1 - beta1**t)
    v_hat = v / (1 - beta2**t)
    theta -= rate * (m_hat / (v_hat.sqrt() + _EPSILON) + decay * theta)
    return Moments(m, v)


def measure_adamw(size: AdamWSize, materials: Materials) -> Findings:
    """Return how far apart the three are, and what they make of the loss."""
    training, heldout = split_texts(materials.texts, 0.05)
    tokenizer = train_tokenizer(training, vocab_size=size.vocab_size)
    task, unseen = (
        masked_language_modelling(texts, tokenizer, length=32, tokens_per_step=512)
        for texts in (training, heldout)
    )
    model = partial(demo_model, tokenizer, layers=1, width=size.width)
    runs = materials.of_seeds(
        "adamw",
        "AdamW as printed beside PyTorch's",
        size.seeds,
        lambda seed: _compared(
            model(random_state=seed).double(), task, unseen, size.steps, seed
        ),
    )
    nodes = {"updates": _updates_view(runs), "loss": _loss_view(runs)}
    return Findings(nodes, (runs,))


def _compared(
    model: nn.Module,
    task: MaskedLanguageModelling,
    unseen: MaskedLanguageModelling,
    steps: int,
    seed: int,
) -> xr.Dataset:
    """Train copies of a model by every rule on the same batches, step by step."""
    draw = torch.Generator().manual_seed(seed)
    batches = [task.sample(draw) for _ in range(steps)]
    test = unseen.sample(draw)
    start = _flat(model)
    ends: dict[str, list[Tensor]] = {
        "printed": _by_printed_rule(model, batches, [_RATE] * steps),
        "pytorch": _by_optimizer(model, batches, torch.optim.AdamW),
        "coupled": _by_optimizer(model, batches, torch.optim.Adam),
        "loop": _by_loop(model, batches),
    }
    rates = _rates(model, steps)
    ends["printed as the loop"] = _by_printed_rule(
        model,
        batches,
        rates,
        betas=(0.9, 0.98),
        decay=0.01,
        clip=_CLIP,
        matrices_only=True,
    )
    ends["printed, the loop's rates"] = _by_printed_rule(
        model, batches, rates, betas=(0.9, 0.98), decay=0.01
    )
    ends["turned"] = _turned(start, ends["printed"], seed)

    def apart(one: str, other: str) -> np.ndarray:
        """Return the distance relative to the way from the start, (steps,)."""
        way = [float((w - start).norm()) for w in ends[other]]
        distance = [
            float((a - b).norm()) for a, b in zip(ends[one], ends[other], strict=True)
        ]
        return np.array(distance) / np.array(way)

    pairs = {
        "apart_pytorch": apart("printed", "pytorch"),
        "apart_coupled": apart("coupled", "pytorch"),
        "apart_loop": apart("printed as the loop", "loop"),
        "apart_without": apart("printed, the loop's rates", "loop"),
    }
    losses = {
        name: [_loss_at(model, w, test) for w in (start, *ends[name])]
        for name in ("printed", "pytorch", "turned")
    }
    return xr.Dataset(
        {name: ("update", values) for name, values in pairs.items()}
        | {f"loss_{name}": ("step", values) for name, values in losses.items()}
        | _objective(model, task, batches[0])
    )


# ---- the rules ----------------------------------------------------------------------------------


def _loss(model: nn.Module, batch: MaskedBatch) -> Tensor:
    """Return the objective (MLM) in the precision of the model."""
    return cross_entropy(masked_logits(model, batch), batch.targets)


def _by_printed_rule(
    model: nn.Module,
    batches: Sequence[MaskedBatch],
    rates: Sequence[float],
    *,
    betas: tuple[float, float] = _BETAS,
    decay: float = _DECAY,
    clip: float | None = None,
    matrices_only: bool = False,
) -> list[Tensor]:
    """Return the weights after every update of Algorithm 1."""
    net = copy.deepcopy(model)
    parameters = list(net.parameters())
    state = [Moments(torch.zeros_like(p), torch.zeros_like(p)) for p in parameters]

    def step(t: int) -> None:
        if clip is not None:
            nn.utils.clip_grad_norm_(parameters, clip)
        with torch.no_grad():
            for i, p in enumerate(parameters):
                if p.grad is not None:
                    rate = decay if p.ndim >= 2 or not matrices_only else 0.0
                    state[i] = printed_update(
                        p, p.grad, state[i], t, rates[t - 1], betas, rate
                    )

    return list(_trained(net, batches, step))


def _by_optimizer(
    model: nn.Module,
    batches: Sequence[MaskedBatch],
    kind: Callable[..., torch.optim.Optimizer],
) -> list[Tensor]:
    net = copy.deepcopy(model)
    optimizer = kind(
        net.parameters(), lr=_RATE, betas=_BETAS, eps=_EPSILON, weight_decay=_DECAY
    )
    return list(_trained(net, batches, lambda t: optimizer.step()))


def _trained(
    model: nn.Module, batches: Sequence[MaskedBatch], step: Callable[[int], object]
) -> Iterator[Tensor]:
    for t, batch in enumerate(batches, 1):
        model.zero_grad(set_to_none=True)
        _loss(model, batch).backward()
        step(t)
        yield _flat(model)


def _by_loop(model: nn.Module, batches: Sequence[MaskedBatch]) -> list[Tensor]:
    """Return the weights after every update of `ontogeny.training.train` as it is used."""
    net = copy.deepcopy(model)
    weights = []
    train(
        net,
        batches,
        _loss,
        len(batches),
        clip=_CLIP,
        on_step=[lambda step, trained: weights.append(_flat(trained))],
    )
    return weights[1:]


def _rates(model: nn.Module, steps: int) -> list[float]:
    """Return the learning rate of every update of the loop's schedule."""
    optimizer, schedule = adamw_one_cycle(model, steps)
    rates = []
    for _ in range(steps):
        rates.append(float(optimizer.param_groups[0]["lr"]))
        optimizer.step()  # without gradients nothing moves
        schedule.step()
    return rates


def _turned(start: Tensor, weights: Sequence[Tensor], seed: int) -> list[Tensor]:
    """Return a run that moves as far at every update, in random directions."""
    draw = torch.Generator().manual_seed(seed + 1)
    directions = [start]
    before = start
    for after in weights:
        direction = torch.randn(start.shape, generator=draw, dtype=start.dtype)
        directions.append(
            directions[-1] + direction * ((after - before).norm() / direction.norm())
        )
        before = after
    return directions[1:]


def _flat(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


@torch.no_grad()
def _loss_at(model: nn.Module, weights: Tensor, batch: MaskedBatch) -> float:
    shifted = copy.deepcopy(model)
    nn.utils.vector_to_parameters(weights, shifted.parameters())
    return float(_loss(shifted, batch))


@torch.no_grad()
def _objective(
    model: nn.Module, task: MaskedLanguageModelling, batch: MaskedBatch
) -> dict[str, float]:
    """Return how far the loss of the loop is from −log q of what was masked, and how much is."""
    logits = model(batch.ids).logits.flatten(0, 1)
    q = torch.softmax(logits, -1)
    masked = batch.ids.flatten() == task.mask_id
    by_hand = -q[masked].gather(1, batch.targets[:, None]).log().mean()
    return {
        "objective_error": float((task.loss(model, batch) - by_hand).abs() / by_hand),
        "masked_share": len(batch.targets) / batch.ids.numel(),
        "unigram_entropy": task.unigram_entropy,
    }


# ---- verdicts and curves ------------------------------------------------------------------------


def judge(runs: Runs) -> list[Verdict]:
    """Judge whether printed updates are those of PyTorch and of the loop, and what they learn."""
    steps = runs[0].sizes["update"]

    def last(name: str) -> np.ndarray:
        return each(runs, lambda run: run[name][-1])

    errors = each(runs, lambda run: run.objective_error)
    first = each(runs, lambda run: run.loss_printed[0])
    # Rounding errors of double precision grow to 3e-6 in 200 updates: the rule shows before.
    few = steps // 10
    equal = each(runs, lambda run: run.apart_pytorch[few - 1])
    coupled = each(runs, lambda run: run.apart_coupled[few - 1])
    loop = last("apart_loop")
    share = each(runs, lambda run: run.masked_share)
    falls = first - last("loss_printed")
    control = first - last("loss_turned")
    return [
        Verdict(
            "AdamW as printed is PyTorch's AdamW",
            unanimous((equal < _EQUAL) & (coupled > 1e3 * _EQUAL), equal),
            f"after {few} updates the weights are {short(equal)} of their way apart, after {steps} "
            f"{short(last('apart_pytorch'))}: training amplifies rounding errors",
            f"Adam with the decay in the gradient instead: {short(coupled)}, then "
            f"{short(last('apart_coupled'))}",
        ),
        Verdict(
            "the loop that trains here makes these updates",
            unanimous(loop < _EQUAL, loop),
            f"given its learning rates, clipped gradients, β₂ = 0.98 and decay of matrices only: "
            f"{short(loop)} of the way apart",
            f"with its rates and β₂ alone: {short(last('apart_without'))}; the report prints "
            "neither a schedule nor clipping",
            of_paper=False,
        ),
        Verdict(
            "the objective here is the cross-entropy of what was masked",
            unanimous(errors < _EQUAL, errors),
            f"−log q averaged over the masked tokens by hand: {short(errors)} apart, relative",
            f"{share.mean():.0%} of the tokens are masked (the report does not say how many)",
            of_paper=False,
        ),
        Verdict(
            "AdamW lowers that objective",
            if_finite(falls.min() > max(0.1, control.max()), falls, control),
            f"on held-out text, by {short(falls)} nats from {short(first)}",
            f"updates as long in random directions: by {short(control)} nats",
        ),
    ]


def _updates_view(runs: Runs) -> xr.Dataset:
    labels = {
        "apart_pytorch": "printed against PyTorch",
        "apart_coupled": "decay in the gradient against PyTorch",
        "apart_loop": "printed, with all that the loop adds, against the loop",
        "apart_without": "printed at the loop's rates against the loop",
    }
    updates = {
        label: [
            xr.Dataset(
                {"apart": ("step", run[name].values)},
                {"step": run["update"].values + 1},
            )
            for run in runs
        ]
        for name, label in labels.items()
    }
    quantity = Quantity(
        "apart", "distance of the weights, share of their way", y_scale="log"
    )
    section = Section(
        "Weights under each rule",
        "The same model and the same batches, one update after the other in double precision.",
        care="A distance of rounding errors grows with the updates, since training amplifies it.",
        source="Bernas 2025, Algorithm 1",
    )
    return mean_of_seeds(updates, [quantity], section, role="motion")


def _loss_view(runs: Runs) -> xr.Dataset:
    labels = {
        "printed": "AdamW as printed",
        "pytorch": "PyTorch's AdamW",
        "turned": "random directions",
    }
    losses = {
        label: [
            xr.Dataset(
                {"loss": ("step", run[f"loss_{name}"].values)},
                {"step": np.arange(run.sizes["step"])},
            )
            for run in runs
        ]
        for name, label in labels.items()
    }
    section = Section(
        "The objective",
        "Cross-entropy of masked tokens of held-out texts.",
        null="Updates of the same length in random directions.",
        source="Bernas 2025, eq. (MLM)",
    )
    quantity = Quantity("loss", "masked cross-entropy", "nats per token")
    return mean_of_seeds(losses, [quantity], section, role="motion")


RECIPES = (
    MeasuredRecipe(
        "concepts-algorithm-1",
        "AdamW as printed, and its objective",
        "models are trained by AdamW, whose update is printed, on masked language modelling.",
        "Bernas 2025, sec. 3.3, Algorithm 1",
        AdamWSize(),
        AdamWSize(60, 32, 512, (0, 1)),
        "long trainings, in which rounding errors grow.",
        reads_text=True,
        measure=measure_adamw,
        judge=judge,
    ),
)
