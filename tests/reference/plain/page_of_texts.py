"""What stands on a page of the predictions of texts, by plain functions."""

import numpy as np

from reference.plain import counts, predictions, word_classes
from reference.plain.noise import band, measured, of_units

STEP = ("step",)
DEPTH = 4  # of the finest classes
DRAWS = 10  # of classes
ORDER = 3  # of the n-grams that predictions are compared with


class PageOfTexts:
    """Numbers of nodes by their names: each a tuple of dimensions and values.

    Parameters
    ----------
    run
        What the models gave, see `reference.plain.run`.
    """

    def __init__(self, run):
        self.run, self.steps, self.texts = run, run.steps, run.texts
        self.of = [predictions.Predictions(run.texts, reads) for reads in run.reads]
        self.vocabulary = self.of[0].log_p.shape[1]
        self.unit = np.array([text.unit for text in run.texts])
        of = self.of[0]
        self.places = [(run.texts[number], at) for number, at in of.places]
        self.smoothed = counts.smoothed(run.texts, self.places, self.vocabulary, ORDER)

    def of_texts(self, values):
        """Return (..., u) means of token values (..., e) over units of texts, and (u,) weights."""
        number = self.of[0].text
        rows = values.reshape(-1, values.shape[-1])
        means = [predictions.by_text(row, number, len(self.texts))[0] for row in rows]
        size = np.bincount(number, minlength=len(self.texts))
        return of_units(np.reshape(means, (*values.shape[:-1], -1)), size, self.unit)

    def loss(self, data):
        """Return the loss and what it is read against."""
        right = np.stack([-of.right for of in self.of])
        of_text, weights = self.of_texts(right)
        found = measured("loss", STEP, of_text, weights)
        found["loss_uniform"] = ((), np.log(self.vocabulary))
        lines = {
            "own_unigram": np.stack([predictions.own_unigram(of) for of in self.of]),
            "own_bigram": np.stack([predictions.own_bigram(of) for of in self.of]),
            "unigram": -np.log(self.smoothed[0][0]),
            "bigram": -np.log(self.smoothed[1][0]),
        }
        for name, costs in lines.items():
            dims = STEP if costs.ndim > 1 else ()
            found[f"loss_{name}"] = (dims, costs.mean(axis=-1))
            found[f"loss_{name}_of_text"] = ((*dims, "text"), self.of_texts(costs)[0])
            level = np.broadcast_to(costs.mean(axis=-1), len(self.steps))
            from_step = predictions.below_from(self.steps, right.mean(axis=1), level)
            found[f"loss_below_{name}"] = ((), from_step)
        return found | self._halves(right, lines) | self._renamed()

    def _halves(self, right, lines):
        """Return the steps from which on half of what each kind of knowledge gains is there."""
        levels = [np.full(len(self.steps), np.log(self.vocabulary))]
        levels += [lines[name].mean(axis=1) for name in ("own_unigram", "own_bigram")]
        levels.append(right.mean(axis=1))
        found = {}
        for name, high, low in zip(
            ("frequencies", "before", "context"), levels[:-1], levels[1:], strict=True
        ):
            gain = high - low
            half = np.full(len(gain), -gain[-1] / 2)
            found[f"loss_half_{name}"] = (
                (),
                predictions.below_from(self.steps, -gain, half),
            )
        return found

    def _renamed(self):
        losses = np.stack([predictions.renamed(of, self.run.words) for of in self.of])
        gains = losses[0] - losses
        return {
            "loss_renamed": (("step", "renaming"), losses),
            "loss_p_known": (STEP, (losses <= losses[:, :1]).mean(axis=1)),
            "loss_p_gain": (STEP, (gains >= gains[:, :1]).mean(axis=1)),
        }

    def calibrated(self):
        """Return the loss at the best temperature of each step, of all texts and of each."""
        costs = np.stack([predictions.at_best_temperature(of) for of in self.of])
        return {
            "loss_calibrated": (STEP, costs.mean(axis=1)),
            "loss_calibrated_of_text": (("step", "text"), self.of_texts(costs)[0]),
        }

    def calibration(self, data):
        """Return how sure and how right first answers are."""
        answers = [predictions.first_answers(of) for of in self.of]
        sure, right, margin = (np.stack(part) for part in zip(*answers, strict=True))
        found = measured("accuracy", STEP, *self.of_texts(right.astype(float)))
        found |= measured("margin", STEP, *self.of_texts(margin))
        found["accuracy_confidence"] = (STEP, sure.mean(axis=1))
        of_bins = [
            predictions.reliability(*pair) for pair in zip(sure, right, strict=True)
        ]
        apart, share = (np.stack(part) for part in zip(*of_bins, strict=True))
        unit = self.unit[self.of[0].text]
        draws = [
            predictions.resampled_errors(s, r, unit)
            for s, r in zip(sure, right, strict=True)
        ]
        again, chance = (np.stack(part) for part in zip(*draws, strict=True))
        return found | {
            "overconfidence": (("step", "bin"), apart),
            "bin_share": (("step", "bin"), share),
            "calibration_error": (STEP, np.nansum(np.abs(apart) * share, axis=1)),
            "calibration_error_replicates": (("step", "refit"), again),
            "calibration_error_calibrated": (("step", "draw"), chance),
            **band("calibration_error_calibrated", STEP, chance),
        }

    def ngram_agreement(self, data):
        """Return divergences from n-grams of the other texts, here and at other places.

        The other places are a permutation of all ordinary tokens, by a generator of the seeds 0
        and 13; each token takes the one of its number in the table of texts.
        """
        counted = counts.Counted(self.texts, ORDER)
        smoothing = [strength for _, strength in self.smoothed]
        there = [(text, at) for text in self.texts for at in text.ordinary]
        order = np.random.default_rng([0, 13]).permutation(len(there))
        width = max(len(text.ids) for text in self.texts)
        numbers = [number * width + at for number, at in self.of[0].places]
        other = [there[order[number % len(there)]] for number in numbers]
        given, elsewhere = (
            np.stack(
                [
                    counts.distributions(counted, smoothing, *place, self.vocabulary)
                    for place in places
                ],
                axis=1,
            )
            for places in (self.places, other)
        )
        here = [predictions.divergences(of, given) for of in self.of]
        forward, backward, blind = (np.stack(part) for part in zip(*here, strict=True))
        apart = np.stack([predictions.divergences(of, elsewhere)[0] for of in self.of])
        dims = ("step", "ngram")
        found = measured("divergence", dims, *self.of_texts(forward), minimum=0.0)
        found |= measured(
            "reverse_divergence", dims, *self.of_texts(backward), minimum=0.0
        )
        closest = np.array(self.steps, dtype=float)[forward.mean(axis=2).argmin(axis=0)]
        return found | {
            "smoothing": (("ngram",), np.array(smoothing)),
            "divergence_uniform": (dims, blind.mean(axis=2)),
            "divergence_other": (dims, apart.mean(axis=2)),
            "closest_step": (("ngram",), closest),
        }

    def text_statistics(self, data):
        """Return what is known of classes of words, with random classes beside them."""
        words, table = word_classes.support(self.texts)
        codes = word_classes.classes(table, DEPTH)
        random, exchanged = word_classes.renamed(table, codes, DRAWS)
        known = np.array(
            [
                [
                    word_classes.information(of.log_p, of.target, words, names, DEPTH)
                    for names in (codes, *random)
                ]
                for of in self.of
            ]
        )
        dims = ("step", "depth")
        draws = known[:, 1:].mean(axis=-1).transpose(0, 2, 1)
        found = measured("class_information", dims, *self.of_texts(known[:, 0]))
        found |= band("class_information_random", dims, draws)
        for name in ("class_information_random", "random_draws"):
            found[name] = ((*dims, "draw"), draws)
        gains = known[:, 0].mean(axis=-1).T
        reached = {
            f"classes of depth {depth + 1}": predictions.below_from(
                self.steps, -gain, np.full(len(gain), -gain[-1] / 2)
            )
            for depth, gain in enumerate(gains)
        }
        loss = self.loss(data)
        for name, label in (
            ("frequencies", "word frequencies"),
            ("before", "the token before"),
            ("context", "context beyond the token before"),
        ):
            reached[label] = loss[f"loss_half_{name}"][1]
        steps = np.array([reached[str(name)] for name in data.statistic.values])
        return found | {
            "exchanged": ((), exchanged),
            "reached_step": (("statistic",), steps),
        }
