"""Observables of weights: their paths, their directions, and steps of gradient descent."""

PUBLIC = {
    "geometry": {
        "drift_nulls": ["lag_cosine_null", "line_noise_null"],
        "nulls": ["early_energy_null", "random_walk_null", "shuffled_increments_null"],
        "path": [
            "early_energy",
            "increment_participation_ratio",
            "increment_variance_rank",
            "net_drift_ratio",
            "variance_rank",
            "walk_participation_ratio",
        ],
        "snapshots": ["gram"],
    },
    "observables": {"norms": ["WeightNorms"], "rank": ["WeightRank"]},
}
"""The names that it gives to public modules, and which of its own modules defines each."""
