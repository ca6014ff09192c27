"""Scores of texts with a right answer: the sum of the log-probabilities of their tokens."""

import numpy as np

from reference.plain.counts import smoothed
from reference.plain.reading import Text

ORDER = 4  # of the n-grams that stand beside


class Scored:
    """A text after what stands before it, as tokens of which some have a score.

    Where the first token has one, the token that begins a text stands before it.
    """

    def __init__(self, before, text, tokenizer):
        row = tokenizer(
            before + text, return_special_tokens_mask=True, return_offsets_mapping=True
        )
        ends = [end for _, end in row["offset_mapping"]]
        special = row["special_tokens_mask"]
        scored = [
            end > len(before) and not s for end, s in zip(ends, special, strict=True)
        ]
        ids = list(row["input_ids"])
        if scored[0]:
            ids, scored = [tokenizer.bos_token_id, *ids], [False, *scored]
        self.ids, self.places = (
            tuple(ids),
            [place for place, has in enumerate(scored) if has],
        )

    def score(self, log_p):
        """Return the score by what a model gives on its tokens, (n, V)."""
        return sum(log_p[place - 1, self.ids[place]] for place in self.places)


def of_pairs(pairs, tokenizer):
    """Return right and wrong text of each pair, one after the other."""
    return [
        Scored("", pair[side], tokenizer)
        for pair in pairs
        for side in ("right", "wrong")
    ]


def of_questions(questions, tokenizer):
    """Return the answers of all questions; a space stands before each."""
    return [
        Scored(question["prompt"], f" {answer}", tokenizer)
        for question in questions
        for answer in question["answers"]
    ]


def ngram_scores(scored, texts, vocabulary):
    """Return the scores by four-grams of the study's texts; those asked are not counted."""
    asked = [
        Text(
            one.ids, tuple(place not in one.places for place in range(len(one.ids))), -1
        )
        for one in scored
    ]
    both = [*texts, *asked]
    places = [(text, place) for text in both for place in text.ordinary]
    p = smoothed(both, places, vocabulary, ORDER)[-1][0]
    last = p[-sum(len(one.places) for one in scored) :]
    number = np.repeat(np.arange(len(scored)), [len(one.places) for one in scored])
    return np.bincount(number, np.log(last), minlength=len(scored))


def likeliest(scores, number, right):
    """Return for each question whether the right answer is likeliest, a share of a tie."""
    verdicts = []
    for question, at in enumerate(right):
        of_answers = scores[number == question]
        best = of_answers >= of_answers.max()
        verdicts.append(best[at] / best.sum())
    return np.array(verdicts)


def likelier(apart, tie=0.0):
    """Return 1 where the right text is likelier, 0 where the wrong one is, one half of a tie."""
    return np.where(np.abs(apart) <= tie, 0.5, apart > 0)


def by_group(values, groups):
    """Return the mean of each group."""
    return {
        name: float(np.mean(values[np.array(groups) == name])) for name in set(groups)
    }
