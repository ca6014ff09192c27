"""Concepts of activations beside those of the corpus, and whether its order is that of births."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import xarray as xr
from scipy.stats import rankdata

from ontogeny.claims import Reason
from ontogeny.features.concepts.joint import JointConcepts
from ontogeny.features.wordspace.cloze import corpus_support
from ontogeny.features.wordspace.concepts import ConceptBasis, signatures, svd_concepts
from ontogeny.features.wordspace.support import Support
from ontogeny.figures import Column, Marks, Section, Table, attach
from ontogeny.inputs import Inputs
from ontogeny.training.run import RunSettings

from ..concepts.concept_recipe import ConceptRecipe, ConceptSize, of_sources
from ..concepts.masked_run import MaskedRun
from ..formats import joined, p_value
from ..recipe import Findings, Materials
from ..verdicts import LEVEL, Runs, Verdict, decided, each

_NODE = "joint-concepts"
_ORTHANT = 5  # concepts of the corpus that an orthant is taken in
# Words of neighbouring frequency that are exchanged for each other in the null.
_BAND = 16
_FEWEST = 5  # concepts born during a run, below which an order says nothing
_SHOWN = 40  # rows of the figure


@dataclass(frozen=True)
class BirthSize(ConceptSize):
    """A size of the recipes on concepts, with words and contexts of the corpus and draws."""

    vocab_size: int = 1000
    n_contexts: int = 5000
    n_draws: int = 999


@dataclass(frozen=True)
class BirthRecipe(ConceptRecipe):
    """Concepts of activations, as an atlas shows them, beside those of the corpus."""

    def measured(self, size: BirthSize, materials: Materials) -> Findings:  # type: ignore[override]
        """Study every seed, and set its concepts beside those of the text."""
        given = of_sources(size) if materials.sources else size
        ((label, run),) = given.runs.items()
        folder = self.runs_folder(label, run, given, materials)
        places = dict(
            zip(size.seeds, self.record(run, folder, given, materials), strict=True)
        )

        def table(seed: int) -> xr.Dataset:
            tree = self._study(label, seed, places[seed], given, materials)
            tokenizer = self.opened(run, places[seed]).tokenizer()
            inputs = Inputs.from_texts(materials.texts, tokenizer, 512)
            masked = "MaskedLM" in json.loads(tree.attrs["model"])["class"]
            counted = (size.vocab_size, size.n_contexts, (2, 4) if masked else (2, 6))
            support = corpus_support(inputs, masked, *counted).support
            return beside_corpus(tree[_NODE].to_dataset().load(), support, size.n_draws)

        tables = materials.of_seeds("births", "births of concepts", size.seeds, table)
        return Findings({"births": _view(tables[0])}, (tables,))

    def study_folder(
        self, label: str, seed: int, recorded: Path, materials: Materials
    ) -> Path:
        """Return where a seed is studied: apart from other recipes, which have control runs."""
        place = super().study_folder(label, seed, recorded, materials)
        return materials.folder / "studies" / place.name


def beside_corpus(node: xr.Dataset, support: Support, n_draws: int) -> xr.Dataset:
    """Return when concepts are born, beside the singular values of the corpus at which they stand.

    A concept is the words that carry most of its code, with their shares. The closed form learns
    the part of such a class along each u_k at a time that goes with 1/σ_k. So half of the class is
    learned with the concepts down to one singular value: that is its ``sigma``. The nulls are
    births exchanged within a layer, and words exchanged for others of about their frequency.

    Parameters
    ----------
    node
        Node of `JointConcepts` in a study.
    support
        Support matrix of the corpus in the model's own tokens, the most frequent first.
    n_draws
        Draws of each null.
    """
    basis = svd_concepts(support, min(support.shape) - 1)
    data, weights = _born(node, support)
    codes = signatures(basis.U[:, : min(_ORTHANT, basis.k)])
    rng = np.random.default_rng(0)
    layers = data["layer"].values
    births = -data.born.values
    sigma, share, orthant = _of_corpus(weights, basis, codes)
    rows = np.arange(len(births))
    draws = []
    for _ in range(n_draws if len(rows) >= _FEWEST else 0):
        order = rng.permutation(rows)
        order = order[np.argsort(layers[order], kind="stable")]
        within = np.empty_like(rows)
        within[np.argsort(layers, kind="stable")] = order
        words = _exchanged(weights.shape[1], rng)
        other_sigma, other_share, _ = _of_corpus(weights[:, words], basis, codes)
        chosen = rng.integers(len(rows), size=len(rows))
        draws.append(
            (
                _spearman(sigma, births[within]),
                _spearman(other_sigma, births),
                _spearman(sigma[chosen], births[chosen]),
                other_share.mean(),
            )
        )
    names = ("permuted", "frequent", "resampled", "share_frequent")
    columns = zip(names, np.array(draws).reshape(-1, 4).T, strict=True)
    return data.assign_coords(step=node.step.values).assign(
        {
            "sigma": ("concept", sigma),
            "orthant": ("concept", _words_of(orthant, codes, support)),
            "share": ("concept", share),
            "order": _spearman(sigma, births),
            **{name: ("draw", values) for name, values in columns},
        }
    )


def _born(node: xr.Dataset, support: Support) -> tuple[xr.Dataset, np.ndarray]:
    """Return the concepts born during the run, and the share of each word in them.

    Two words at least are in the vocabulary of the corpus.
    """
    places = {int(token): i for i, token in enumerate(support.word_ids)}
    text = dict(
        zip(node.piece.values.tolist(), node.piece_text.values.tolist(), strict=True)
    )
    steps = ("born", "born_after", "born_before")
    rows = []
    weights = []
    for layer in node.layer.values if "concept_born" in node else ():
        for c in np.flatnonzero(
            node.concept_born.sel(layer=layer) > float(node.step[0])
        ):
            one = node.sel(layer=layer).isel(concept=c)
            ids = one.token_id.values.astype(int).tolist()
            words = {
                places[i]: w
                for i, w in zip(ids, one.token_share.values, strict=True)
                if i in places
            }
            if len(words) < 2:
                continue
            weights.append(
                np.bincount([*words], [*words.values()], minlength=len(places))
            )
            name = " ".join(str(text.get(i, i)).strip() or "space" for i in ids[:3])
            rows.append(
                (*(float(one[f"concept_{s}"]) for s in steps), str(layer), name)
            )
    names = (*steps, "layer", "name")
    columns = zip(*rows, strict=True) if rows else ([] for _ in names)
    data = {
        name: ("concept", [*values])
        for name, values in zip(names, columns, strict=True)
    }
    return xr.Dataset(data), np.array(weights).reshape(-1, len(places))


def _of_corpus(
    weights: np.ndarray, basis: ConceptBasis, codes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return of each concept σ, the share in its foremost orthant, and which one that is."""
    parts = (weights @ basis.U) ** 2
    done = parts.cumsum(axis=1)
    half = (done >= done[:, -1:] / 2).argmax(axis=1)
    names = np.unique(codes)
    by_orthant = weights @ (codes[:, None] == names)
    top = by_orthant.argmax(axis=1)
    share = by_orthant.max(axis=1) / weights.sum(axis=1)
    return basis.sigma[half], share, names[top]


def _exchanged(words: int, rng: np.random.Generator) -> np.ndarray:
    """Return a permutation of words, the most frequent first, within bands of their frequency."""
    return np.argsort(np.arange(words) // _BAND + rng.random(words))


def _words_of(orthants: np.ndarray, codes: np.ndarray, support: Support) -> list[str]:
    """Return the most frequent words of each orthant."""
    words = {code: np.flatnonzero(codes == code)[:4] for code in np.unique(orthants)}
    return [
        " ".join(str(support.words[i]).strip() for i in words[code])
        for code in orthants
    ]


def _spearman(one: np.ndarray, other: np.ndarray) -> float:
    if len(one) < _FEWEST or not np.ptp(one) or not np.ptp(other):
        return np.nan
    return float(np.corrcoef(rankdata(one), rankdata(other))[0, 1])


def judge_births(tables: Runs) -> list[Verdict]:
    """Judge whether concepts are born in the order of the corpus, and of one orthant."""
    claims = (
        "concepts of activations are born in the order of the corpus' σ",
        "the words of a concept are of one orthant of the corpus",
    )
    counts = [table.sizes["concept"] for table in tables]
    numbers = f"{' and '.join(map(str, counts))} concepts born during the run"
    if min(counts) < _FEWEST:
        few = f"fewer than {_FEWEST} in a run, so that nothing is judged"
        return [
            Verdict(
                claim, None, numbers, few, reason=Reason.NOTHING_SCORED, of_paper=False
            )
            for claim in claims
        ]
    share = each(tables, lambda table: table.share.mean())
    others = each(tables, lambda table: table.share_frequent.quantile(0.95))
    return [
        _of_order(claims[0], tables, numbers),
        Verdict(
            claims[1],
            True if (share > others).all() else None,
            f"share of the words in the orthant of most of them {joined(share)}",
            f"words as frequent at most {joined(others)} in 95 % of the draws",
            reason=Reason.WITHIN_CHANCE,
            of_paper=False,
        ),
    ]


def _of_order(claim: str, tables: Runs, numbers: str) -> Verdict:
    order = each(tables, lambda table: table["order"])
    if not np.isfinite(order).all():
        equal = "all births of a run are at one step, or all σ equal, so that no order is judged"
        return Verdict(
            claim, None, numbers, equal, reason=Reason.NOTHING_SCORED, of_paper=False
        )
    p = each(
        tables,
        lambda t: (1 + (t.permuted >= t["order"] - 1e-12).sum()) / (1 + t.draw.size),
    )
    frequent, ends = (
        np.array(
            [table[name].quantile([0.025, 0.975], skipna=True) for table in tables]
        )
        for name in ("frequent", "resampled")
    )
    holds = ((p <= LEVEL) & (order > frequent[:, 1])).all()
    return Verdict(
        claim,
        decided(holds, (ends[:, 1] < 0).all()),
        f"rank correlation of σ and minus the step of birth {joined(order)} (95 % "
        f"{_ranges(ends)}); {numbers}",
        f"births in random order {', '.join(map(p_value, p))}; words as frequent in their "
        f"place {_ranges(frequent)}",
        reason=Reason.WITHIN_CHANCE,
        of_paper=False,
    )


def _ranges(ends: np.ndarray) -> str:
    return ", ".join(f"{low:.2f} to {high:.2f}" for low, high in ends)


def _view(data: xr.Dataset) -> xr.Dataset:
    """Return the births of one run beside the steps of the theory."""
    figures = [
        Marks(
            "births",
            "When concepts are born, and when the corpus' theory has them learned",
            value="at",
            rows="concept",
            series="source",
            interval=("at_low", "at_high"),
            caption="Theory: a constant over σ, at which half of the concept's words is learned; "
            "the constant is the run's own median. The largest σ first.",
        ),
        Table(
            "classes",
            "Which words of the corpus a concept stands for",
            rows="concept",
            columns=[
                Column("orthant", "orthant"),
                Column("share", "share"),
                Column("sigma", "σ"),
            ],
        ),
    ]
    section = Section(
        "Concepts of activations and of the corpus",
        "Concepts that the activations have, each beside the singular value of the support matrix "
        "at which half of its words is learned.",
        symbol="Σ_{σₖ ≥ σ} (uₖ·y)² = ½ ‖y‖²",
        null="Births in random order, and words of the same frequency in place of the concept's.",
        care="One run. Frequent words have large σ and are learned early for that alone.",
        source="Zhao and Thrampoulidis 2025, sec. 4.4; concepts of Bernas 2025",
    )
    return attach(_drawn(data), section, figures)


def _drawn(data: xr.Dataset) -> xr.Dataset:
    """Return the births that are drawn, the largest σ first, with the steps of the theory."""
    data = data.sortby("sigma", ascending=False).isel(concept=slice(_SHOWN))
    names = zip(data["name"].values, data["layer"].values, strict=True)
    rows = [f"{i}. {name} · {layer}" for i, (name, layer) in enumerate(names, 1)]
    unit = float((data.born * data.sigma).median()) if rows else np.nan
    theory = unit / data.sigma.values
    none = np.full_like(theory, np.nan)
    columns = {
        "at": (data.born.values, theory),
        "at_low": (data.born_after.values, none),
        "at_high": (data.born_before.values, none),
    }
    titles = {
        "sigma": ("singular value at which half of its words is learned", "1"),
        "orthant": ("orthant of the corpus: its most frequent words", ""),
        "share": ("share of the concept's words in that orthant", "1"),
    }
    view = xr.Dataset(
        coords={
            "concept": rows,
            "source": ["born in the run", "theory"],
            "step": data.step.values,
        }
    )
    both = ("concept", "source")
    steps = {"long_name": "step of the birth", "units": "steps"}
    for name, pair in columns.items():
        view[name] = (both, np.stack(pair, axis=1), steps)
    for name, (title, units) in titles.items():
        attrs = {"long_name": title, "units": units}
        view[name] = ("concept", data[name].values, attrs)
    return view


def _sizes() -> tuple[BirthSize, BirthSize]:
    full = MaskedRun(RunSettings(steps=960))
    quick = MaskedRun(RunSettings.quick(), 25)
    concepts = JointConcepts(n_concepts=100)
    size = BirthSize({"EuroBERT": full}, (0, 1, 2), (concepts,))
    return size, replace(
        size,
        runs={"EuroBERT": quick},
        seeds=(0, 1),
        observables=(replace(concepts, n_concepts=40, max_tokens=3000),),
        vocab_size=500,
        n_draws=499,
    )


BIRTHS = BirthRecipe(
    "semantics-births",
    "Births of concepts and the corpus' own order",
    "larger singular values of the support matrix are learned first (it says nothing of concepts "
    "of activations, which this recipe adds).",
    "Zhao and Thrampoulidis 2025, sec. 4.4 and 5, extended to concepts of activations",
    *_sizes(),
    "models that learn classes of words.",
    judge=judge_births,
    controls=0,
)
"""The recipe."""
