"""What a model predicts on texts: losses, what they are read against, calibration."""

import numpy as np
from scipy.optimize import minimize_scalar

LEAST = -100.0  # nats: what a word costs at most where renamings are drawn
RENAMINGS = 999
TEMPERATURES = (0.2, 5.0)


class Predictions:
    """The predicted tokens of all texts, in their order.

    Attributes
    ----------
    log_p
        (e, V) what the model gives before each token.
    target, before
        (e,) the token, and the one before it.
    text
        (e,) its text.
    """

    def __init__(self, texts, reads):
        places = [
            (number, at) for number, text in enumerate(texts) for at in text.predicted
        ]
        self.places = places
        self.text = np.array([number for number, _ in places])
        self.unit = np.array([texts[number].unit for number, _ in places])
        self.target = np.array([texts[number].ids[at] for number, at in places])
        self.before = np.array([texts[number].ids[at - 1] for number, at in places])
        self.log_p = np.array([reads[number].log_p[at - 1] for number, at in places])

    @property
    def right(self):
        """(e,) the log-probability of the token that stands there."""
        return self.log_p[np.arange(len(self.target)), self.target]


def by_text(values, number, count):
    """Return the mean of values in each text, 0 where it has none, and how many there are."""
    sums = np.bincount(number, values, minlength=count)
    size = np.bincount(number, minlength=count)
    return sums / np.maximum(size, 1), size


def own_unigram(of):
    """Return (e,) what the mean of all predictions costs."""
    return -np.log(np.exp(of.log_p).mean(axis=0)[of.target])


def own_bigram(of):
    """Return (e,) what the mean of the predictions after the same token costs."""
    costs = np.empty(len(of.target))
    for token in set(of.before.tolist()):
        here = of.before == token
        costs[here] = -np.log(np.exp(of.log_p[here]).mean(axis=0)[of.target[here]])
    return costs


def renamed(of, words):
    """Return the mean losses as they are, and with the targets renamed 999 times.

    The draw is part of the definition: seed 0, for each renaming a choice of other `words` without
    replacement for the distinct targets in the order of their numbers.
    """
    rng, targets = np.random.default_rng(0), np.unique(of.target)
    place = np.searchsorted(targets, of.target)
    names = [
        targets,
        *(rng.choice(words, len(targets), replace=False) for _ in range(RENAMINGS)),
    ]
    costs = -np.maximum(of.log_p, LEAST)
    return np.array(
        [costs[np.arange(len(place)), table[place]].mean() for table in names]
    )


def at_best_temperature(of):
    """Return (e,) the losses at the temperature that all tokens together cost least at."""

    def costs(log_inverse):
        scaled = np.exp(log_inverse) * of.log_p
        norm = np.logaddexp.reduce(scaled, axis=1)
        return norm - scaled[np.arange(len(of.target)), of.target]

    ends = np.log(TEMPERATURES)
    best = minimize_scalar(lambda x: costs(x).mean(), bounds=ends, method="bounded")
    return costs(best.x)


def first_answers(of):
    """Return (e,) how sure the first answer is, whether it is right, and the right one's margin."""
    first = of.log_p.argmax(axis=1)
    others = of.log_p.copy()
    others[np.arange(len(first)), of.target] = -np.inf
    return (
        np.exp(of.log_p.max(axis=1)),
        first == of.target,
        of.right - others.max(axis=1),
    )


def reliability(sure, right, bins=15):
    """Return by bin of confidence how much it is above the share that is right, and its share.

    A confidence on an edge belongs to the bin below it.
    """
    apart, share = np.full(bins, np.nan), np.zeros(bins)
    for number in range(bins):
        here = (sure > number / bins) & (sure <= (number + 1) / bins)
        share[number] = here.mean()
        if here.any():
            apart[number] = sure[here].mean() - right[here].mean()
    return apart, share


def calibration_error(sure, right, bins=15):
    """Return the expected calibration error (Guo et al. 2017, eq. 3)."""
    apart, share = reliability(sure, right, bins)
    return float(np.nansum(np.abs(apart) * share))


def resampled_errors(sure, right, unit, draws=20):
    """Return the errors of resampled units, and of answers as often right as they are sure.

    The draw: one generator of the seeds 0 and 14, first all choices of units, then all answers.
    """
    rng, units = np.random.default_rng([0, 14]), np.unique(unit)
    again = []
    for _ in range(draws):
        times = np.bincount(
            rng.integers(0, len(units), len(units)), minlength=len(units)
        )
        rows = np.repeat(np.arange(len(unit)), times[np.searchsorted(units, unit)])
        again.append(calibration_error(sure[rows], right[rows]))
    chance = [
        calibration_error(sure, rng.random(len(sure)) < sure) for _ in range(draws)
    ]
    return np.array(again), np.array(chance)


def divergences(of, given):
    """Return by n (n, e): D(model ‖ n-gram), D(n-gram ‖ model), D(uniform guess ‖ n-gram).

    Parameters
    ----------
    of
        The predictions.
    given
        (n, e, V) what n-gram models predict.
    """
    p, log_p, log_q = np.exp(of.log_p), of.log_p, np.log(given)
    forward = (p * (log_p - log_q)).sum(axis=2)
    backward = (given * (log_q - log_p)).sum(axis=2)
    blind = -log_q.mean(axis=2) - np.log(log_p.shape[1])
    return forward, backward, blind


def rank(log_p, right, given, rounding):
    """Return the rank of a token among all answers: `given` where rounding leaves it open.

    Examples
    --------
    >>> rank(np.log([0.2, 0.5, 0.3]), 2, 7, 1e-5)
    2
    """
    best = 1 + int((log_p > log_p[right] + rounding).sum())
    worst = int((log_p >= log_p[right] - rounding).sum())
    return min(max(int(given), best), worst)


def leads_from(steps, leads):
    """Return the first step from which on it leads at every later one, and the step before."""
    begin = len(leads)
    while begin and leads[begin - 1]:
        begin -= 1
    if begin == len(leads):
        return np.nan, np.nan
    return float(steps[begin]), float(steps[max(begin - 1, 0)])


def below_from(steps, costs, line):
    """Return the first step from which on mean costs stay 1e-5 below a line, NaN where never."""
    return leads_from(
        steps, [bool(c + 1e-5 < at) for c, at in zip(costs, line, strict=True)]
    )[0]
