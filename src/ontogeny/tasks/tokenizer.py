"""A byte-level BPE tokenizer, trained on the texts of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import ArgumentError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


# Names that ordinary text does not hold: "<unk>" is a word of WikiText-2, "<s>" is HTML.
SPECIAL_TOKENS = {
    "pad_token": "<|pad|>",
    "mask_token": "<|mask|>",
    "bos_token": "<|bos|>",
    "eos_token": "<|eos|>",
    "unk_token": "<|unk|>",
}
_BYTES = 256


def train_tokenizer(
    texts: Sequence[str], vocab_size: int = 4096, *, max_length: int = 512
) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE tokenizer on `texts` (Sennrich et al. 2016, Radford et al. 2019).

    All 256 bytes are in the vocabulary, so every text in every language is encoded and decoded
    without loss; punctuation marks and digits are tokens of their own. The special tokens have the
    ids 0 to 4 (padding, mask, begin, end, unknown); begin and end also serve as ``cls`` and
    ``sep``, and an encoded text begins and ends with them. The same texts in the same order give
    the same tokenizer.

    Parameters
    ----------
    texts
        The texts to learn the merges from.
    vocab_size
        Largest number of ids, special tokens and bytes included; at least 261. Short texts have
        fewer pairs to merge: ``len(tokenizer)`` is the real number.
    max_length
        ``model_max_length`` of the tokenizer, in tokens.

    Raises
    ------
    ArgumentError
        If `texts` holds no text, or `vocab_size` is too small for bytes and special tokens.

    Examples
    --------
    >>> tokenizer = train_tokenizer(["the cat sat on the mat"] * 4, vocab_size=300)
    >>> tokenizer.decode(
    ...     tokenizer("das Mädchen 🐈").input_ids, skip_special_tokens=True
    ... )
    'das Mädchen 🐈'
    """
    smallest = _BYTES + len(SPECIAL_TOKENS)
    if vocab_size < smallest:
        raise ArgumentError(
            f"vocab_size must be at least {smallest} (256 bytes and {len(SPECIAL_TOKENS)} special "
            f"tokens); got {vocab_size}."
        )
    if isinstance(texts, str) or not any(texts):
        raise ArgumentError(
            "texts must be a list with at least one text that is not empty."
        )
    # Imported here: transformers takes seconds to load and a reader of texts does not need it.
    from tokenizers import (
        Tokenizer,
        decoders,
        models,
        pre_tokenizers,
        processors,
        trainers,
    )
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    # Marks and digits are tokens of their own, as in BERT: merged runs such as "()." are rare, and
    # a small model on a small text learns far less of them in the same time.
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Punctuation("isolated"),
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(SPECIAL_TOKENS.values()),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(texts, trainer)
    begin = SPECIAL_TOKENS["bos_token"]
    end = SPECIAL_TOKENS["eos_token"]
    bpe.post_processor = processors.TemplateProcessing(
        single=f"{begin} $A {end}",
        pair=f"{begin} $A {end} $B {end}",
        special_tokens=[(token, bpe.token_to_id(token)) for token in (begin, end)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        **SPECIAL_TOKENS,
        cls_token=begin,
        sep_token=end,
        model_max_length=max_length,
        padding_side="right",
        clean_up_tokenization_spaces=False,  # it would eat spaces before punctuation
    )
