"""Recipes of the report that need no training: algorithms, solutions, turning directions."""

import numpy as np
import pytest
import torch
import xarray as xr

import ontogeny as og
from ontogeny.claims import Reason
from ontogeny.concepts import convex as library
from ontogeny.concepts.base import Extractor
from ontogeny_papers.reproduce.concepts import (
    adamw,
    convex,
    rotating,
    solutions,
    solvers,
)
from ontogeny_papers.reproduce.concepts.extractors import CONVEX
from ontogeny_papers.reproduce.recipe import Materials

TINY = rotating.RotatingSize(rows=200, features=12, concepts=3, steps=5, seeds=(0, 1))


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_the_printed_update_is_that_of_pytorch(decay):
    rng = np.random.default_rng(0)
    theta = torch.nn.Parameter(torch.tensor(rng.standard_normal(5)))
    own, moments = theta.detach().clone(), adamw.Moments(torch.zeros(5), torch.zeros(5))
    how = {"lr": 0.1, "betas": (0.8, 0.9), "eps": adamw._EPSILON, "weight_decay": decay}
    optimizer = torch.optim.AdamW([theta], **how)
    for t in range(1, 6):
        theta.grad = torch.tensor(rng.standard_normal(5))
        moments = adamw.printed_update(
            own, theta.grad, moments, t, 0.1, (0.8, 0.9), decay
        )
        optimizer.step()
        torch.testing.assert_close(own, theta.detach(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("rule", ["printed", "corrected"])
def test_the_literal_rule_is_that_of_the_library(rule):
    A = torch.tensor(np.random.default_rng(0).standard_normal((40, 6)))
    H = library._start(A, 3, 0, None).to(A.dtype)
    variant = "report" if rule == "printed" else "multiplicative"
    options = og.concepts.ConvexNMF(n_concepts=3, variant=variant, strict_convex=False)
    assert isinstance(options, Extractor)
    steps = library._multiplicative(A, A, H, options)
    theirs = [float(next(steps)[2]) for _ in range(8)]
    labels = library.nearest(A, (H + 0.1 / 40) @ A)
    U = 0.1 + library.one_hot(labels, 3).to(A.dtype)
    own = convex.objectives(*(x.numpy() for x in (A, U, H + 0.1 / 40)), rule, False, 8)
    np.testing.assert_allclose(
        own[1:] * 0.5 * float(A.square().sum()), theirs, rtol=1e-6
    )


def traces(printed, corrected):
    """Return a node with two cases of signed data of every kind and one of non-negative."""
    cases = ["planted, a", "run, step 0, b", "non-negative, c"]
    falls = np.linspace(1, 0.5, 4)
    found = np.tile(falls, (3, 2, 2, 1))
    found[:2, :, 0], found[:2, :, 1] = printed, corrected
    coords = {
        "case": cases,
        "strict": [0, 1],
        "rule": ["printed", "corrected"],
        "step": range(4),
    }
    return xr.Dataset(
        {"objective": (("case", "strict", "rule", "step"), found)}, coords
    )


def test_a_rule_that_rises_or_overflows_is_found():
    falls, rises = [1, 0.8, 0.6, 0.4], [1, 0.8, 0.9, 0.7]
    overflows = [1, 2, np.nan, np.nan]

    def answers(printed, corrected=falls):
        runs = [convex.ends_of(traces(printed, corrected))] * 2
        return [verdict.holds for verdict in convex.judge(runs)]

    assert answers(rises) == [False, False, True]
    assert answers(overflows)[1] is True
    assert answers(overflows, overflows)[1:] == [None, False]
    assert answers(falls)[0] is True


def test_maps_keep_a_problem_where_constraints_and_objective_stay():
    rng = np.random.default_rng(0)
    U, W = np.abs(rng.standard_normal((2, 30, 3))) * (rng.random((2, 30, 3)) < 0.5)
    fit = solutions.Fit(U, W)
    flip, scale = np.diag([-1.0, 1, 1]), np.diag([2.0, 0.5, 3])
    turn = np.eye(3)[[2, 0, 1]]
    assert solutions.kept("nmf", fit, turn) and solutions.kept("nmf", fit, scale)
    assert not solutions.kept("nmf", fit, flip)
    mixture = np.array([[1.0, 0.5, 0], [0, 1, 0], [0, 0, 1]])
    assert solutions.kept("semi-nmf", fit, mixture) and not solutions.kept(
        "nmf", fit, mixture
    )
    np.testing.assert_allclose(
        fit.mapped(mixture).U @ fit.mapped(mixture).W.T, U @ W.T, atol=1e-10
    )


def test_the_rows_of_table_1_are_judged_by_what_is_kept():
    run = solutions._measured(0)
    before = {v.claim: v.holds for v in solutions.judge([run])}
    assert before["k-means: order only"] is True
    assert before["semi-NMF: order only"] is False
    assert before["the library's own table of equivalences is right"] is True
    order = run.copy(deep=True)
    order.kept.loc[{"extractor": "semi-nmf"}] = [1.0, 0, 0, 0, 0]
    order["refit"] = order.unrelated
    after = {v.claim: v.holds for v in solutions.judge([order])}
    assert after["semi-NMF: order only"] is True
    unique = f"{CONVEX}: another start finds the same solution up to order"
    assert before[unique] is False and after[unique] is False
    order["refit"] = 0.01 * order.unrelated
    found = {v.claim: v.holds for v in solutions.judge([order])}
    assert found[unique] is True
    unknown = "ICA: may be pathological, the structure of its solutions is not known"
    # Easy data.
    assert after[unknown] is True and before[unknown] is None


def test_turning_directions_keep_codes_and_lengths():
    codes, words = rotating.planted_factors("turn", TINY, 0)
    assert (codes == codes[-1]).all()
    lengths = np.linalg.norm(words, axis=1)
    np.testing.assert_allclose(lengths, np.broadcast_to(lengths[-1], lengths.shape))
    codes, words = rotating.planted_factors("recode", TINY, 0)
    assert (words == words[-1]).all() and not np.allclose(codes[0], codes[-1])


def test_each_comparison_sees_its_own_change_and_no_other():
    kinds = list(rotating._RUNS.items())
    found = {
        label: [rotating._measured(k, TINY, s) for s in (0, 1)] for k, label in kinds
    }
    assert [v.holds for v in rotating.judge(found)] == [True] * 2 + [False]
    turn, recode, nothing = (label for _, label in kinds)
    swapped = {turn: found[recode], recode: found[turn], nothing: found[nothing]}
    assert [v.holds for v in rotating.judge(swapped)[:2]] == [False] * 2


def test_a_solver_counts_beside_every_other_extractor():
    """SVD moved as little as convex NMF, and only ICA stood beside it."""
    others = {"ICA": 6.0, "SVD": 0.8, "PCA": 1.2}

    def judged(own, **more):
        moves = [own] * 3 + list((others | more).values())
        data = np.broadcast_to(np.array(moves)[None, :, None], (2, 6, 5))
        coords = {"solver": list(solvers._SOLVERS)}
        run = xr.Dataset({"move": (("case", "solver", "draw"), data)}, coords)
        return solvers.judge([run, run])[0]

    assert judged(0.3).holds is True and judged(13.0).holds is False
    as_svd = judged(0.77)
    assert as_svd.holds is None and as_svd.reason is Reason.SMALL


def test_algorithm_1_runs_on_a_small_text(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text(
        "\n\n".join(f"the cat number {i} sat on the mat and slept" for i in range(200))
    )
    size = adamw.AdamWSize(steps=20, width=16, vocab_size=280, seeds=(0,))
    found = adamw.measure_adamw(size, Materials(text=text))
    verdicts = adamw.judge(*found.numbers)
    assert [v.holds for v in verdicts[:3]] == [True, True, True]
    assert set(found.nodes) == {"updates", "loss"}
