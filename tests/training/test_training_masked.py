import logging

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from ontogeny.errors import ArgumentError
from ontogeny.tasks import train_tokenizer
from ontogeny.training import demo_model, masked_language_modelling, train
from ontogeny.training.masked import MaskedBatch, MaskedLanguageModelling, masked_logits
from ontogeny.training.parallel import shared_among

TEXTS = [f"The number {n} comes after {n - 1}." for n in range(60)]
TOKENIZER = train_tokenizer(TEXTS, vocab_size=300)


def task(**options):
    sizes = {"length": 16, "tokens_per_step": 64}
    return masked_language_modelling(TEXTS, TOKENIZER, **{**sizes, **options})


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def small_model(**options):
    sizes = {"layers": 2, "width": 32}
    return demo_model(TOKENIZER, **{**sizes, **options}).eval()


def labels_of(batch):
    labels = torch.full_like(batch.ids, -100).flatten()
    labels[batch.positions] = batch.targets
    return labels.reshape(batch.ids.shape)


def test_logits_at_masked_positions_are_those_of_the_full_output():
    model, batch = small_model(), task().sample(generator())
    full = model(batch.ids).logits.flatten(0, 1)[batch.positions]
    torch.testing.assert_close(masked_logits(model, batch), full, rtol=1e-6, atol=1e-6)


def test_loss_and_gradients_equal_transformers_own_loss_over_all_positions():
    made, batch = task(), task().sample(generator())
    model, reference = small_model(), small_model()
    ours = made.loss(model, batch)
    theirs = reference(input_ids=batch.ids, labels=labels_of(batch)).loss
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)
    ours.backward()
    theirs.backward()
    for mine, other in zip(model.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=1e-4, atol=1e-7)


def test_only_masked_positions_reach_the_output_layer():
    model, batch = small_model(), task().sample(generator())
    shapes = []
    model.lm_head.register_forward_hook(
        lambda module, args, out: shapes.append(out.shape)
    )
    task().loss(model, batch)
    assert shapes == [(len(batch.positions), len(TOKENIZER))]


def test_another_architecture_gives_its_own_loss():
    from transformers import BertConfig, BertForMaskedLM

    model = BertForMaskedLM(
        BertConfig(
            vocab_size=len(TOKENIZER),
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=16,
        )
    ).eval()
    made = task()
    batch = made.sample(generator())
    theirs = model(input_ids=batch.ids, labels=labels_of(batch)).loss
    torch.testing.assert_close(made.loss(model, batch), theirs)


def test_a_plain_module_that_returns_logits_is_trained_to_the_unigram_frequencies():
    class Unigram(nn.Module):
        def __init__(self):
            super().__init__()
            self.logits = nn.Parameter(torch.zeros(len(TOKENIZER)))

        def forward(self, ids):
            return self.logits.expand(*ids.shape, -1)

    made = task(length=64, tokens_per_step=2048)
    model = Unigram()
    train(
        model,
        made.sample,
        made.loss,
        200,
        optimizer=torch.optim.Adam(model.parameters(), lr=0.1),
    )
    with torch.no_grad():
        loss = made.loss(model, made.sample(generator(1))).item()
    assert loss == pytest.approx(made.unigram_entropy, abs=0.1)


@given(
    length=st.integers(3, 40),
    crops=st.integers(1, 5),
    fraction=st.floats(0.01, 0.9),
    seed=st.integers(0, 99),
)
def test_a_batch_is_crops_of_the_stream_with_the_share_masked(
    length, crops, fraction, seed
):
    made = task(length=length, tokens_per_step=length * crops, mask_fraction=fraction)
    batch = made.sample(generator(seed))
    ids = batch.ids.flatten().clone()
    assert (ids[batch.positions] == TOKENIZER.mask_token_id).all()
    assert (batch.positions.diff() > 0).all()
    assert not torch.isin(batch.targets, torch.tensor(TOKENIZER.all_special_ids)).any()
    ids[batch.positions] = batch.targets
    windows = made.stream.unfold(0, length, 1)
    for crop in ids.reshape(crops, length):
        assert (windows == crop).all(1).any()
    ordinary = int((~torch.isin(ids, torch.tensor(TOKENIZER.all_special_ids))).sum())
    assert len(batch.positions) == max(round(fraction * ordinary), 1)


def test_the_generator_decides_the_batch_and_the_stream_is_left_alone():
    made = task()
    before = made.stream.clone()
    first, again, other = (made.sample(generator(seed)) for seed in (0, 0, 1))
    assert torch.equal(first.ids, again.ids) and torch.equal(
        first.positions, again.positions
    )
    assert not torch.equal(first.ids, other.ids)
    assert torch.equal(made.stream, before)


def test_crops_reach_the_first_and_the_last_token():
    stream = torch.arange(10, 15)
    made = MaskedLanguageModelling(
        stream, 4, 40, torch.ones(5, dtype=torch.bool), 1, 0.1
    )
    assert set(made.sample(generator()).ids.unique().tolist()) == {1, *range(10, 15)}


def test_the_stream_is_the_texts_one_after_the_other():
    wanted = [i for text in TEXTS for i in TOKENIZER(text).input_ids]
    assert task().stream.tolist() == wanted


def test_empty_texts_are_left_out():
    made = masked_language_modelling(
        ["", *TEXTS, ""], TOKENIZER, length=16, tokens_per_step=64
    )
    assert torch.equal(made.stream, task().stream)


def test_unigram_entropy_of_equal_frequencies_is_the_logarithm_of_their_number():
    stream = torch.tensor([0, 5, 6, 7, 8, 0, 5, 6, 7, 8])
    made = MaskedLanguageModelling(stream, 4, 1, stream != 0, 1, 0.15)
    assert made.unigram_entropy == pytest.approx(torch.log(torch.tensor(4.0)).item())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"length": 2}, "length"),
        ({"tokens_per_step": 65}, "multiple of length=16"),
        ({"tokens_per_step": 0}, "multiple"),
        ({"mask_fraction": 0.0}, "mask_fraction"),
        ({"length": 10**5, "tokens_per_step": 10**5}, "too short"),
    ],
)
def test_bad_options_are_named(options, said):
    with pytest.raises(ArgumentError, match=said):
        task(**options)


def test_texts_that_are_none_are_refused():
    for texts in ([], "a text"):
        with pytest.raises(ArgumentError, match="texts must be a list"):
            masked_language_modelling(texts, TOKENIZER)


def test_the_demo_model_has_the_architecture_it_claims():
    model = small_model(heads=4, key_value_heads=2)
    attention = model.model.layers[0].self_attn
    assert attention.q_proj.weight.shape == (32, 32)
    assert attention.k_proj.weight.shape == attention.v_proj.weight.shape == (16, 32)
    assert type(model.model.norm).__name__ == "EuroBertRMSNorm"
    assert model.config.hidden_act == "silu"
    assert model.config.mask_token_id == TOKENIZER.mask_token_id
    ids = [
        getattr(model.config, f"{name}_token_id")
        for name in ("pad", "bos", "eos", "mask")
    ]
    assert all(0 <= i < model.config.vocab_size for i in ids)


def test_the_untrained_model_knows_nothing_yet():
    loss = task().loss(small_model(), task().sample(generator())).item()
    assert loss == pytest.approx(
        torch.log(torch.tensor(float(len(TOKENIZER)))).item(), abs=0.1
    )


def test_the_seed_decides_the_weights_and_the_random_state_outside_is_left_alone():
    state = torch.random.get_rng_state()
    first, again, other = (small_model(random_state=seed) for seed in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.equal(first.lm_head.weight, again.lm_head.weight)
    assert not torch.equal(first.lm_head.weight, other.lm_head.weight)


def test_model_and_batches_are_made_in_silence(caplog, capfd):
    caplog.set_level(logging.INFO)
    made = masked_language_modelling(
        [" ".join(TEXTS)], TOKENIZER, length=16, tokens_per_step=64
    )
    made.loss(small_model(), made.sample(generator()))
    captured = capfd.readouterr()
    assert (caplog.text, captured.out, captured.err) == ("", "", "")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"layers": 0}, "layers"),
        ({"width": 30}, "width"),
        ({"width": 12, "heads": 4}, "width"),
        ({"heads": 4, "key_value_heads": 3}, "multiple of key_value_heads"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(options, said):
    with pytest.raises(ArgumentError, match=said):
        small_model(**options)


def test_a_tokenizer_without_a_mask_is_refused():
    bare = train_tokenizer(TEXTS, vocab_size=261)
    bare.mask_token = None
    with pytest.raises(ArgumentError, match="mask_token"):
        demo_model(bare)
    with pytest.raises(ArgumentError, match="no mask token"):
        masked_language_modelling(TEXTS, bare)


def test_threads_that_share_a_batch_give_its_gradient_and_always_the_same_bits():
    texts = ["the cat sat on the mat, and the dog sat on the cat"] * 8
    tokenizer = train_tokenizer(texts, vocab_size=300)
    task = masked_language_modelling(texts, tokenizer, length=16, tokens_per_step=112)

    def weights(workers, steps=12):
        model = demo_model(tokenizer, layers=2, width=16).double()
        log = train(model, task.sample, task.loss, steps, workers=workers)
        return log.loss, torch.cat([p.detach().flatten() for p in model.parameters()])

    (alone, one), (losses, three), (again, same) = weights(1), weights(3), weights(3)
    assert np.allclose(alone, losses, rtol=1e-5) and np.array_equal(losses, again)
    assert torch.allclose(one, three, atol=1e-5) and torch.equal(three, same)


def test_threads_are_given_back():
    before = torch.get_num_threads()
    with shared_among(2, lambda model, batch: batch), pytest.raises(ZeroDivisionError):
        raise ZeroDivisionError
    assert torch.get_num_threads() == before


def test_what_a_thread_raises_is_raised():
    batch = MaskedBatch(
        torch.zeros(2, 4, dtype=int), torch.tensor([1, 6]), torch.zeros(2).long()
    )

    def loss(model, part):
        raise RuntimeError("no loss")

    with (
        shared_among(2, loss) as gradient,
        pytest.raises(RuntimeError, match="no loss"),
    ):
        gradient(torch.nn.Linear(1, 1), batch)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([], r"0 parts add up to 0"),
        ([(torch.ones(1, 2), 0.5)], r"must add up to 1; 1 parts add up to 0.5"),
        (None, r"needs batches with a method split\(parts\)"),
    ],
)
def test_batches_that_cannot_be_shared_are_refused(parts, said):
    class Batch:
        split = (lambda self, count: parts) if parts is not None else None

    shared = shared_among(2, lambda model, x: model(x).mean())
    with shared as gradient, pytest.raises(ArgumentError, match=said):
        gradient(torch.nn.Linear(2, 1), Batch())


def test_threads_take_scalar_losses_on_a_cpu_only():
    batch = MaskedBatch(
        torch.zeros(2, 4, dtype=int), torch.tensor([1, 6]), torch.zeros(2).long()
    )
    shared, said = (
        shared_among(2, lambda model, part: torch.ones(3)),
        r"it returned \(3,\)",
    )
    with shared as gradient, pytest.raises(ArgumentError, match=said):
        gradient(torch.nn.Linear(1, 1), batch)
    with pytest.raises(ArgumentError, match="device='meta' leave workers at 1, got 2"):
        train(
            torch.nn.Linear(1, 1),
            [batch],
            lambda model, x: x,
            1,
            device="meta",
            workers=2,
        )
