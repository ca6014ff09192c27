"""The parts of an activation, against plain loops and scikit-learn."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from ontogeny.concepts.beyond_token import PRIOR, Tokens, centred
from ontogeny.features.learned_concepts.parts import RIDGE, Predictor, scale_of, scaled


@pytest.fixture
def sample():
    rng = np.random.default_rng(0)
    unit = np.repeat(np.arange(30), 12)
    token = rng.zipf(1.6, len(unit)) % 17
    table = rng.normal(size=(17, 5))
    H = table[token] + 0.5 * rng.normal(size=(len(unit), 5))
    return Tokens(token, unit), centred(H)


def test_the_token_part_is_the_mean_of_other_texts(sample):
    tokens, H = sample
    for i in range(0, len(H), 7):
        others = (tokens.token == tokens.token[i]) & (tokens.unit != tokens.unit[i])
        mean = H[others].sum(axis=0) / (others.sum() + PRIOR)
        np.testing.assert_allclose(tokens.left(H)[i], H[i] - mean, rtol=1e-4, atol=1e-5)


def test_a_token_of_one_text_explains_nothing():
    tokens = Tokens(np.array([4, 4, 9, 9]), np.array([0, 0, 1, 1]))
    H = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    np.testing.assert_array_equal(tokens.left(H), H)


def test_units_that_look_like_another_pair_are_kept_apart():
    # Kind and unit are one number: 3 of 10 must not be 2 of 11.
    tokens = Tokens(np.array([0, 1, 0, 1]), np.array([1, 0, 0, 1]))
    H = np.array([[1.0], [2.0], [3.0], [4.0]], dtype=np.float32)
    expected = H - H[[2, 3, 0, 1]] / (1 + PRIOR)
    np.testing.assert_allclose(tokens.left(H), expected, rtol=1e-6)


def test_shares_are_of_the_whole_layer_and_of_each_text(sample):
    tokens, H = sample
    left = tokens.left(H)
    explained, rest = tokens.explained(left, H), tokens.share(left, H)
    assert explained.value == pytest.approx(
        1 - (left**2).sum() / (H**2).sum(), abs=1e-5
    )
    assert explained.value + rest.value == pytest.approx(1, abs=1e-9)
    first = tokens.unit == 0
    of_text = explained.of_text[1][0]
    assert of_text == pytest.approx(
        1 - (left[first] ** 2).sum() / (H[first] ** 2).sum(), abs=1e-5
    )
    # The weighted mean over texts is the value, as what resamples texts takes it to be.
    weights = explained.weights[1]
    assert np.average(explained.of_text[1], weights=weights) == pytest.approx(
        explained.value
    )


def test_predictions_are_those_of_ridge_regression_on_the_other_half():
    rng = np.random.default_rng(1)
    X = scaled(rng.normal(size=(400, 6)) @ rng.normal(size=(6, 6)))
    Y = (X @ rng.normal(size=(6, 3)) + rng.normal(size=(400, 3))).astype(np.float32)
    half = np.arange(400) % 3 == 0
    predicted = Predictor(X, half).of(Y)
    for fit in (half, ~half):
        moment = (X[fit].astype(np.float64) ** 2).sum()
        ridge = Ridge(RIDGE * moment / 6, fit_intercept=False)
        ridge.fit(X[fit], Y[fit] - Y[fit].mean(axis=0))
        np.testing.assert_allclose(predicted[~fit], ridge.predict(X[~fit]), atol=1e-4)


def test_noise_cannot_be_read_and_a_linear_map_can():
    rng = np.random.default_rng(2)
    X = scaled(rng.normal(size=(3000, 8)))
    Y = np.stack([X @ rng.normal(size=8), rng.normal(size=3000)], axis=1).astype(
        np.float32
    )
    readable = Predictor(X, np.arange(3000) < 1500).readable(Y)
    assert (readable[:, 0] > 0.99).all() and (np.abs(readable[:, 1]) < 0.15).all()


def test_constant_features_stay_zero():
    X = np.ones((50, 3), dtype=np.float32)
    X[:, 1] = np.arange(50)
    assert scale_of(centred(X)).tolist()[0] == 1.0
    assert not scaled(X)[:, [0, 2]].any()


@pytest.mark.parametrize(
    ("tokens", "features", "worse"), [(40, 60, True), (4000, 6, False)]
)
def test_a_prediction_that_is_worse_than_none_takes_nothing_away(
    tokens, features, worse
):
    # A share that was learned was 1.1 to 3.2 of the layer where tokens were fewer than features.
    rng = np.random.default_rng(0)
    X = scaled(rng.normal(size=(tokens, features)))
    Y = X @ rng.normal(size=(features, 8)) / 10 + rng.normal(size=(tokens, 8))
    Y = np.asarray(Y - Y.mean(axis=0), dtype=np.float32)
    predictor = Predictor(X, np.arange(tokens) % 2 == 0)
    rest = Y - predictor.of(Y)
    assert (np.square(rest).sum() > np.square(Y).sum()) == worse
    np.testing.assert_array_equal(predictor.left(Y), Y if worse else rest)
