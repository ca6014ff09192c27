"""Sparse latents of the state that the answer is read from, and what removing them costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ontogeny.capture.layers import check_patterns
from ontogeny.concepts import SAE
from ontogeny.errors import ArgumentError, check_number
from ontogeny.figures import Section
from ontogeny.inputs import Inputs
from ontogeny.needs import Gradients, Need
from ontogeny.observables.arguments import check_names, check_wholes
from ontogeny.observables.base import Observable
from ontogeny.observables.variables import dataset
from ontogeny.quantities import Measured, Quantity
from ontogeny.summary.noise import mean_stderr
from ontogeny.trees import Nodes
from ontogeny.units import Units

from .accuracy import answers
from .correlations import Correlations, correlations
from .state import ReadoutState

ABLATIONS = ("reconstruction", "count", "position", "random", "matched", "largest")


@dataclass(frozen=True)
class SaeProbe(Observable):
    """Sparse autoencoder on one state at the last token: correlated latents, and their ablation.

    Half of the texts fit the autoencoder and choose latents; the other half measures. A latent is
    removed by subtracting its decoded contribution from the state, so that what the autoencoder
    does not reconstruct stays as it is.

    Removed are the `removed` latents that correlate most with the number of marker tokens
    (``count``), with a marker at one of the positions (``position``), the same number of random
    active ones (``random``: mean of `n_draws`), ones whose contribution has the nearest energy to
    those of ``count`` (``matched``), and those of the largest energy (``largest``);
    ``reconstruction`` replaces the state by the decoded one.

    Parameters
    ----------
    marker_ids
        Tokens whose number and positions are looked for.
    layer
        One site whose output the answer depends on at the last token; the last block by default.
    on
        Input set with labels; at least 100 texts, of several numbers of markers.
    variants
        ``"vanilla"`` (ReLU and L1) or ``"topk"``, or both.
    n_latents, k, alpha, epochs
        Of `ontogeny.concepts.SAE`.
    removed
        Latents removed at a time.
    n_draws
        Draws of random latents and of the null of correlations.
    random_state
        Seed of the halves, the autoencoder and the draws.

    Examples
    --------
    >>> SaeProbe(marker_ids=(8,)).name
    'sae-probe'
    """

    marker_ids: tuple[int, ...]
    layer: str = "layers[-1].resid"
    on: str | None = None
    variants: tuple[str, ...] = ("vanilla", "topk")
    n_latents: int = 256
    k: int = 16
    alpha: float = 1e-3
    epochs: int = 30
    removed: int = 5
    n_draws: int = 20
    random_state: int = 0

    kind = "sae-probe"
    minima = dict.fromkeys(("n_latents", "k", "epochs", "removed", "n_draws"), 1)
    question = (
        "Which latents of a sparse autoencoder follow a label, and do they matter?"
    )
    requires = "texts with labels, marker ids, a classifier"
    price = "one autoencoder a step"
    quantities = (
        Quantity(
            "accuracy_lost",
            "accuracy lost by removing latents",
            units="share of answers",
            nulls={"random_latents": "random latents, 95 % of draws"},
            caption="One line for each choice of latents.",
            series="ablation",
            facet="variant",
        ),
        Quantity(
            "ablated",
            "accuracy after removing latents",
            units="share of answers",
            caption="The same as accuracies; before: see the data.",
            series="ablation",
            facet="variant",
        ),
        *(
            Quantity(
                name,
                f"strongest correlation of a latent with {what}",
                units="|r|",
                nulls={"shuffled": "largest by chance, 95 %"},
                series="",
                facet="variant",
            )
            for name, what in (
                ("strongest", "the number of markers"),
                ("strongest_place", "a marker's position"),
            )
        ),
    )
    section = Section(
        title="Sparse latents and their ablation",
        definition="A sparse autoencoder on the state that the answer is read from. Latents that "
        "follow the number or the place of markers are removed by subtracting what they decode to.",
        symbol="h ← h − Σⱼ uⱼ wⱼ",
        null="The same number of random active latents (grey band), latents of equal energy, the "
        "largest latents, and the plain reconstruction. Correlations: the largest of all latents "
        "with shuffled texts.",
        care="Latents are chosen on one half of the texts and measured on the other. What is "
        "removed depends on the choice: the largest latents usually cost most.",
        source="Xu 2026, sec. 3.4, 4.4, Fig. 6",
    )
    variables = {
        "accuracy": ("accuracy", "share of answers"),
        "texts_measured": ("texts measured on", "texts"),
        "count_correlation": ("correlation with the number of markers", "|r|"),
        "count_null": ("largest by chance, number of markers", "|r|"),
        "position_correlation": ("largest correlation with a marker here", "|r|"),
        "position_null": ("largest by chance, positions", "|r|"),
        "variance_explained": ("share of the variance reconstructed", "1"),
        "active_per_text": ("active latents per text", "latents"),
        "active_latents": ("latents that are ever active", "latents"),
        "latents_above_null": ("latents correlated beyond chance", "latents"),
    }

    def check(self) -> None:
        """Refuse arguments out of range."""
        check_patterns(self.layer, "layer")
        check_wholes("marker_ids", self.marker_ids, minimum=0, fewest=1)
        check_names("variants", self.variants, ("vanilla", "topk"))
        check_number("alpha", self.alpha, above=True)
        if self.removed > self.n_latents // 2:
            raise ArgumentError(
                f"removed must be at most half of n_latents={self.n_latents}; got {self.removed}."
            )

    def needs(self) -> Sequence[Need]:
        """Return the model with the labelled input set."""
        return [Gradients("classification", self.on)]

    def check_inputs(self, inputs: Mapping[str, Inputs]) -> None:
        """Refuse an input set of fewer than 100 texts."""
        name = self.on or next(iter(inputs))
        if (texts := len(inputs[name])) < 100:
            raise ArgumentError(
                f"an SAE probe needs at least 100 texts; {name!r} has {texts}."
            )

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return accuracies before and after each ablation, correlations and their null.

        ``accuracy``, ``ablated(variant, ablation)``, ``accuracy_lost(variant, ablation)`` with its
        error (paired over texts) and what each draw of random latents loses,
        ``count_correlation(variant, latent)`` and ``count_null``: the 95 % quantile of the largest
        correlation of any latent with shuffled counts; the same of positions
        (``position_correlation(variant, place)``, the largest over latents).
        """
        value = reading[self.needs()[0]]
        units = Units(value.inputs.groups)
        site = ReadoutState(value, self.layer)
        order = np.random.default_rng(self.random_state).permutation(units.count)
        # Texts that repeat, or share a document, are in one half.
        sizes = units.sizes[order]
        before = np.cumsum(sizes) - sizes / 2 < len(units.place) // 2
        fitted = np.isin(units.place, order[before])
        halves = np.flatnonzero(fitted), np.flatnonzero(~fitted)
        variants = [
            self._of_variant(value, site, halves, variant) for variant in self.variants
        ]
        data = xr.concat(variants, dim="variant", data_vars="all").assign_coords(
            variant=list(self.variants)
        )
        return data.assign(
            accuracy=answers(value)[0][halves[1]].mean(), texts_measured=len(halves[1])
        )

    def _of_variant(
        self,
        value: Any,
        site: ReadoutState,
        halves: tuple[np.ndarray, np.ndarray],
        variant: str,
    ) -> xr.Dataset:
        fitted, measured = halves
        states = site.states()
        names = ("k", "alpha", "epochs", "random_state")
        options = {name: getattr(self, name) for name in names}
        sae = SAE(self.n_latents, variant=variant, **options)
        codes = np.asarray(sae.fit_transform(states[fitted]))
        rng = np.random.default_rng(self.random_state)
        marked = np.isin(value.inputs.ids, self.marker_ids) & value.inputs.mask
        units = Units(value.inputs.groups[fitted])
        count = correlations(
            codes, marked[fitted].sum(1)[:, None], self.n_draws, rng, units
        )
        place = correlations(codes, marked[fitted], self.n_draws, rng, units)
        energy = codes.mean(0) ** 2 + codes.var(0)
        energy *= np.square(sae.components_).sum(1)
        active = np.flatnonzero(energy > 0)
        size = min(self.removed, len(active))
        latents_of = _latents(count, place, energy, size)
        drawn = [rng.choice(active, size, False) for _ in range(self.n_draws)]
        variables = {
            **_lost(value, site, sae, latents_of, drawn, measured),
            "count_correlation": ("latent", count.of_latent),
            "count_null": count.limit,
            "position_correlation": ("place", np.abs(place.observed).max(0)),
            "position_null": place.limit,
            **_explained(sae, states[measured]),
            "active_latents": len(active),
        }
        return dataset(variables).assign_coords(
            ablation=list(ABLATIONS),
            latent=np.arange(self.n_latents),
            place=np.arange(marked.shape[1]),
        )

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Add the largest correlations, and how many exceed what chance gives."""
        above = (data.count_correlation > data.count_null).sum("latent").astype(float)
        data = data.assign(
            latents_above_null=above,
            strongest=data.count_correlation.max("latent"),
            strongest_place=data.position_correlation.max("place"),
        )
        for name, null in (
            ("strongest", "count_null"),
            ("strongest_place", "position_null"),
        ):
            data[f"{name}_shuffled_low"] = xr.zeros_like(data[null])
            data[f"{name}_shuffled_high"] = data[null]
        return data

    def words(self, data: xr.Dataset, nodes: Nodes) -> Sequence[str]:
        """Return what removing latents costs at the last step."""
        return _statements(data)


def _lost(
    value: Any,
    site: ReadoutState,
    sae: SAE,
    latents_of: Mapping[str, np.ndarray],
    drawn: Sequence[np.ndarray],
    measured: np.ndarray,
) -> dict[str, Any]:
    """Return the accuracy that each ablation costs on some texts, beside that of drawn latents."""
    whole = answers(value)[0].astype(float)
    right = {name: site.without(sae, latents) for name, latents in latents_of.items()}
    right["reconstruction"] = site.without(sae, None)
    of_drawn = [site.without(sae, latents) for latents in drawn]
    right["random"] = np.mean(of_drawn, axis=0)
    drops = np.stack([(whole - right[name])[measured] for name in ABLATIONS])
    by_chance = [(whole - accuracy)[measured].mean() for accuracy in of_drawn]
    lost = drops.mean(1)
    error = mean_stderr(*Units(value.inputs.groups[measured]).means(drops))
    return {
        "accuracy_lost": Measured(
            ("ablation", lost),
            stderr=("ablation", error),
            nulls={"random_latents": ("draw", by_chance)},
        ),
        "ablated": ("ablation", whole[measured].mean() - lost),
    }


def _explained(sae: SAE, states: np.ndarray) -> dict[str, float]:
    """Return how much of states a fit explains, and with how many latents a text."""
    codes = np.asarray(sae.transform(states))
    residual = states - np.asarray(sae.inverse_transform(codes))
    centred = states - states.mean(0)
    unexplained = float(np.square(residual).sum() / np.square(centred).sum())
    return {
        "variance_explained": 1 - unexplained,
        "active_per_text": float((codes > 0).sum(1).mean()),
    }


def _latents(
    count: Correlations, place: Correlations, energy: np.ndarray, size: int
) -> dict[str, np.ndarray]:
    """Return the latents of each targeted ablation, chosen on the fitting half."""
    scores = {"count": count.of_latent, "position": place.of_latent, "largest": energy}
    latents = {
        name: np.argsort(-score, kind="stable")[:size] for name, score in scores.items()
    }
    return {**latents, "matched": _nearest(energy, latents["count"])}


def _nearest(energy: np.ndarray, latents: np.ndarray) -> np.ndarray:
    """Return for each chosen latent another of the nearest energy, each once."""
    free = [
        int(i) for i in np.flatnonzero(energy > 0) if i not in set(latents.tolist())
    ]
    matched = []
    for latent in latents:
        if not free:
            break
        best = min(
            free,
            key=lambda other: abs(np.log(energy[other] / max(energy[latent], 1e-300))),
        )
        free.remove(best)
        matched.append(best)
    return np.array(matched, dtype=int)


def _statements(data: xr.Dataset) -> list[str]:
    there = np.flatnonzero(np.isfinite(data.accuracy.values))
    if not len(there):
        return []
    last = data.isel(step=int(there[-1]))
    sentences = []
    for variant in data.variant.values:
        one = last.sel(variant=variant)
        drop = {str(n): float(one.accuracy_lost.sel(ablation=n)) for n in ABLATIONS}
        sentences.append(
            f"{variant}: {int(one.latents_above_null)} latents correlate with the number of "
            f"markers beyond chance at {{step}} {int(last.step):,}; removing the strongest costs "
            f"{100 * drop['count']:.1f} points of accuracy, the same number of random ones "
            f"{100 * drop['random']:.1f}, of equal energy {100 * drop['matched']:.1f}, the largest "
            f"{100 * drop['largest']:.1f}."
        )
    return sentences
