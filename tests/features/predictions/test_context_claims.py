"""Learning in context: said of what counts the pairs of each text, not of words or pairs of all."""

import numpy as np
import pytest
import torch
from torch import nn

import ontogeny as og
from ontogeny.claims import Kind, from_dataset
from ontogeny.features.predictions.context_claims import claims_of_context
from ontogeny.words.sentences import said
from ontogeny.words.subjects import Names
from ontogeny.words.voice import Voice

STATES = 3
LENGTH = 64


def chains(count, seed=0, of_each=True):
    """Return Markov chains, each with transitions of its own, or all with the same ones."""
    rng = np.random.default_rng(seed)
    drawn = count if of_each else 1
    moves = rng.dirichlet(np.full(STATES, 0.4), (drawn, STATES)).cumsum(axis=2)
    moves = np.broadcast_to(moves, (count, STATES, STATES))
    ids = np.zeros((count, LENGTH), dtype=int)
    for place in range(1, LENGTH):
        below = rng.random(count)[:, None] > moves[np.arange(count), ids[:, place - 1]]
        ids[:, place] = below.sum(axis=1).clip(max=STATES - 1)
    return ids


class Counts(nn.Module):
    """Predicts by how often each state followed this one in the text so far, as far as it knows."""

    def __init__(self, known):
        super().__init__()
        self.known = nn.Parameter(torch.tensor(float(known)))

    def forward(self, ids):
        one = nn.functional.one_hot(ids, STATES).float()
        pairs = one[:, :-1, :, None] * one[:, 1:, None, :]
        before = torch.cat([torch.zeros_like(pairs[:, :1]), pairs.cumsum(dim=1)], dim=1)
        seen = (one[..., None] * before).sum(dim=2) + 0.5
        return self.known * (seen / seen.sum(dim=2, keepdim=True)).log()


class Fixed(Counts):
    """Predicts by pairs that are the same in all texts, or by the state alone."""

    def __init__(self, known, table):
        super().__init__(known)
        self.table = nn.Parameter(torch.tensor(np.array(table), dtype=torch.float32))

    def forward(self, ids):
        return self.known * self.table[ids]


class Words(Counts):
    """Predicts by words that all texts share, each behind a space, wherever a text begins."""

    def __init__(self, known):
        super().__init__(known)
        rng = np.random.default_rng(0)
        words = [
            [*rng.integers(1, STATES, length), 0] for length in (6, 7, 7, 8, 9, 11)
        ]
        tokens = np.concatenate(words)
        ends = np.cumsum([len(word) for word in words])
        moves = np.eye(len(tokens), k=1)
        moves[ends - 1] = 0
        moves[np.ix_(ends - 1, np.r_[0, ends[:-1]])] = 1 / len(words)
        self.register_buffer("moves", torch.tensor(moves, dtype=torch.float32))
        self.register_buffer("tokens", torch.tensor(np.eye(STATES)[tokens]).float())

    def forward(self, ids):
        at = torch.full((len(ids), len(self.moves)), 1 / len(self.moves))
        expected = []
        for token in ids.T:
            at = at * self.tokens[:, token].T
            at = at / at.sum(dim=1, keepdim=True) @ self.moves
            expected.append((at @ self.tokens).clamp(min=1e-4).log())
        return self.known * torch.stack(expected, dim=1)

    def texts(self, count):
        rng = np.random.default_rng(1)
        state = rng.integers(0, len(self.moves), count)
        ids = np.zeros((count, LENGTH), dtype=int)
        moves = self.moves.numpy().cumsum(axis=1)
        for place in range(LENGTH):
            ids[:, place] = self.tokens.argmax(dim=1).numpy()[state]
            state = (rng.random(count)[:, None] > moves[state]).sum(axis=1)
            state = state.clip(max=len(moves) - 1)
        return ids


def studied(tmp_path, make, ids, **scored):
    run = og.Trajectory.from_models({step: make(step / 10) for step in (0, 5, 10)})
    texts = {"text": og.Inputs.from_tokens(ids, vocab_size=STATES, **scored)}
    places = og.observables.PlaceLosses(objective="causal", every=bool(scored))
    study = og.Study(run, texts, [places], device="cpu")
    return study.run(tmp_path / "s", progress=False).tree


def claims_of(tmp_path, make, ids, **scored):
    claims = from_dataset(studied(tmp_path, make, ids, **scored).to_dataset())
    return [claim for claim in claims if claim.kind is Kind.IN_CONTEXT]


def test_a_markov_chain_in_context_is_learned_in_context(tmp_path):
    ids = chains(60)
    (claim,) = claims_of(tmp_path, Counts, ids)
    with torch.no_grad():
        log_p = Counts(1.0)(torch.tensor(ids))[:, :-1].log_softmax(-1)
    costs = -log_p.gather(2, torch.tensor(ids)[:, 1:, None])[..., 0].mean(dim=0)
    # Place 1 is the first token; places 33 to 64 have 32 to 63 tokens before them.
    assert claim.last == pytest.approx(float(costs[31:].mean()), abs=1e-4)
    assert claim.beside[0].value == pytest.approx(float(costs[7:15].mean()), abs=1e-4)
    text = said([claim], Voice(), Names()).text
    assert "at places 33–64" in text and "at places 9–16" in text


def test_a_text_whose_loss_is_no_number_shows_no_learning_in_context(tmp_path):
    data = studied(tmp_path, Counts, chains(60))["place-losses"].to_dataset()
    assert len(claims_of_context("place-losses", data)) == 1
    data.place_cost.loc[{"step": 10, "text": data.text[0]}] = np.nan
    assert not claims_of_context("place-losses", data)


def test_a_question_before_its_answer_is_no_early_context(tmp_path):
    """Late places of a conversation are answers, which cost less than what was asked."""
    assert not claims_of(tmp_path, Counts, chains(60), score="last:32")


def test_what_all_texts_share_is_not_learned_in_context(tmp_path):
    """Pairs of all texts are known from the second place on; states from the first."""
    ids = chains(60, of_each=False)
    pairs = np.full((STATES, STATES), 0.5)
    np.add.at(pairs, (ids[:, :-1].ravel(), ids[:, 1:].ravel()), 1)
    table = np.log(pairs / pairs.sum(axis=1, keepdims=True))
    states = np.log(np.bincount(ids.ravel(), minlength=STATES) / ids.size)
    assert not claims_of(tmp_path / "pairs", lambda known: Fixed(known, table), ids)
    alone = np.broadcast_to(states, table.shape)
    assert not claims_of(tmp_path / "states", lambda known: Fixed(known, alone), ids)


def test_words_that_all_texts_share_are_not_learned_in_context(tmp_path):
    """A text of few kinds of tokens begins within a word, of which four tokens tell too little."""
    assert not claims_of(tmp_path, Words, Words(1.0).texts(60))


def test_words_that_stand_late_are_not_learned_in_context(tmp_path):
    """Late tokens are nearly all one state, which a model of states alone predicts well."""
    rng = np.random.default_rng(0)
    ids = rng.integers(0, STATES, (60, LENGTH))
    ids[:, 12:] = np.where(rng.random((60, LENGTH - 12)) < 0.9, 0, ids[:, 12:])
    states = np.log(np.bincount(ids.ravel(), minlength=STATES) / ids.size)
    alone = np.broadcast_to(states, (STATES, STATES))
    assert not claims_of(tmp_path, lambda known: Fixed(known, alone), ids)
