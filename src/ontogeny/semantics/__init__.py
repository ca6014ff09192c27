"""Geometry that next-token prediction builds: support matrix, SVD concepts, orthants, UFM.

Arrays and text only; embeddings of models are read by :mod:`ontogeny.capture`.
"""

from __future__ import annotations

from .cloze import Cloze, cloze_support
from .clusters import Cluster, most_clusters, spectral_clusters
from .coarse_to_fine import CoarseToFine, coarse_before_fine, support_confusion
from .concepts import ConceptBasis, embedding_concepts, svd_concepts
from .context_weights import ContextWeights, context_weights, factor_limits
from .corpus import WordStream, token_stream, word_stream
from .gradient_flow import closed_form, half_times
from .imbalance import StepImbalance, loss_growth_rates, step_imbalance
from .neighbours import NeighbourVectors, neighbour_vectors
from .order import LearningOrder, first_crossing, learning_order
from .order_comparison import OrderComparison, compare_order
from .orthant import Orthant, RefinementTree, orthants, refinement_tree, signatures
from .pairs import SignatureLift, signature_lift
from .predicted import PredictedOrder, predicted_order
from .ridge import MaxMargin, max_margin_logits, ridge_path
from .scores import Coherence, Score, coherence, orthant_coherence
from .shuffled import shuffled_next_words
from .splitting import split_words
from .subspaces import leading_directions, subspace_overlap
from .support import ContextWords, Support, support_from_pairs, support_matrix
from .support_file import load_support, save_support
from .ufm import train_ufm
from .word_classes import word_classes

__all__ = [
    "Cloze",
    "Cluster",
    "CoarseToFine",
    "Coherence",
    "ConceptBasis",
    "ContextWeights",
    "ContextWords",
    "LearningOrder",
    "MaxMargin",
    "NeighbourVectors",
    "OrderComparison",
    "Orthant",
    "PredictedOrder",
    "RefinementTree",
    "Score",
    "SignatureLift",
    "StepImbalance",
    "Support",
    "WordStream",
    "closed_form",
    "cloze_support",
    "coarse_before_fine",
    "coherence",
    "compare_order",
    "context_weights",
    "embedding_concepts",
    "factor_limits",
    "first_crossing",
    "half_times",
    "leading_directions",
    "learning_order",
    "load_support",
    "loss_growth_rates",
    "max_margin_logits",
    "neighbour_vectors",
    "orthant_coherence",
    "orthants",
    "predicted_order",
    "refinement_tree",
    "ridge_path",
    "save_support",
    "shuffled_next_words",
    "signature_lift",
    "signatures",
    "spectral_clusters",
    "most_clusters",
    "split_words",
    "step_imbalance",
    "subspace_overlap",
    "support_confusion",
    "support_from_pairs",
    "support_matrix",
    "svd_concepts",
    "token_stream",
    "train_ufm",
    "word_classes",
    "word_stream",
]
