"""Recipes for "On the Geometry of Semantics in Next-token Prediction" (Zhao, Thrampoulidis 2025).

Text comes from a file of the user's or is Python's own documentation; the hierarchy is the built-in
world of organisms, the digits are scikit-learn's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..recipe import Findings, Materials, MeasuredRecipe, Recipe
from .births import BIRTHS
from .contexts import ContextsSize, installed_decoder, judge_contexts, measure_contexts
from .free_embeddings import FreeSize, judge_free_embeddings, measure_free_embeddings
from .imbalance import ImbalanceSize, judge_imbalance, measure_imbalance
from .intervention import InterventionSize, judge_intervention, measure_intervention
from .organisms import OrganismSize, judge_organisms, measure_organisms
from .orthants import OrthantSize, judge_orthants, measure_orthants
from .pretrained import PretrainedSize, judge_pretrained, measure_pretrained
from .transformer import TransformerSize, judge_transformer, measure_transformer

__all__ = ["RECIPES", "Findings", "Materials", "SemanticsRecipe"]

_PAPER = "Zhao and Thrampoulidis 2025"


@dataclass(frozen=True, kw_only=True)
class SemanticsRecipe(MeasuredRecipe):
    """The reproduction of one part of the paper on token semantics; most of them read a text."""

    reads_text: bool = True


@dataclass(frozen=True, kw_only=True)
class ContextsRecipe(SemanticsRecipe):
    """The contexts of pretrained decoders: of those that are given, or of an installed one."""

    reads_runs: bool = True

    def installed_sources(self) -> Sequence[str]:
        """Return the decoder that a package brings."""
        return (installed_decoder(),)


_ALL: tuple[Recipe, ...] = (
    SemanticsRecipe(
        "semantics-orthants",
        "Concepts, orthants and clusters of a corpus",
        "words with the same signs in a few SVD concepts of the support matrix form groups that "
        "people recognise, single concepts do not, and contexts lead to words of their own signs.",
        f"{_PAPER}, Def. 1, sec. 5, Figs 4 to 6, 11, 14 and 20 to 25",
        OrthantSize(),
        OrthantSize(500, 5000, 5, 40),
        "small vocabularies hold few words of each class, and scores rise with the size of the "
        "text: compare texts at the full setting only.",
        measure=measure_orthants,
        judge=judge_orthants,
        version=2,
    ),
    SemanticsRecipe(
        "semantics-free-embeddings",
        "Free embeddings: the closed form and the matrix that leads",
        "trained freely, embeddings learn the concepts of S̃ one by one in the order of their "
        "singular values, along a closed form.",
        f"{_PAPER}, sec. 3.2 and 4.4, Prop. 1, App. D, Figs 12, 18 and 19",
        FreeSize(),
        FreeSize(100, 400, 20, (0, 1)),
        "how the small concepts of a large vocabulary are learned: 20 concepts of 100 words here.",
        measure=measure_free_embeddings,
        judge=judge_free_embeddings,
    ),
    SemanticsRecipe(
        "semantics-transformer",
        "Which concepts a transformer learns first",
        "larger singular values are learned first, in a real network too, and S̃ is the matrix "
        "whose directions the embeddings take on.",
        f"{_PAPER}, sec. 4.4, extended",
        TransformerSize(),
        TransformerSize(100, 400, 30, 600, 60, 64, 100, 10, (0, 1)),
        "small concepts are not learned in 600 steps, so only 30 are judged; a language model on "
        "running text is another matter (observable word-semantics).",
        measure=measure_transformer,
        judge=judge_transformer,
    ),
    SemanticsRecipe(
        "semantics-intervention",
        "Predict the order of learning, then change it",
        "larger singular values are learned first; so a text tells in which order its concepts "
        "are learned, and weights of its contexts should change that order.",
        f"{_PAPER}, sec. 4.4 and App. D.1, extended",
        InterventionSize(),
        InterventionSize(100, 300, 12, 2, 2.0, 250, 50, 32, 10, (0, 1)),
        "two concepts in two seeds say little about how far effects differ; the smallest concepts "
        "are hardly learned in 250 steps.",
        measure=measure_intervention,
        judge=judge_intervention,
    ),
    SemanticsRecipe(
        "semantics-organisms",
        "A world of organisms: what concepts distinguish, and coarse before fine",
        "the first concepts separate plants from animals and mammals from other animals, in the "
        "data and as axes of trained embeddings; broad distinctions are learned before fine ones.",
        f"{_PAPER}, sec. 4.1 to 4.3, App. B, Figs 1 to 3 and 10",
        OrganismSize(),
        OrganismSize(80, 150, 128, 499, (0, 1)),
        "two seeds say little about how far seeds differ; 150 epochs at the "
        "slow rates are just enough to learn every set.",
        measure=measure_organisms,
        judge=judge_organisms,
        reads_text=False,
        version=3,
    ),
    SemanticsRecipe(
        "semantics-pretrained",
        "Orthants of a model's own word embeddings",
        "words with the same signs in the first singular vectors of a pretrained model's word "
        "embeddings form groups that people recognise.",
        f"{_PAPER}, sec. 5.2, App. F.2, Figs 7 and 15 to 17",
        PretrainedSize(),
        PretrainedSize(400, 64, 400, (4, 5, 6), 40, (0, 1)),
        "a model of 400 words that was trained for seconds stands for a pretrained one, unless "
        "recorded runs are given.",
        measure=measure_pretrained,
        judge=judge_pretrained,
        reads_runs=True,
    ),
    ContextsRecipe(
        "semantics-contexts",
        "Contexts of a pretrained decoder",
        "the singular vectors of a pretrained model's word embeddings give its contexts signs too: "
        "contexts of the same signs are alike, and words of these signs follow them.",
        f"{_PAPER}, sec. 5.2 and App. F.2",
        ContextsSize(),
        ContextsSize(200, n_draws=40),
        "2,000 contexts hold few words of each class.",
        measure=measure_contexts,
        judge=judge_contexts,
    ),
    SemanticsRecipe(
        "semantics-imbalance",
        "Imbalanced classes and their reweighting",
        "majorities are learned first, then majorities against minorities, then minorities; "
        "weights of R^−1/2 make all concepts learned together.",
        f"{_PAPER}, App. A.4 and D.1, Figs 9 and 13",
        ImbalanceSize(),
        ImbalanceSize(seeds=(0, 1)),
        "two seeds of each setting, so an order in all four runs comes by chance in 6 of 100.",
        measure=measure_imbalance,
        judge=judge_imbalance,
        reads_text=False,
    ),
    BIRTHS,
)
RECIPES = {recipe.name: recipe for recipe in _ALL}
"""The recipes by name."""
