"""What the page shows of a predicted order and of weights that change it."""

from __future__ import annotations

import numpy as np
import xarray as xr

from ontogeny import semantics
from ontogeny.figures import Column, Curves, Section, Table, attach
from ontogeny.quantities import Quantity

from ..averages import mean_of_seeds
from ..verdicts import Runs

ADVANCED = "weights"
INVERTED = "inverted weights"
RANDOM = "random weights"


def order_node(
    order: semantics.PredictedOrder, result: semantics.OrderComparison
) -> xr.Dataset:
    """Return the table of the predicted order and the measured one."""
    learned = np.median(
        np.where(np.isnan(result.learned_at), np.inf, result.learned_at), axis=0
    )
    rate = order.rate_interval
    rank = order.rank_interval
    data = xr.Dataset(
        {
            "rate": ("concept", order.rates),
            "rate_low": ("concept", rate[:, 0]),
            "rate_high": ("concept", rate[:, 1]),
            "rank_low": ("concept", rank[:, 0]),
            "rank_high": ("concept", rank[:, 1]),
            "learned": ("concept", np.where(np.isinf(learned), np.nan, learned)),
        },
        coords={"concept": [f"{i} · {w}" for i, w in enumerate(order.labels(), 1)]},
    )
    table = Table(
        "order",
        "The predicted order and the measured one",
        rows="concept",
        columns=[
            Column("rate", "predicted growth rate", interval=("rate_low", "rate_high")),
            Column("rank_low", "place, at least"),
            Column("rank_high", "place, at most"),
            Column("learned", "half learned at step, median of the seeds"),
        ],
    )
    section = Section(
        "Predicted order",
        "Growth rate of every concept from a small start, from the text alone, and the step from "
        "which on half of it is learned.",
        symbol="σₖ of centred P diag(π); share = uₖᵀ softmax(L) diag(π) vₖ / σₖ",
        null="Concepts of the same text with shuffled next words, in the same models.",
        care=f"Intervals are over {order.units:,} resampled {order.unit}. Concepts that the "
        "median seed does not learn have no step.",
    )
    return attach(data, section, [table], [f"Predicted against measured: {result}."])


def curves_node(
    plain: Runs, changed: dict[int, dict[str, list[xr.Dataset]]]
) -> xr.Dataset:
    """Return the learned share of each chosen concept, with all weights and with none."""
    kinds = ("no weights", ADVANCED, INVERTED, RANDOM)

    def of_seed(concept: int, seed: int) -> xr.Dataset:
        runs = [plain[seed], *(by_seed[seed] for by_seed in changed[concept].values())]
        shares = [run.share.isel(corpus=0, concept=concept - 1) for run in runs]
        return xr.Dataset(
            {"share": xr.concat(shares, xr.Variable("weights", list(kinds)))}
        )

    runs_of = {
        f"concept {concept}": [of_seed(concept, seed) for seed in range(len(plain))]
        for concept in changed
    }
    figure = Curves(
        "share",
        "Learned share of the chosen concept",
        value="share",
        series="weights",
        facet="run" if len(runs_of) > 1 else None,
    )
    section = Section(
        "Intervention",
        "The same training, seed by seed, with weights of the loss by context that should advance "
        "one concept.",
        null="Weights that change every rate the other way, and the same weights at random "
        "contexts that are about as frequent.",
    )
    share = Quantity("share", "learned share of the concept", figure=False)
    return mean_of_seeds(runs_of, [share], section, figures=[figure])


def effects_node(effects: xr.Dataset) -> xr.Dataset:
    """Return the table of what the weights change."""
    rows = [
        f"concept {c} · {w}"
        for c in effects.concept.values
        for w in effects.weights.values
    ]
    stacked = effects.stack(row=("concept", "weights")).drop_vars(
        ("row", "concept", "weights")
    )
    data = stacked.mean("seed").assign_coords(row=rows)
    sd = (
        stacked.std("seed", ddof=1)
        if effects.sizes["seed"] > 1
        else stacked.mean("seed") * np.nan
    )
    data = data.assign(
        {f"{name}_sd": ("row", sd[name].values) for name in effects.data_vars}
    )
    table = Table(
        "effects",
        "What the weights change, mean and SD over seeds",
        rows="row",
        columns=[
            Column("ratio", "rate of the concept multiplied by", sd="ratio_sd"),
            Column("gained", "octaves of steps sooner", sd="gained_sd"),
            Column("others", "other concepts, mean", sd="others_sd"),
            Column("cost", "loss on held-out text, nats more", sd="cost_sd"),
        ],
    )
    section = Section(
        "What moved, and at what cost",
        "Area between the curves of the learned share with and without weights, over log2(step): "
        "one octave is half of the steps.",
    )
    return attach(data, section, [table])
