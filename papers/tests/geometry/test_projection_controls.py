"""Projections onto a trajectory's subspace against scikit-learn, explicit subspaces and theory."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp, kstest
from sklearn.decomposition import PCA

from ontogeny import geometry
from ontogeny.errors import ArgumentError, NonFiniteError
from ontogeny_papers.geometry.projection import BlockEnergies


def path(steps=12, size=40, seed=0, offset=0.0):
    rng = np.random.default_rng(seed)
    return offset + rng.normal(size=(steps, size)).cumsum(axis=0)


@pytest.mark.parametrize("end", [None, 5])
def test_the_basis_is_that_of_principal_component_analysis(end):
    snapshots = path(offset=1e4)  # weights move by a small part of their norm
    basis = geometry.principal_basis(snapshots, k=3, end=end)
    expected = PCA(3, svd_solver="full").fit(snapshots[:end]).components_.T
    np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(np.abs((basis * expected).sum(axis=0)), 1.0, atol=1e-9)


@pytest.mark.parametrize("noise", [1e-4, 3e-6])
def test_components_far_below_the_first_are_orthonormal_to_it(noise):
    rng = np.random.default_rng(0)
    line = np.outer(np.linspace(0, 1, 20), rng.normal(size=4000))
    basis = geometry.principal_basis(line + noise * rng.normal(size=(20, 4000)), k=3)
    np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-10)
    drifting = line / np.linalg.norm(line[-1])
    assert geometry.subspace_overlap(basis, drifting[-1:].T) == pytest.approx(
        1.0, abs=1e-6
    )


def test_slices_of_the_coordinates_change_nothing(monkeypatch):
    snapshots = path().astype(np.float32)
    whole = geometry.principal_basis(snapshots, k=4)
    monkeypatch.setattr("ontogeny_papers.geometry.subspaces.CHUNK", 12 * 7)
    np.testing.assert_allclose(
        geometry.principal_basis(snapshots, k=4), whole, rtol=1e-12
    )


def test_a_path_with_fewer_directions_has_a_smaller_basis():
    snapshots = np.outer(np.linspace(0, 1, 9), np.ones(30))
    assert geometry.principal_basis(snapshots, k=3).shape == (30, 1)
    assert geometry.principal_basis(np.ones((9, 30)), k=3).shape == (30, 0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"k": 0}, "k must be a whole number of at least 1; got 0"),
        ({"k": 2.0}, "k must be a whole number"),
        ({"k": 2, "end": 1}, "end must be a whole number of at least 2; got 1"),
        ({"k": 2, "end": 13}, "end must be from 2 to 12"),
    ],
)
def test_a_basis_that_cannot_be_is_refused(options, words):
    with pytest.raises(ArgumentError, match=words):
        geometry.principal_basis(path(), **options)
    with pytest.raises(ArgumentError, match="at least 2 snapshots; there is 1"):
        geometry.principal_basis(np.ones((1, 3)), k=1)
    with pytest.raises(NonFiniteError):
        geometry.principal_basis(np.full((4, 3), np.nan), k=1)


def measured(vectors, bases, sizes):
    """Energies of (n, P) vectors whose first coordinates are the blocks, the others the rest."""
    pieces = np.split(vectors, np.cumsum([len(b) for b in bases]), axis=1)
    inside = [np.sum((v @ b) ** 2, axis=1) for v, b in zip(pieces, bases, strict=False)]
    return BlockEnergies(
        np.array([*inside, np.zeros(len(vectors))]),
        np.array([np.sum(v**2, axis=1) for v in pieces]),
        np.array([*(b.shape[1] for b in bases), 0]),
        np.array(sizes),
    )


@settings(max_examples=30)
@given(st.integers(0, 10_000))
def test_parts_inside_and_outside_are_those_of_the_explicit_projector(seed):
    rng = np.random.default_rng(seed)
    bases = [geometry.principal_basis(path(8, 20, seed + i), k=2) for i in range(2)]
    vectors = rng.normal(size=(3, 50))
    found = measured(vectors, bases, [20, 20, 10])
    projector = np.zeros((50, 50))
    projector[:20, :20], projector[20:40, 20:40] = (b @ b.T for b in bases)
    inside = vectors @ projector
    lengths = np.linalg.norm(vectors, axis=1)
    np.testing.assert_allclose(found.rho, np.linalg.norm(inside, axis=1) / lengths)
    attention = np.linalg.norm(vectors[:, :40], axis=1)
    np.testing.assert_allclose(
        found.within.rho, np.linalg.norm(inside, axis=1) / attention
    )


@pytest.mark.parametrize(("k", "share"), [(1, 0.80), (3, 0.92), (4, 0.94)])
def test_the_mean_of_the_control_is_below_its_root_mean_square(k, share):
    control = geometry.random_subspace_control(k, 16_384)
    assert control.rms == pytest.approx(np.sqrt(k / 16_384))
    assert control.mean / control.rms == pytest.approx(share, abs=0.005)
    assert control.low < control.mean < control.high


def test_the_closed_form_is_the_law_of_subspaces_drawn_in_full():
    vector = np.random.default_rng(1).normal(size=(1, 60))
    rng = np.random.default_rng(0)
    bases = (np.linalg.qr(rng.normal(size=(60, 4)))[0] for _ in range(1500))
    drawn = np.array([np.linalg.norm(vector @ Q) for Q in bases])
    drawn /= np.linalg.norm(vector)
    assert kstest(drawn**2, "beta", args=(2, 28)).pvalue > 1e-3
    control = geometry.random_subspace_control(4, 60)
    assert np.mean(drawn) == pytest.approx(control.mean, rel=0.03)
    assert np.mean((control.low <= drawn) & (drawn <= control.high)) == pytest.approx(
        0.95, abs=0.02
    )


def test_the_whole_space_holds_everything_and_no_subspace_nothing():
    assert geometry.random_subspace_control(5, 5).rms == 1.0
    assert geometry.random_subspace_control(0, 5).high == 0.0


def test_block_matched_draws_are_those_of_random_subspaces_of_every_block():
    rng = np.random.default_rng(0)
    vector = np.concatenate(
        [5 * rng.normal(size=12), rng.normal(size=40), rng.normal(size=20)]
    )
    found = measured(vector[None], [np.eye(12)[:, :3], np.eye(40)[:, :2]], [12, 40, 20])
    drawn = geometry.block_matched_control(found, n_draws=1500)[:, 0]
    explicit = []
    for _ in range(1500):
        bases = [np.linalg.qr(rng.normal(size=s))[0] for s in ((12, 3), (40, 2))]
        explicit.append(measured(vector[None], bases, [12, 40, 20]).rho[0])
    assert ks_2samp(drawn, explicit).pvalue > 1e-3
    assert found.matched[0] == pytest.approx(np.sqrt(np.mean(drawn**2)), rel=0.03)
    # Most of it lies in the small block.
    assert found.matched[0] > 1.5 * found.control.rms


def test_matched_and_uniform_controls_agree_for_an_even_spread():
    found = measured(
        np.ones((1, 72)), [np.eye(36)[:, :2], np.eye(36)[:, :2]], [36, 36, 0]
    )
    assert found.matched[0] == pytest.approx(found.control.rms)


def test_a_zero_vector_has_no_share():
    assert np.isnan(measured(np.zeros((1, 30)), [np.eye(20)[:, :1]], [20, 10]).rho[0])


def test_overlap_of_random_subspaces_is_that_of_the_explicit_ones():
    rng = np.random.default_rng(0)
    pairs = [
        [np.linalg.qr(rng.normal(size=(30, r)))[0] for r in (2, 4)] for _ in range(800)
    ]
    explicit = np.array([geometry.principal_angles(W, V) for W, V in pairs])
    drawn = geometry.random_subspace_angles(2, 4, 30, n_draws=800)
    assert drawn.shape == explicit.shape and np.all(np.diff(drawn, axis=1) >= 0)
    for i in range(2):
        assert ks_2samp(drawn[:, i], explicit[:, i]).pvalue > 1e-3
    overlap = [geometry.subspace_overlap(W, V) for W, V in pairs]
    assert np.mean(overlap) == pytest.approx(4 / 30, rel=0.05)


def test_a_subspace_that_is_shared_is_found_and_a_random_one_is_not():
    rng = np.random.default_rng(0)
    W, V = (np.linalg.qr(rng.normal(size=(400, 3)))[0] for _ in range(2))
    mixed = np.linalg.qr(np.column_stack([W[:, 0], V[:, 1:]]))[0]
    by_chance = (np.cos(geometry.random_subspace_angles(3, 3, 400)) ** 2).mean(axis=1)
    assert (by_chance >= geometry.subspace_overlap(W, mixed)).mean() < 0.01
    assert (by_chance >= geometry.subspace_overlap(W, V)).mean() > 0.01
    assert geometry.subspace_overlap(
        W, W @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
    ) == (pytest.approx(1.0))


def test_overlap_does_not_depend_on_a_rotation_of_the_weights():
    rng = np.random.default_rng(0)
    W, V = (np.linalg.qr(rng.normal(size=(40, 3)))[0] for _ in range(2))
    Q = np.linalg.qr(rng.normal(size=(40, 40)))[0]
    turned = geometry.subspace_overlap(Q @ W, Q @ V)
    assert turned == pytest.approx(geometry.subspace_overlap(W, V))


def test_bases_that_are_none_are_refused():
    with pytest.raises(ArgumentError, match="orthonormal columns"):
        geometry.subspace_overlap(2 * np.eye(4)[:, :2], np.eye(4)[:, :2])
    with pytest.raises(ArgumentError, match="equally many rows"):
        geometry.subspace_overlap(np.eye(4)[:, :2], np.eye(5)[:, :2])
    with pytest.raises(
        ArgumentError, match=r"dimension must be at least r \+ s = 6; got 5"
    ):
        geometry.random_subspace_angles(3, 3, 5)


@pytest.mark.parametrize("bad", [np.nan, 2.5, "3", True, None])
def test_numbers_that_are_not_whole_are_refused_by_name(bad):
    calls = {
        "k": [lambda: geometry.random_subspace_control(bad, 10)],
        "dimension": [
            lambda: geometry.random_subspace_control(3, bad),
            lambda: geometry.random_subspace_angles(2, 2, bad),
        ],
        "n_draws": [
            lambda: geometry.block_matched_control(measured_once(), n_draws=bad),
            lambda: geometry.random_subspace_angles(2, 2, 9, n_draws=bad),
        ],
        "r": [lambda: geometry.random_subspace_angles(bad, 2, 9)],
    }
    for name, each in calls.items():
        for call in each:
            with pytest.raises(ArgumentError, match=f"^{name} must be a whole number"):
                call()


def measured_once():
    return BlockEnergies(
        np.ones((1, 1)), np.ones((1, 1)), np.array([4]), np.array([400])
    )
