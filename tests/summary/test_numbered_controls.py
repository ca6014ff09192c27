"""What control runs number in their own way is kept whole, however few the run itself has."""

import numpy as np
import xarray as xr

from ontogeny.observables.control_matches import with_control_matches
from ontogeny.report.concepts.learned import best_of_controls
from ontogeny.summary.controls import with_controls


def node(names, sketches):
    return xr.Dataset(
        {
            "named_phi": (("layer", "concept"), [names]),
            "named_about": (("layer", "concept"), [np.ones(len(names))]),
            "code_sketch": (("layer", "concept", "sketch"), [sketches]),
        },
        {"layer": ["h.0"], "concept": np.arange(len(names))},
    )


def test_components_of_a_control_beyond_the_number_of_the_run_count():
    """Cut to the run's own two, the best name of the control was lost: "no control reaches it"."""
    rng = np.random.default_rng(0)
    theirs = rng.normal(size=(4, 64))
    theirs /= np.linalg.norm(theirs, axis=1, keepdims=True)
    run = node([0.5, 0.3], theirs[[3, 1]])
    controls = {
        "turned 0": node([0.1, 0.2, 0.1, 0.9], theirs),
        "turned 1": node([0.2], theirs[:1]),
    }
    compared = ("named_phi", "named_about", "code_sketch")
    data = with_controls(run, controls, (), compared)
    assert data.sizes["control_concept"] == 4 and data.sizes["concept"] == 2
    assert best_of_controls(data).tolist() == [[0.9, 0.9]]
    found = with_control_matches(data)
    assert found.control_match_concept.sel(run="turned 0").values.tolist() == [[3, 1]]
    np.testing.assert_allclose(found.control_match.sel(run="turned 0"), 1, atol=1e-6)
    assert (found.control_match.sel(run="turned 1") < 0.5).all()
