"""Every preset gives a study that its model can compute, whatever the model is like."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers as tf
from torch import nn

import ontogeny as og
from ontogeny.capture import forward
from ontogeny.errors import StudyWarning
from ontogeny.observables.registry import make
from ontogeny.start.presets import PRESETS, fitted
from ontogeny.start.shown import look
from ontogeny.study.file import with_objective

VOCABULARY = 16


class Block(nn.Module):
    """Attention over the text before, and an MLP that is a Sequential."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attn = nn.MultiheadAttention(width, 1, batch_first=True)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x):
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        x = x + self.attn(x, x, x, attn_mask=later, need_weights=False)[0]
        return x + self.mlp(x)


class M(nn.Module):
    """A language model of blocks, one of which may be called several times."""

    def __init__(
        self, blocks: int = 2, width: int = 8, calls: int = 1, prefix: int = 0
    ) -> None:
        super().__init__()
        self.embed, self.calls = nn.Embedding(VOCABULARY, width), calls
        self.prefix = nn.Parameter(torch.randn(prefix, width)) if prefix else None
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, x):
        x = self.embed(x)
        if self.prefix is not None:
            x = torch.cat([self.prefix.expand(len(x), -1, -1), x], dim=1)
        for block in self.blocks:
            for _ in range(self.calls):
                x = block(x)
        return self.head(x)


class OneBlock(M):
    """A model of one block that is no member of a list."""

    def __init__(self) -> None:
        super().__init__(blocks=0)
        self.block = Block(8)

    def forward(self, x):
        return self.head(self.block(self.embed(x)))


class Masked(M):
    """One whose forward hands a mask on to what does not take it."""

    def forward(self, input_ids, **options):
        return super().forward(input_ids, **options)


class LastOnly(M):
    """One that computes the logits of the last token alone unless it is given targets."""

    def forward(self, idx, targets=None):
        logits = super().forward(idx)
        return (logits if targets is not None else logits[:, [-1]]), None


class Table(M):
    """One that returns a table."""

    def forward(self, input_ids, attention_mask=None):
        return {"logits": super().forward(input_ids)}


class Named(M):
    """One whose blocks have names."""

    def __init__(self) -> None:
        super().__init__(blocks=0)
        self.first, self.second = Block(8), Block(8)

    def forward(self, x):
        return self.head(self.second(self.first(self.embed(x))))


class Recurrent(M):
    """One whose cell is called once a token."""

    def __init__(self, embedded: bool = True) -> None:
        super().__init__(blocks=0)
        self.cell, self.embedded = nn.Linear(16, 8), embedded

    def forward(self, x):
        x = self.embed(x) if self.embedded else self.embed.weight[x]
        state, states = x.new_zeros(len(x), 8), []
        for t in range(x.shape[1]):
            state = torch.tanh(self.cell(torch.cat([x[:, t], state], dim=-1)))
            states.append(state)
        head = self.head.weight.T
        return torch.stack(states, dim=1) @ head


class TokensFirst(M):
    """One whose blocks take tokens first, as torch's own layers do unless they are told."""

    def __init__(self) -> None:
        super().__init__(blocks=0)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(8, 1, 16, dropout=0) for _ in range(2)
        )

    def forward(self, x):
        later = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        x = self.embed(x).transpose(0, 1)
        for block in self.blocks:
            x = block(x, src_mask=later)
        return self.head(x.transpose(0, 1))


class Relative(M):
    """One whose attention has an embedding of distances, which no text is given to."""

    def __init__(self) -> None:
        super().__init__(blocks=0)
        self.distance = nn.Embedding(64, 1)
        self.query, self.value = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        x = self.embed.weight[x]
        places = torch.arange(x.shape[1])
        apart = (places[:, None] - places).clamp(min=0)
        scores = self.query(x) @ x.transpose(1, 2) + self.distance(apart)[..., 0]
        later = torch.ones_like(scores, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(later, -torch.inf).softmax(dim=-1)
        return self.head(weights @ self.value(x))


class Placed(M):
    """One whose embedding of places is given one row of them for all texts."""

    def __init__(self) -> None:
        super().__init__(blocks=0)
        self.places = nn.Embedding(64, 8)

    def forward(self, x):
        return self.head(self.embed(x) + self.places(torch.arange(x.shape[1])[None]))


class HalfAList(M):
    """One whose list holds a module that gives something else, and one that is never called."""

    def __init__(self) -> None:
        super().__init__(blocks=0)
        self.blocks = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

    def forward(self, x):
        x = self.blocks[1](self.blocks[0](self.embed(x)))
        return self.head(x + 0 * self.blocks[2](x[:, 0])[:, None])


def _bag():
    return nn.Sequential(
        nn.Embedding(VOCABULARY, 4), nn.Linear(4, 4), nn.Linear(4, VOCABULARY)
    )


_SIZES = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2}
_SIZES |= {
    "intermediate_size": 16,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 32,
}


def _llama(cls=tf.LlamaForCausalLM, **options):
    return cls(tf.LlamaConfig(**_SIZES, num_key_value_heads=2, **options))


MODELS = {
    "blocks": M,
    "one block in a list": lambda: M(blocks=1),
    "one block": OneBlock,
    "width 4": lambda: M(width=4),
    "shared blocks": lambda: M(blocks=1, calls=3),
    "prefix tokens": lambda: M(prefix=3),
    "a mask too many": Masked,
    "the last token alone": LastOnly,
    "a table": Table,
    "named blocks": Named,
    "no attention": _bag,
    "recurrent": Recurrent,
    "tokens first": TokensFirst,
    "relative": Relative,
    "a position of its own": Placed,
    "half a list": HalfAList,
    "GPT-2": lambda: tf.GPT2LMHeadModel(
        tf.GPT2Config(
            n_embd=8, n_layer=2, n_head=2, vocab_size=VOCABULARY, n_positions=32
        )
    ),
    "GPT-2, one layer": lambda: tf.GPT2LMHeadModel(
        tf.GPT2Config(
            n_embd=4, n_layer=1, n_head=1, vocab_size=VOCABULARY, n_positions=32
        )
    ),
    "Llama": _llama,
    "Llama, tied": lambda: _llama(tie_word_embeddings=True),
    "a classifier": lambda: _llama(tf.LlamaForSequenceClassification, pad_token_id=0),
    "BERT": lambda: tf.BertForMaskedLM(tf.BertConfig(**_SIZES)),
    "BERT without a head": lambda: tf.BertModel(tf.BertConfig(**_SIZES)),
    "ALBERT": lambda: tf.AlbertForMaskedLM(tf.AlbertConfig(**_SIZES, embedding_size=4)),
}


ALBERT_BLOCK = "albert.encoder.albert_layer_groups.0.albert_layers.0"


def _studied(build, count: int = 3):
    models = {}
    for step in range(count):
        torch.manual_seed(step)
        models[10 * step] = build().eval()
    rng = np.random.default_rng(0)
    rows = [
        rng.integers(1, VOCABULARY - 1, length).tolist()
        for length in [8, 12, 12, 9] * 6
    ]
    texts = og.Inputs.from_tokens(
        rows, vocab_size=VOCABULARY, mask_token_id=VOCABULARY - 1
    )
    return og.Trajectory.from_models(models), texts


def _made(tables, facts):
    """Return observables as a study file makes them, which says once what the model predicts."""
    return [make(**with_objective(table, facts.objective)) for table in tables]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_every_preset_is_a_study_that_can_be_computed(name):
    run, texts = _studied(MODELS[name])
    facts = replace(look(run[20], texts), no_tokenizer="the run has no tokenizer")
    names = PRESETS if name == "blocks" else ("circuits", "everything")
    for preset in (PRESETS[each] for each in names):
        tables, left_out = fitted(preset, facts, len(run))
        assert all(left_out.values())
        if tables:
            study = og.Study(run, texts, _made(tables, facts), noise=0)
            assert study.plan().refused == ""


WITHOUT_LAYERS = {
    "no modules": (
        lambda: nn.Embedding(VOCABULARY, VOCABULARY),
        "Embedding calls no module inside that could be a layer",
    ),
    "once a token": (
        lambda: Recurrent(embedded=False),
        (
            "no module of Recurrent gives (texts, tokens, features) whenever it is called: of 2 "
            "texts 'cell' gives (2, 8), 12 times"
        ),
    ),
}


@pytest.mark.parametrize("name", WITHOUT_LAYERS)
def test_a_model_without_layers_has_its_loss_and_says_why_no_more(name):
    build, why = WITHOUT_LAYERS[name]
    run, texts = _studied(build)
    facts = replace(look(run[20], texts), no_tokenizer="the run has no tokenizer")
    assert (facts.layers, facts.no_layers) == ((), why)
    assert ": no layers, " in facts.line
    for preset in PRESETS.values():
        tables, left_out = fitted(preset, facts, len(run))
        assert not any("layers" in table for table in tables)
        if preset.name in ("quick", "standard", "fine-tuning"):
            assert tables[0]["kind"] == "loss" and why in left_out.values()
        if tables:
            study = og.Study(run, texts, _made(tables, facts), noise=0)
            assert study.plan().refused == ""


@pytest.mark.parametrize(
    ("name", "layers"),
    [
        ("tokens first", ("embed", "head")),
        ("recurrent", ("embed",)),
        ("relative", ("head", "query", "value")),
        ("a position of its own", ("embed", "head")),
        ("half a list", ("blocks.0", "blocks.1")),
    ],
)
def test_only_modules_that_give_texts_tokens_and_features_are_layers(name, layers):
    run, texts = _studied(MODELS[name], 1)
    facts = look(run[0], texts)
    assert facts.layers == layers
    labels = og.capture.match_layers(run[0].model(), facts.every_layer, texts)
    assert tuple(labels) == layers


def test_a_classifier_without_a_padding_token_is_told_where_one_stands():
    def build():
        model = tf.GPT2ForSequenceClassification(
            tf.GPT2Config(
                n_embd=8, n_layer=1, n_head=2, vocab_size=VOCABULARY, n_positions=32
            )
        )
        model.config.pad_token_id = None
        return model

    run, texts = _studied(build, 1)
    with pytest.raises(
        og.errors.ArgumentError, match=r"is defined\. Set pad_token_id in its conf"
    ):
        look(run[0], texts)


def test_ids_beyond_the_vocabulary_are_those_of_another_model():
    run, _ = _studied(MODELS["GPT-2"], 1)
    texts = og.Inputs.from_tokens([[1, 2, 3], [1, 2, 3], [1, VOCABULARY + 3, 2]])
    with pytest.raises(
        og.errors.ArgumentError, match="id 19, but GPT2LMHeadModel has only 16"
    ):
        look(run[0], texts)


def test_a_classifier_without_labels_is_told_what_their_column_may_be_called():
    run, texts = _studied(MODELS["a classifier"], 1)
    assert (
        "with one of the columns label, labels, class" in look(run[0], texts).no_labels
    )


@pytest.mark.parametrize(
    ("name", "layers", "objective"),
    [
        ("one block", ("block.mlp",), "causal"),
        ("one block in a list", ("blocks.0.mlp",), "causal"),
        ("prefix tokens", ("blocks.0.mlp", "blocks.1.mlp"), "causal"),
        ("a mask too many", ("blocks.0.mlp", "blocks.1.mlp"), "causal"),
        ("the last token alone", ("blocks.0.mlp", "blocks.1.mlp"), "causal"),
        (
            "shared blocks",
            ("blocks.0.mlp@0", "blocks.0.mlp@1", "blocks.0.mlp@2"),
            "causal",
        ),
        ("ALBERT", (f"{ALBERT_BLOCK}@0", f"{ALBERT_BLOCK}@1"), "masked"),
    ],
)
def test_layers_and_objectives_are_seen(name, layers, objective):
    run, texts = _studied(MODELS[name], 1)
    facts = look(run[0], texts)
    assert (facts.layers, facts.objective) == (layers, objective)


def test_one_block_is_studied_with_its_attention():
    run, texts = _studied(OneBlock, 1)
    facts = look(run[0], texts)
    with run[0].open() as reader:
        matrices = og.capture.match_blocks(reader, facts.blocks)
    assert {"block.attn.in_proj_weight", "block.attn.out_proj.weight"} <= set(matrices)


def test_the_matrices_of_hybrid_models_are_all_studied():
    linear = {
        "linear_num_value_heads": 2,
        "linear_num_key_heads": 2,
        "linear_key_head_dim": 4,
    }
    experts = {"num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 8}
    build = {
        tf.Qwen3NextForCausalLM: tf.Qwen3NextConfig(
            **(_SIZES | linear | experts),
            linear_value_head_dim=4,
            head_dim=4,
            num_key_value_heads=2,
            shared_expert_intermediate_size=8,
            layer_types=["linear_attention", "full_attention"],
        ),
        tf.GraniteMoeHybridForCausalLM: tf.GraniteMoeHybridConfig(
            **_SIZES,
            num_key_value_heads=2,
            layer_types=["mamba", "attention"],
            **{
                "mamba_n_heads": 4,
                "mamba_d_head": 4,
                "mamba_d_state": 4,
                "mamba_n_groups": 1,
            },
            num_local_experts=2,
            num_experts_per_tok=1,
            shared_intermediate_size=8,
            pad_token_id=0,
        ),
        tf.JambaForCausalLM: tf.JambaConfig(
            **_SIZES,
            num_key_value_heads=2,
            num_experts=2,
            use_mamba_kernels=False,
            **{
                "attn_layer_period": 2,
                "attn_layer_offset": 1,
                "expert_layer_period": 2,
            },
            **{"mamba_d_state": 4, "mamba_dt_rank": 4},
            pad_token_id=0,
        ),
    }
    for kind, config in build.items():
        run, texts = _studied(lambda kind=kind, config=config: kind(config), 1)
        with run[0].open() as reader:
            matrices = {name for name in reader.names() if len(reader.shape(name)) > 1}
            studied = set(og.capture.match_blocks(reader, look(run[0], texts).blocks))
        assert {name.split(".")[0] for name in matrices - studied} <= {
            "lm_head",
            "model",
        }
        assert not any(".layers." in name for name in matrices - studied)


def test_prefix_tokens_change_no_number_of_the_texts_and_are_said():
    torch.manual_seed(0)
    model = M(prefix=3)
    _, texts = _studied(M, 1)
    with torch.no_grad():
        whole = model(torch.tensor(texts.ids[:1, : texts.lengths[0]]))[0, 3:]
    loss = nn.functional.cross_entropy(
        whole[:-1], torch.tensor(texts.ids[0, 1 : len(whole)])
    )
    forward._say_added.cache_clear()
    with pytest.warns(StudyWarning, match="puts 3 tokens of its own before every text"):
        got = og.capture.losses(model, texts, objective="causal").loss.values[0]
    assert got == pytest.approx(loss.item(), rel=1e-5)
