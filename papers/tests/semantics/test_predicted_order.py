"""The order of learning that a corpus predicts, its uncertainty, and how it is compared."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from ontogeny import semantics, tasks
from ontogeny.errors import ArgumentError
from ontogeny.features.wordspace.counting import Contexts, count_next_words, relabelled
from ontogeny_papers.semantics.objectives import make_objective
from ontogeny_papers.semantics.resampled import ResampledCorpus

TEXTS = tasks.bundled_texts("english")[:80]


@pytest.fixture(scope="module")
def order():
    return semantics.predicted_order(
        TEXTS, 8, vocab_size=60, n_contexts=150, resamples=60, n_draws=5
    )


@pytest.mark.parametrize("loss", ["cross_entropy", "square"])
@pytest.mark.parametrize("weighted", [True, False])
def test_rates_are_singular_values_of_minus_the_gradient_at_zero_logits(loss, weighted):
    order = semantics.predicted_order(
        TEXTS,
        6,
        loss=loss,
        weighted=weighted,
        vocab_size=40,
        n_contexts=90,
        n_draws=2,
        resamples=9,
    )
    support, m = order.support, order.support.shape[1]
    S = support.S.toarray()
    pi = support.pi if weighted else None
    objective = make_objective(S - S.mean(axis=0), loss, support.P.toarray(), pi, 0.0)
    assert order.rates == pytest.approx(
        objective.growth_rates()[: len(order.rates)] / m
    )
    inside = (order.rate_interval[:, 0] <= order.rates) & (
        order.rates <= order.rate_interval[:, 1]
    )
    assert inside.mean() >= 0.8


def test_a_resampled_corpus_is_counted_as_if_its_texts_stood_one_after_the_other():
    stream = semantics.word_stream(TEXTS)
    support = semantics.support_matrix(stream, 50, 120, (1, 3))
    corpus = ResampledCorpus.of(stream, support)
    assert (corpus.count, corpus.unit) == (len(TEXTS), "texts")
    drawn = corpus.draw(np.random.default_rng(3))
    times = np.random.default_rng(3).multinomial(80, np.full(80, 1 / 80))
    texts = [text for text, n in zip(TEXTS, times, strict=True) for _ in range(n)]
    again = semantics.word_stream(texts)
    number = {word: i for i, word in enumerate(again.words)}
    ids = np.array([number.get(word, -2) for word in support.words])
    found = Contexts(support.contexts.ids, np.zeros(0))
    table = np.where(ids < 0, len(again.words) + np.arange(len(ids)), ids)
    oracle = count_next_words(relabelled(again.ids, table), found, len(support.words))
    assert (drawn.counts != oracle).nnz == 0


def test_blocks_of_words_are_resampled_where_there_are_few_texts():
    whole = " ".join(TEXTS)
    order = semantics.predicted_order(whole, 3, vocab_size=30, resamples=5, n_draws=2)
    assert order.unit == "blocks of 200 words"
    assert order.units == pytest.approx(len(semantics.word_stream(whole)) / 200, abs=1)


def test_intervals_hold_the_rate_of_the_process_that_wrote_the_texts():
    """Texts from a Markov chain, whose rate along fixed concepts is known."""
    rng = np.random.default_rng(0)
    step = rng.dirichlet(np.full(6, 0.4), 6)

    def write(n):
        word = np.array([rng.integers(6, size=n)])
        for _ in range(40):
            last = word[-1]
            word = np.vstack(
                [word, (rng.random((n, 1)) > step[last].cumsum(1)).sum(1).clip(0, 5)]
            )
        return word.T

    truth = semantics.predicted_order(write(4000), 2, lengths=1, resamples=2, n_draws=2)
    inside = []
    for _ in range(20):
        order = semantics.predicted_order(
            write(40), 2, lengths=1, resamples=80, n_draws=2
        )
        low, high = order.rate_interval.T
        inside.append((low <= truth.rates) & (truth.rates <= high))
    assert np.mean(inside) > 0.8


def test_the_share_is_linear_in_what_the_model_puts_out(order):
    P = np.maximum(order.support.P.toarray(), 1e-300)
    assert order.learned_share(np.log(P)) == pytest.approx(np.ones(8))
    even = np.full_like(P, 1 / len(P))
    assert order.learned_share(np.log(0.3 * P + 0.7 * even)) == pytest.approx(
        np.full(8, 0.3)
    )
    assert order.learned_shares(np.log(even)) == pytest.approx(
        np.zeros((6, 8)), abs=1e-10
    )


def test_free_embeddings_learn_in_the_predicted_order():
    order = semantics.predicted_order(
        TEXTS,
        4,
        loss="square",
        weighted=False,
        vocab_size=30,
        n_contexts=60,
        n_draws=2,
        resamples=20,
    )
    S = order.support.S.toarray()
    run = semantics.train_ufm(
        S - S.mean(axis=0), 4, delta=4.0, step_size=0.1, records=150
    )
    assert np.allclose(run.sigma / 60, order.rates)
    share = (run.projection / run.sigma).transpose("time", "concept").values
    shares = np.stack([share] + [np.zeros_like(share)] * 2, axis=1)
    found = semantics.compare_order(order, run.time.values, shares)
    assert found.spearman == 1 and found.shuffled.tolist() == [0, 0]


def test_the_comparison_is_spearmans_correlation_of_every_seed(order):
    rng = np.random.default_rng(1)
    steps = np.arange(50.0)
    when = rng.permuted(np.tile(np.arange(5.0, 45.0, 5.0), (3, 6, 1)), axis=2)
    shares = (steps[None, :, None, None] >= when[:, None]).astype(float)
    found = semantics.compare_order(order, steps, shares)
    oracle = [spearmanr(order.rates, -row).statistic for row in when[:, 0]]
    assert found.of_seed == pytest.approx(oracle)
    assert found.spearman == pytest.approx(np.mean(oracle))
    assert found.interval[0] < found.spearman < found.interval[1]
    assert "3 seeds" in str(found)


def test_an_order_of_its_own_is_hardly_ever_called_the_predicted_one(order):
    rng = np.random.default_rng(2)
    steps = np.arange(20.0)
    p_values = []
    for _ in range(40):
        when = rng.permuted(np.arange(2.0, 18.0, 2.0))
        shares = np.repeat((steps[:, None, None] >= when).astype(float), 6, axis=1)
        p_values.append(semantics.compare_order(order, steps, shares).p_value)
    assert np.mean(np.array(p_values) <= 0.05) <= 0.15


def test_what_was_never_learned_counts_last(order):
    steps = np.arange(10.0)
    shares = np.zeros((10, 6, 8))
    shares[1:, 0, :4] = 1
    found = semantics.compare_order(order, steps, shares)
    assert np.isnan(found.learned_at[0, 4:]).all() and found.spearman > 0.8


def test_what_does_not_fit_is_refused(order):
    with pytest.raises(ArgumentError, match="shares must be"):
        semantics.compare_order(order, np.arange(4.0), np.zeros((4, 2, 8)))
    with pytest.raises(ArgumentError, match="logits must be"):
        order.learned_share(np.zeros((3, 3)))
    with pytest.raises(ArgumentError, match="words must be some"):
        order.of_words(["no such word"])
    with pytest.raises(ArgumentError, match="loss"):
        semantics.predicted_order(TEXTS, loss="hinge")


def test_the_same_seed_gives_the_same_numbers(order):
    again = semantics.predicted_order(
        TEXTS, 8, vocab_size=60, n_contexts=150, resamples=60, n_draws=5
    )
    assert (again.resampled == order.resampled).all()
    assert (again.rank_interval == order.rank_interval).all()
