"""Which tokenizer a folder holds is told without loading the classes of its model."""

import json
import pickle
import subprocess
import sys

import pytest
from transformers import AutoTokenizer, BertTokenizer, GPT2Tokenizer

import ontogeny as og
from helpers.tiny_models import gpt2 as gpt2_model
from ontogeny.errors import CheckpointError
from ontogeny.tasks import train_tokenizer
from ontogeny.trajectory.tokenizers import named_tokenizer

TEXT = "the dogs run away"


def gpt2():
    backend = train_tokenizer([TEXT] * 4, vocab_size=300).backend_tokenizer
    model = json.loads(backend.to_str())["model"]
    pairs = [tuple(pair) for pair in model["merges"]]
    return GPT2Tokenizer(vocab=model["vocab"], merges=pairs)


def bert():
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *TEXT.split()]
    return BertTokenizer(vocab={word: i for i, word in enumerate(words)})


def own():
    return train_tokenizer([TEXT] * 4, vocab_size=300)


@pytest.mark.parametrize("make", [gpt2, bert, own])
@pytest.mark.parametrize("model_type", ["gpt2", "bert", "llama", "eurobert", None])
def test_it_is_the_one_that_transformers_chooses(tmp_path, make, model_type):
    make().save_pretrained(tmp_path)
    settings = {} if model_type is None else {"model_type": model_type}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    expected = AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    found = named_tokenizer(tmp_path)
    assert type(found) is type(expected)
    assert found(TEXT)["input_ids"] == expected(TEXT)["input_ids"]
    assert found.special_tokens_map == expected.special_tokens_map
    assert found.get_vocab() == expected.get_vocab()


@pytest.mark.slow
def test_no_class_of_a_model_is_loaded_for_it(tmp_path):
    own().save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    script = (
        "import sys; from pathlib import Path\n"
        "from ontogeny.trajectory.tokenizers import named_tokenizer\n"
        f"named_tokenizer(Path({str(tmp_path)!r}))\n"
        "print([n for n in sys.modules if n.startswith(('torch._dynamo', "
        "'transformers.activations', 'transformers.models.llama.'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("content", ["", "[1]", '{"tokenizer_class": ""}'])
def test_damaged_settings_are_left_to_transformers(tmp_path, content):
    own().save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "tokenizer_config.json").write_text(content)

    def outcome(read):
        try:
            return type(read(tmp_path))
        except (CheckpointError, AttributeError, OSError, TypeError, ValueError):
            return "refused"

    plain = outcome(lambda f: AutoTokenizer.from_pretrained(f, local_files_only=True))
    assert outcome(named_tokenizer) == plain


@pytest.mark.parametrize("holder", [0, 4])
def test_a_selection_keeps_the_tokenizer_that_one_checkpoint_alone_holds(
    tmp_path, holder
):
    """A study timed at step 4 said that minimal pairs fail, as the tokenizer stood at step 0."""
    for step in (0, 2, 4):
        gpt2_model().save_pretrained(tmp_path / f"step_{step}")
    own().save_pretrained(tmp_path / f"step_{holder}")
    run = og.Trajectory.from_folder(tmp_path)
    of_run = run.tokenizer().get_vocab()
    assert run.select(steps=[2]).tokenizer().get_vocab() == of_run
    again = pickle.loads(pickle.dumps(run.select(start=2).select(steps=[2])))
    assert again.tokenizer().get_vocab() == of_run
    assert og.Trajectory.from_folder(tmp_path, tokenizer=False).tokenizer() is None
