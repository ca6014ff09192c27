"""A transformer with the square loss learns the concepts of a real corpus in their order."""

import numpy as np
import xarray as xr

from ontogeny import semantics, tasks
from ontogeny_papers.reproduce import training


def test_larger_singular_values_are_learned_earlier_and_shuffled_ones_are_not_learned():
    stream = semantics.word_stream(tasks.python_documentation(), punctuation=False)
    support = semantics.support_matrix(
        stream, vocab_size=60, n_contexts=150, lengths=(1, 2)
    )
    S = support.S.toarray()
    basis = semantics.svd_concepts(support, 20)
    null = semantics.svd_concepts(semantics.shuffled_next_words(support, 0), 20)
    task = training.ContextTask(support.contexts.ids, S - S.mean(axis=0), "square")
    model = training.context_model(60, longest=2, width=64, layers=1)

    def measure(logits):
        along = [np.sum(b.U * (logits @ b.V), axis=0) for b in (basis, null)]
        return xr.Dataset({"projection": (("corpus", "concept"), along)})

    steps = np.unique(np.geomspace(1, 220, 50).astype(int))
    run = training.record_logits(
        model, task, 220, at=[0, *steps], learning_rate=2e-3, measure=measure
    )
    real, shuffled = run.projection.transpose("corpus", "concept", "step").values
    learned = semantics.first_crossing(run.step, real, basis.sigma / 2)
    order = semantics.learning_order(basis.sigma, learned)
    assert order.spearman > 0.8 and order.p_value < 0.001
    # Concept 1 is word frequency, which a shuffled corpus shares; the others are chance.
    assert np.abs(shuffled[1:, -1] / null.sigma[1:]).max() < np.median(
        real[:, -1] / basis.sigma
    )
