"""The experiments of three papers on how language models develop, for the library ontogeny.

Recipes, judges, tasks, trainers, and the observables and array functions that only they use.
"""

PUBLIC = {
    "capture": {
        "capture.context_logits": ["context_logits"],
        "capture.cut_attention": ["cut_attention"],
        "capture.embeddings": [
            "ContextEmbeddings",
            "WordEmbeddings",
            "context_embeddings",
            "word_embeddings",
        ],
    },
    "concepts": {
        "concepts.structure": ["Structure", "canonical_form", "structure"],
    },
    "distances": {
        "distances.plane": ["concept_plane"],
    },
    "dynamics": {
        "dynamics.fit": ["Fit"],
        "dynamics.fit_comparison": ["FitComparison", "compare_fits"],
        "dynamics.fits": ["fit_exponential", "fit_power", "fit_stretched_exponential"],
        "dynamics.lipschitz": ["LipschitzRatios", "lipschitz_ratios", "local_constants"],
        "dynamics.mutual_information": ["mutual_information"],
        "dynamics.signals": ["SignalComparison", "compare_signals", "standardise"],
        "dynamics.smoothing": ["rolling_mean"],
        "dynamics.warping": ["dtw"],
    },
    "geometry": {
        "geometry.features": ["feature_dimensionality"],
        "geometry.fourier": ["row_frequencies"],
    },
    "observables": {
        "observables.concepts.lipschitz": ["Lipschitz"],
        "observables.concepts.plane": ["ConceptPlane"],
        "observables.concepts.transforms": ["TransformDynamics"],
        "observables.curves.fits": ["Fits"],
        "observables.curves.signals": ["Signals"],
        "observables.frequencies": ["EmbeddingFrequencies"],
        "observables.projection": ["Projection"],
        "observables.readout.accuracy": ["ReadoutAccuracy"],
        "observables.readout.attention": ["ReadoutAttention"],
        "observables.readout.sae_probe": ["SaeProbe"],
        "observables.superposition": ["FeatureGeometry"],
        "observables.words.learning": ["WordSemantics"],
        "observables.words.views.page": ["semantics_page"],
    },
    "semantics": {
        "semantics.clusters": ["Cluster", "most_clusters", "spectral_clusters"],
        "semantics.coarse_to_fine": ["CoarseToFine", "coarse_before_fine", "support_confusion"],
        "semantics.context_weights": ["ContextWeights", "context_weights", "factor_limits"],
        "semantics.ufm_records": ["closed_form", "half_times"],
        "semantics.imbalance": ["StepImbalance", "loss_growth_rates", "step_imbalance"],
        "semantics.neighbours": ["NeighbourVectors", "neighbour_vectors"],
        "semantics.order_comparison": ["OrderComparison", "compare_order"],
        "semantics.pairs": ["SignatureLift", "signature_lift"],
        "semantics.predicted": ["PredictedOrder", "predicted_order"],
        "semantics.ridge": ["MaxMargin", "max_margin_logits", "ridge_path"],
        "semantics.scores": ["Coherence", "Score", "coherence", "orthant_coherence"],
        "semantics.subspaces": ["leading_directions", "subspace_overlap"],
        "semantics.ufm": ["train_ufm"],
        "semantics.word_classes": ["word_classes"],
    },
}
"""The names that it gives to public modules, and which of its own modules defines each."""
