"""What the models of a run give on all that they are asked, text by text."""

import json

import numpy as np
import torch
from transformers import AutoTokenizer

from reference import odd_models
from reference.plain import attention
from reference.plain.reading import Reader, texts_of

SEQUENCES = 8  # that repeat, and as many in which nothing does
PERIOD = 25  # at most


class Run:
    """The readings of a run's checkpoints.

    Parameters
    ----------
    odd
        What the model is, see `reference.odd_models`.
    folder
        Where the run lies.
    layers, maps
        Labels of modules.
    """

    def __init__(self, odd, folder, layers, maps):
        self.odd, self.folder, self.steps, self.maps = (
            odd,
            folder,
            odd_models.STEPS,
            maps,
        )
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.texts = texts_of(
            (folder / "texts.txt").read_text().splitlines(), self.tokenizer
        )
        self.pairs, self.questions = (
            [
                json.loads(line)
                for line in (folder / f"{name}.jsonl").read_text().splitlines()
            ]
            for name in ("pairs", "questions")
        )
        self.readers = [
            Reader(odd_models.load(odd, folder, step), odd.before, layers, maps)
            for step in self.steps
        ]
        self.reads = [
            [reader.read(text.ids) for text in self.texts] for reader in self.readers
        ]

    @property
    def rounding(self):
        """By how much log-probabilities of two ways to compute them may differ."""
        return 1e-5 if self.odd.dtype == torch.float32 else 0.1

    @property
    def unit(self):
        """(n,) the first text that each is the same as."""
        return np.array([text.unit for text in self.texts])

    @property
    def words(self):
        """Ids that a word may be renamed to: without the mask, and special tokens of the texts."""
        special = {
            token
            for text in self.texts
            for token, is_special in zip(text.ids, text.special, strict=True)
            if is_special
        }
        known = min(len(self.tokenizer), self.reads[0][0].log_p.shape[1])
        return np.array(
            sorted(set(range(known)) - special - {self.tokenizer.mask_token_id})
        )

    def scores(self, scored):
        """Return (T, n) the scores of texts by every model."""
        return np.array(
            [
                [one.score(reader.read(one.ids).log_p) for one in scored]
                for reader in self.readers
            ]
        )

    def activations(self, step, label):
        """Return the rows of a layer at all ordinary tokens, text after text."""
        reads = zip(self.texts, self.reads[step], strict=True)
        return np.concatenate(
            [read.layers[label][text.ordinary] for text, read in reads]
        )

    @property
    def unit_of_row(self):
        """(rows,) the unit of each of these rows."""
        return np.concatenate([[text.unit] * len(text.ordinary) for text in self.texts])

    def tensors(self, name):
        """Return (T, ...) a tensor of the files in float64."""
        files = [
            odd_models.tensors_of(self.odd, self.folder, step) for step in self.steps
        ]
        return np.stack([tensors[name].double().numpy() for tensors in files])

    def sequences(self):
        """Return sequences of the tokenizer's words, and the token that every text begins with."""
        special = {*self.tokenizer.all_special_ids} & {
            token for text in self.texts for token in text.ids
        }
        apart = special | {self.tokenizer.pad_token_id, self.tokenizer.mask_token_id}
        known = len(self.tokenizer)
        tokens = np.array([token for token in range(known) if token not in apart])
        begin = [self.tokenizer.bos_token_id] * self.odd.begins
        longest = max(len(text.ids) for text in self.texts) if self.odd.is_own else 64
        period = min(PERIOD, (longest - len(begin)) // 2, len(tokens) // 2)
        return begin, period, attention.sequences(tokens, SEQUENCES, period)

    def heads(self):
        """Return (T, layers, 2, 3, heads, sequences) scores, and (3,) those of equal attention."""
        begin, period, kinds = self.sequences()
        whole = slice(len(begin), None)
        scores, reached = [], 0
        for reader in self.readers:
            maps = [
                [reader.read([*begin, *ids.tolist()]).maps for ids in kind]
                for kind in kinds
            ]
            reached = reached + sum(
                (one > 0).sum(axis=0)
                for kind in maps
                for read in kind
                for one in read.values()
            )
            scores.append(
                [
                    [
                        np.stack(
                            [
                                attention.scores(read[label][:, whole, whole], period)
                                for read in kind
                            ],
                            axis=-1,
                        )
                        for kind in maps
                    ]
                    for label in self.maps
                ]
            )
        share = (reached > 0) / (reached > 0).sum(axis=1, keepdims=True)
        return np.array(scores), attention.scores(share[None, whole, whole], period)[
            :, 0
        ]
