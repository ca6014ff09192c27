"""What moved to the distribution of the papers, so that its absence can be explained."""

from __future__ import annotations

import importlib.util
import re

from .errors import MissingExtraError

INSTALL = "pip install 'ontogeny[papers]'"
_NAMES = {
    "capture": """
        ContextEmbeddings Target WordEmbeddings context_embeddings context_logits cut_attention
        directional_derivatives tcav tcav_against_random word_embeddings
    """,
    "concepts": """
        CAV Structure canonical_form structure
    """,
    "distances": """
        align alignment_residual cka_of_grams concept_plane equivalence matching_level pairwise
        tracks
    """,
    "dynamics": """
        Fit FitComparison LipschitzRatios SignalComparison average_dictionary compare_fits
        compare_logits compare_regimes compare_signals detrend dtw encode fit_encoder
        fit_exponential fit_power fit_stretched_exponential learning_progress lipschitz_ratios
        local_constants match_codes mutual_information permutation_test recurrence regime_table
        regimes rolling_mean standardise transform_path
    """,
    "geometry": """
        SpectrumOnlyWarning block_matched_control dimension_change early_energy early_energy_null
        feature_dimensionality gaussian_matrix_rank gram increment_participation_ratio
        increment_variance_rank lag_cosine_null line_noise_null net_drift_ratio principal_angles
        principal_basis random_subspace_angles random_subspace_control random_walk_null
        row_frequencies sampled_subspace_control shuffled_increments_null subspace_overlap two_nn
        two_nn_blocks two_nn_calibrated two_nn_null variance_rank walk_participation_ratio
    """,
    "observables": """
        ActivationPath Commutators ConceptDirections ConceptDistances ConceptPlane ConceptTracks
        EmbeddingFrequencies EncoderDynamics FeatureGeometry Fits IntrinsicDimension
        LayerSimilarity LearningCoefficient LearningDynamics Lipschitz Orientation Projection
        ReadoutAccuracy ReadoutAttention Regimes SaeProbe Signals StepSimilarity TCAV
        TransformDynamics WeightRank WordSemantics orientation_across_runs semantics_page
    """,
    "semantics": """
        Cluster CoarseToFine Coherence ContextWeights MaxMargin NeighbourVectors OrderComparison
        PredictedOrder Score SignatureLift StepImbalance closed_form cloze_support
        coarse_before_fine coherence compare_order context_weights embedding_concepts
        factor_limits half_times leading_directions learning_order load_support loss_growth_rates
        max_margin_logits most_clusters neighbour_vectors orthant_coherence orthants
        predicted_order refinement_tree ridge_path save_support shuffled_next_words signature_lift
        spectral_clusters step_imbalance subspace_overlap support_confusion support_from_pairs
        support_matrix token_stream train_ufm word_classes word_stream
    """,
    "updates": """
        GradientField commutator commutators pair_statistics
    """,
}


def of_papers(module: str) -> list[str]:
    """Return the names that the papers' distribution gives to a public module.

    Examples
    --------
    >>> "fit_exponential" in of_papers("dynamics")
    True
    """
    return _NAMES.get(module, "").split()


def kinds_of_papers() -> list[str]:
    """Return the kinds of observables that the papers' distribution brings.

    Examples
    --------
    >>> "concept-tracks" in kinds_of_papers()
    True
    """
    classes = [name for name in of_papers("observables") if name[0].isupper()]
    kinds = (re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower() for name in classes)
    return ["cav" if kind == "concept-directions" else kind for kind in kinds]


def require_papers(what: str) -> None:
    """Refuse what only the papers' distribution has, where that is not installed.

    The error is an `ImportError` and no `AttributeError`: where the name stands in an import
    statement, Python would replace the text of the latter.

    Raises
    ------
    MissingExtraError
        With the line that installs it.
    """
    if importlib.util.find_spec("ontogeny_papers") is None:
        raise MissingExtraError(
            f"{what} belongs to the experiments of the papers, which are installed separately: "
            f"{INSTALL}."
        )
