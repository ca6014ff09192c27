"""Intrinsic dimension of point clouds and of dictionaries."""

PUBLIC = {
    "dynamics": {
        "averages": ["average_dictionary"],
    },
    "geometry": {
        "dimension_change": ["dimension_change"],
        "intrinsic": [
            "SpectrumOnlyWarning",
            "two_nn",
            "two_nn_blocks",
            "two_nn_calibrated",
            "two_nn_null",
        ],
    },
    "observables": {
        "observable": ["IntrinsicDimension"],
    },
}
"""The names that it gives to public modules, and which of its own modules defines each."""
