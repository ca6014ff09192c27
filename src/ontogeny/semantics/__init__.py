"""Geometry that next-token prediction builds: support matrix, SVD concepts, orthants, UFM.

Arrays and text only; embeddings of models are read by :mod:`ontogeny.capture`.
"""

from __future__ import annotations

from .cloze import Cloze as Cloze
from .cloze import cloze_support as cloze_support
from .clusters import Cluster as Cluster
from .clusters import spectral_clusters as spectral_clusters
from .coarse_to_fine import CoarseToFine as CoarseToFine
from .coarse_to_fine import coarse_before_fine as coarse_before_fine
from .coarse_to_fine import support_confusion as support_confusion
from .concepts import ConceptBasis as ConceptBasis
from .concepts import embedding_concepts as embedding_concepts
from .concepts import svd_concepts as svd_concepts
from .corpus import WordStream as WordStream
from .corpus import token_stream as token_stream
from .corpus import word_stream as word_stream
from .gradient_flow import closed_form as closed_form
from .gradient_flow import half_times as half_times
from .imbalance import StepImbalance as StepImbalance
from .imbalance import loss_growth_rates as loss_growth_rates
from .imbalance import step_imbalance as step_imbalance
from .neighbours import NeighbourVectors as NeighbourVectors
from .neighbours import neighbour_vectors as neighbour_vectors
from .order import LearningOrder as LearningOrder
from .order import first_crossing as first_crossing
from .order import learning_order as learning_order
from .orthant import Orthant as Orthant
from .orthant import RefinementTree as RefinementTree
from .orthant import orthants as orthants
from .orthant import refinement_tree as refinement_tree
from .orthant import signatures as signatures
from .pairs import SignatureLift as SignatureLift
from .pairs import signature_lift as signature_lift
from .ridge import MaxMargin as MaxMargin
from .ridge import max_margin_logits as max_margin_logits
from .ridge import ridge_path as ridge_path
from .scores import Coherence as Coherence
from .scores import Score as Score
from .scores import coherence as coherence
from .scores import orthant_coherence as orthant_coherence
from .shuffled import shuffled_next_words as shuffled_next_words
from .splitting import split_words as split_words
from .subspaces import leading_directions as leading_directions
from .subspaces import subspace_overlap as subspace_overlap
from .support import ContextWords as ContextWords
from .support import Support as Support
from .support import support_from_pairs as support_from_pairs
from .support import support_matrix as support_matrix
from .support_file import load_support as load_support
from .support_file import save_support as save_support
from .ufm import train_ufm as train_ufm
from .word_classes import word_classes as word_classes

__all__ = [
    "Cloze",
    "Cluster",
    "CoarseToFine",
    "Coherence",
    "ConceptBasis",
    "ContextWords",
    "LearningOrder",
    "MaxMargin",
    "NeighbourVectors",
    "Orthant",
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
    "embedding_concepts",
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
    "refinement_tree",
    "ridge_path",
    "save_support",
    "shuffled_next_words",
    "signature_lift",
    "signatures",
    "spectral_clusters",
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
