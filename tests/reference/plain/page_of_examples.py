"""What stands on a page of single texts: those shown, gaps, pairs and questions."""

import numpy as np

from reference.plain import abilities, counts, predictions
from reference.plain.noise import measured

STEP = ("step",)
SHOWN = 64  # tokens of a text that are shown


class PageOfExamples:
    """Numbers of nodes by their names: each a tuple of dimensions and values.

    Parameters
    ----------
    run
        What the models gave, see `reference.plain.run`.
    """

    def __init__(self, run):
        self.run, self.steps, self.texts = run, run.steps, run.texts
        self.vocabulary = run.reads[0][0].log_p.shape[1]

    def token_losses(self, data):
        """Return the losses and ranks of the texts that are shown; which ones they are is drawn."""
        numbers = data.text_number.values.tolist()
        shape = (len(self.steps), len(numbers), data.sizes["place"])
        ids, costs, after = (np.full(shape[1:], np.nan) for _ in range(3))
        loss, rank = np.full(shape, np.nan), np.full(shape, -1)
        given = data.token_rank.transpose("step", "text", "place").values
        shown = [
            (row, at)
            for row, number in enumerate(numbers)
            for at in self.texts[number].predicted
            if at < SHOWN
        ]
        for row, number in enumerate(numbers):
            whole = self.texts[number].ids[:SHOWN]
            ids[row, : len(whole)] = whole
        places = [(self.texts[numbers[row]], at) for row, at in shown]
        frequency = counts.smoothed(self.texts, places, self.vocabulary, 1)[0][0]
        every = [(text, at) for text in self.texts for at in text.predicted]
        bigram = counts.smoothed(self.texts, every, self.vocabulary, 2)[1][0]
        known = {(id(text), at): p for (text, at), p in zip(every, bigram, strict=True)}
        for (row, at), p in zip(shown, frequency, strict=True):
            costs[row, at] = -np.log(p)
            after[row, at] = -np.log(known[id(self.texts[numbers[row]]), at])
            token = self.texts[numbers[row]].ids[at]
            for step, reads in enumerate(self.run.reads):
                log_p = reads[numbers[row]].log_p[at - 1]
                loss[step, row, at] = -log_p[token]
                rank[step, row, at] = predictions.rank(
                    log_p, token, given[step, row, at], self.run.rounding
                )
        leads = np.array(
            [
                [predictions.leads_from(self.steps, ranks == 1) for ranks in row.T]
                for row in rank.transpose(1, 0, 2)
            ]
        )
        of_text, weights = np.nanmean(loss, axis=2), np.isfinite(loss[0]).sum(axis=1)
        tokens = ("text", "place")
        return measured("shown_loss", STEP, of_text, weights) | {
            "text_loss": (("step", "text"), of_text),
            "token_id": (tokens, ids),
            "token_loss": (("step", *tokens), loss),
            "token_rank": (("step", *tokens), rank),
            "token_loss_frequencies": (tokens, costs),
            "token_loss_bigrams": (tokens, after),
            "shown_loss_frequencies": ((), np.nanmean(costs)),
            "token_leads_from": (tokens, leads[..., 0]),
            "token_leads_after": (tokens, leads[..., 1]),
            "masked": ((), 0),
        }

    def writing(self, data):
        """Return nothing: what is written is compared elsewhere, one token at a time."""
        return {}

    def predictions(self, data):
        """Return the answers in gaps; which gaps there are is drawn, and read off their texts."""
        gaps = [
            self._gap(str(before), int(right))
            for before, right in zip(
                data.gap_before.values, data.right_id.values, strict=True
            )
        ]
        log_p = np.array(
            [
                [reads[number].log_p[at - 1] for number, at in gaps]
                for reads in self.run.reads
            ]
        )
        right = data.right_id.values.astype(int)
        probability = np.exp(log_p[:, np.arange(len(gaps)), right])
        given = data.right_rank.transpose("step", "gap").values
        rank = np.zeros(given.shape)
        for (step, gap), shown in np.ndenumerate(given):
            rank[step, gap] = predictions.rank(
                log_p[step, gap], right[gap], shown, self.run.rounding
            )
        top = np.sort(np.exp(log_p), axis=2)[..., ::-1][..., : data.sizes["rank"]]
        likeliest = self._likeliest(data, log_p)
        first = likeliest[..., 0]
        leads = np.array(
            [predictions.leads_from(self.steps, ranks == 1) for ranks in rank.T]
        )
        shares = [
            counts.shares_elsewhere(self.texts, token, self.texts[number].unit)
            for token, (number, _) in zip(right.tolist(), gaps, strict=True)
        ]
        share, frequent, its = (np.array(part) for part in zip(*shares, strict=True))
        ones, gap = np.ones(len(gaps)), ("step", "gap")
        return {
            **measured("right", STEP, probability, ones, minimum=0.0),
            **measured(
                "right_first", STEP, (rank == 1).astype(float), ones, minimum=0.0
            ),
            "right_probability": (gap, probability),
            "right_rank": (gap, rank),
            "answer_probability": ((*gap, "rank"), top),
            "answer_id": ((*gap, "rank"), likeliest),
            "shared_first_answer": (STEP, [np.bincount(row).max() for row in first]),
            "shared_first_answer_frequencies": ((), len(gaps)),
            "frequency": (("gap",), share),
            "frequent_id": (("gap",), frequent),
            "frequent_share": (("gap",), its),
            "right_frequencies": ((), share.mean()),
            "right_first_frequencies": ((), (frequent == right).mean()),
            "right_leads_from": (("gap",), leads[:, 0]),
            "right_leads_after": (("gap",), leads[:, 1]),
            "right_id": (("gap",), right),
        }

    def _gap(self, before, right):
        """Return text and place of the token that stands after these words."""
        words = self.run.tokenizer(before)["input_ids"]
        for number, text in enumerate(self.texts):
            if list(text.ids[: len(words) + 1]) == [*words, right]:
                return number, len(words)
        raise AssertionError(f"no text goes on after {before!r} with token {right}")

    def _likeliest(self, data, log_p):
        """Return the ids that are given, where none is likelier; equally likely ones may differ."""
        ids = data.answer_id.transpose("step", "gap", "rank").values.astype(int)
        order = np.argsort(-log_p, axis=2, kind="stable")[..., : ids.shape[2]]
        apart = np.take_along_axis(log_p, ids, 2) - np.take_along_axis(log_p, order, 2)
        return np.where(np.abs(apart) < self.run.rounding, ids, order)

    def minimal_pairs(self, data):
        """Return scores and accuracies of pairs."""
        pairs = self.run.pairs
        scored = abilities.of_pairs(pairs, self.run.tokenizer)
        right, wrong = (
            self.run.scores(scored).reshape(len(self.steps), -1, 2).transpose(2, 0, 1)
        )
        ngrams = abilities.ngram_scores(scored, self.texts, self.vocabulary).reshape(
            -1, 2
        )
        sizes = np.array([len(one.places) for one in scored]).reshape(-1, 2)
        found = {
            "score_right": (("step", "pair"), right),
            "score_wrong": (("step", "pair"), wrong),
            "tokens_right": (("pair",), sizes[:, 0]),
            "tokens_wrong": (("pair",), sizes[:, 1]),
        }
        by_ngrams = abilities.likelier(ngrams[:, 0] - ngrams[:, 1], 1e-9)
        return found | self._of_groups(
            data,
            "pair",
            abilities.likelier(right - wrong),
            by_ngrams,
            np.full(len(pairs), 0.5),
        )

    def choices(self, data):
        """Return scores and accuracies of questions."""
        questions = self.run.questions
        scored = abilities.of_questions(questions, self.run.tokenizer)
        answers = [answer for question in questions for answer in question["answers"]]
        size = np.array([len(question["answers"]) for question in questions])
        number = np.repeat(np.arange(len(questions)), size)
        right = [question["right"] for question in questions]
        scores, long = (
            self.run.scores(scored),
            np.array([len(answer) for answer in answers]),
        )
        by_length = [abilities.likeliest(row, number, right) for row in scores / long]
        ngrams = abilities.ngram_scores(scored, self.texts, self.vocabulary)
        groups = [question["group"] for question in questions]
        shares = [abilities.by_group(row, groups) for row in by_length]
        names = [str(name) for name in data.group.values]
        found = self._of_groups(
            data,
            "question",
            np.array([abilities.likeliest(row, number, right) for row in scores]),
            abilities.likeliest(ngrams, number, right),
            1 / size,
        )
        normalised = [[share[name] for name in names] for share in shares]
        return found | {
            "score": (("step", "answer"), scores),
            "characters": (("answer",), long),
            "question_of_answer": (("answer",), number),
            "right_answer": (("question",), np.cumsum(size) - size + right),
            "accuracy_normalised": (("step", "group"), np.array(normalised)),
        }

    def _of_groups(self, data, one, right, ngrams, chance):
        """Return accuracies of groups and of all examples, with the lines beside them."""
        rows = self.run.pairs if one == "pair" else self.run.questions
        groups, names = (
            [row["group"] for row in rows],
            [str(name) for name in data.group.values],
        )

        def of(values):
            share = abilities.by_group(values, groups)
            return np.array([share[name] for name in names])

        accuracy = np.array([of(row) for row in right])
        leads = [predictions.leads_from(self.steps, row == 1)[0] for row in right.T]
        return {
            "right": (("step", one), right),
            "right_from": ((one,), np.array(leads)),
            "right_ngrams": ((one,), ngrams),
            "accuracy": (("step", "group"), accuracy),
            "accuracy_chance": (("group",), of(chance)),
            "accuracy_ngrams": (("group",), of(ngrams)),
            "accuracy_first": (("group",), accuracy[0]),
            "accuracy_last": (("group",), accuracy[-1]),
            "accuracy_overall": (STEP, right.mean(axis=1)),
            "accuracy_overall_chance": ((), chance.mean()),
            "accuracy_overall_ngrams": ((), ngrams.mean()),
            "examples": (("group",), [groups.count(name) for name in names]),
        }
