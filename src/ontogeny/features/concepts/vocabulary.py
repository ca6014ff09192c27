"""Concepts in the rows of an embedding: which directions of the vocabulary appear when."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from ...claims import Claim
from ...concepts import JointDictionary
from ...concepts.joint.lives import SECOND
from ...errors import ArgumentError, check_number
from ...figures import Section
from ...needs import InputSet, Need, Weights
from ...observables import BlockReading, Observable, PresetEntry, Run
from ...quantities import Quantity
from ...trees import Nodes
from .described import tidied
from .joint import JointConcepts, check_latents
from .joint_lives import FEWEST, lives_of_layers
from .vocabulary_rows import Rows, chosen_ids, claims_of_matrices

NULLS = ("rows permuted", "rows mixed")
STARTS = ("auto", "subtracted", "kept")
TOKENS = 5  # that are named of each concept


@dataclass(frozen=True)
class VocabularyConcepts(Observable):
    """Directions of the vocabulary, and when they appear: a joint dictionary of embedding rows.

    Every token has one sparse code for the whole run, and every checkpoint its own decoder, as in
    `JointConcepts`; what is coded are the rows of the embedding or of the unembedding. A group of
    tokens that training moves together is a concept, born where their rows part from the others.

    Rows keep much of their random start for long, and chance that persists can be read from every
    checkpoint. So what is read is the change since step 0, and a latent is a concept only where
    another seed finds it again: the directions of noise that persists are arbitrary.

    Parameters
    ----------
    blocks
        Glob or globs over parameter names, or the short names ``"embed"`` and ``"unembed"``. A
        matrix that is found under two names is counted once.
    n_concepts
        Number of latents; only some of them are concepts.
    method
        As in `JointConcepts`.
    n_active
        Codes that are not zero, per token on average.
    fit_steps
        On how many checkpoints, evenly chosen, the codes are fitted.
    readable
        How well a code must be readable at its best checkpoint, from 0 to 1.
    start
        The rows at step 0: ``"subtracted"`` from those of every step; ``"kept"``; or ``"auto"``,
        subtracted where the study has a step 0.
    max_tokens
        Rows that are read: of the tokens that are most frequent in the texts, then of others in
        the order of their ids. Special tokens and rows of no token are left out. None reads all.
    nulls
        How often the dictionary is fitted to each of two nulls, see the notes; 0 leaves them out.
    keep_codes
        Whether the codes of all rows are stored too, as ``codes``: 2 MB for 100 latents of 5,000
        tokens.
    on
        Name of the input set that tokens are counted in; None means the study's first.
    random_state
        Seed of the fits, the halves of the tokens and the nulls.

    Notes
    -----
    After "Learning to read out" (2026), which fits crosscoders to the rows of the unembedding. The
    nulls are rows in another random order at each step (nothing is shared by the steps), and
    random orthogonal mixtures of the rows, the same at all steps: they keep every product of two
    features at any two steps, and so all that persists, but no token stands out.

    Examples
    --------
    >>> VocabularyConcepts(("embed", "unembed"), n_concepts=50).name
    'vocabulary-concepts'
    """

    blocks: str | tuple[str, ...] = "embed"
    n_concepts: int = 100
    method: str = "ica"
    n_active: int = 4
    fit_steps: int = 12
    readable: float = 0.6
    start: str = "auto"
    max_tokens: int | None = 5000
    nulls: int = 1
    keep_codes: bool = False
    on: str | None = None
    random_state: int = 0

    kind = "vocabulary-concepts"
    minima = {"fit_steps": 1, "nulls": 0, "max_tokens": 4}
    choices = {"start": STARTS}
    question = "Which directions of the embedding appear, and when?"
    requires = "weights, for names the tokenizer"
    price = "one fit over twelve steps"
    fewest_steps = 4
    obstacles = ("no_embedding",)
    presets = (
        PresetEntry(("weights", "everything"), {"n_concepts": "$concepts"}, 190),
    )
    state_variables = ("piece_text",)
    variables = {
        **JointConcepts.variables,
        "codes": ("code of every row that was read", "standard deviations"),
        "frequency": ("correlation of a code with the log of the token's count", "1"),
        "null_concepts": ("latents that pass for concepts in a null", "concepts"),
        "null_born": ("latents that pass for born in a null", "concepts"),
        "n_rows": ("rows that are read", "rows"),
        "masked_rows": ("rows of no token, left out", "rows"),
        "start_subtracted": ("whether the rows of {step} 0 are subtracted", "1"),
    }
    quantities = (
        Quantity(
            "concepts_there",
            "number of directions of the vocabulary that can be read from a checkpoint",
            "concepts",
            noise="exact",
            series="block",
            minimum=0.0,
            caption="Latents that both halves of the tokens find, and a sparse linear readout of "
            "this checkpoint predicts on tokens that it was not fitted on.",
        ),
        Quantity(
            "explained",
            "share of the variance of the rows that the shared codes explain",
            noise="exact",
            series="block",
            caption="Of the changes since {step} 0, where these are read.",
        ),
    )
    section = Section(
        title="Directions of the vocabulary and their lives",
        definition="Every token has one sparse code for the whole run, and every checkpoint its "
        "own decoder of the rows of the embedding, or of their changes since {step} 0. A latent is "
        "a concept where its codes can be read from single checkpoints, and another seed finds it "
        "again. It is born where it reaches half of its peak, after less than a quarter.",
        symbol="Wₜ − W₀ ≈ U Dₜ",
        null="Rows permuted between checkpoints share nothing. Rows mixed by a random rotation of "
        "the tokens keep all that persists, and hold no sparse code.",
        care="A code may follow how often tokens occur, which is mostly what training teaches "
        "first. Groups that appear within the first {checkpoint}s are tokens of the first batches.",
        source="Learning to read out (2026), by exact methods",
    )
    charts = tuple(replace(chart, facet="block") for chart in JointConcepts.charts)

    def check(self) -> None:
        """Refuse arguments out of range."""
        super().check()
        check_latents(self.method, self.n_concepts, self.n_active)
        check_number("readable", self.readable, 0, 1)

    def needs(self) -> Sequence[Need]:
        """Return the weight blocks, and the texts whose tokens are counted."""
        return [Weights(self.blocks), InputSet(self.on)]

    def prepare(self, run: Run) -> xr.Dataset:
        """Return how often every token occurs, which are special, and how they are shown."""
        need = InputSet(self.on)
        inputs = run.reading(run.reference_step)[need]
        pieces = run.pieces(need)
        tokenizer = run.tokenizer()
        counts = np.bincount(inputs.ids[inputs.ordinary], minlength=len(pieces))
        special = np.zeros(len(counts), dtype=bool)
        special_ids = [
            i for i in getattr(tokenizer, "all_special_ids", ()) if i < len(special)
        ]
        special[special_ids] = True
        texts = [*pieces, *map(str, range(len(pieces), len(counts)))]
        return xr.Dataset(
            {
                "count": ("piece", counts),
                "special": ("piece", special),
                "piece_text": ("piece", np.array(texts, dtype=object)),
            },
            coords={"piece": np.arange(len(counts))},
        )

    def observe(self, reading: BlockReading, state: xr.Dataset | None) -> xr.Dataset:
        """Return strength and readability of every latent of one matrix at all steps."""
        assert state is not None
        rows = self._rows(reading, state)
        joint = self._fitted(rows)
        presence = joint.presence_
        codes = joint.codes_
        largest = np.argsort(-codes, axis=0, kind="stable")[:TOKENS].T
        energy = np.take_along_axis(codes.T, largest, axis=1) ** 2
        counts = np.pad(state["count"].values, (0, reading.shape[0]))[rows.ids]
        there = self._there(joint)
        data = xr.Dataset(
            {
                "strength": (("step", "concept"), presence.strength),
                "readability": (("step", "concept"), presence.readable),
                "whitened": (("step", "concept", "other"), presence.whitened),
                "influence": (("step", "group", "concept"), presence.influence),
                "spread": (("step", "concept"), presence.spread),
                "explained": ("step", presence.explained),
                "concepts_there": ("step", there.sum(axis=1).astype(np.float64)),
                "found_again": ("concept", joint.found_again_),
                "half": ("concept", joint.half_),
                "replicates": ("concept", joint.replicates_.astype(np.float64)),
                "token_id": (("concept", "rank"), rows.ids[largest]),
                "token_share": (
                    ("concept", "rank"),
                    energy / np.maximum((codes**2).sum(axis=0), 1e-30)[:, None],
                ),
                "firing": ("concept", (codes > 0).mean(axis=0)),
                "frequency": ("concept", _correlations(codes, np.log1p(counts))),
                "digest": _digest(rows),
                "n_rows": len(rows.ids),
                "masked_rows": reading.masked_rows,
                "start_subtracted": float(rows.start is not None),
                **self._of_nulls(rows),
            },
            coords={"step": reading.steps, "null": list(NULLS)},
        )
        if not self.keep_codes:
            return data
        return data.assign(codes=(("token", "concept"), codes)).assign_coords(
            token=rows.ids
        )

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Add the lives, leave out what is the same matrix twice, and keep the pieces shown."""
        data = _once(data)
        if "token_id" not in data:
            return data
        sure = data.assign(
            readability=data.readability.where(data.replicates > 0, 0.0).where(
                data.readability.notnull()
            )
        )
        sure = sure.rename(block="layer", group="block")
        lived = lives_of_layers(sure, self.readable, self.random_state)
        lived = lived.rename(
            {"layer": "block", **({"block": "group"} if "block" in lived.dims else {})}
        )
        lived = lived.assign(readability=data.readability)
        return tidied(lived)

    def claims(self, name: str, data: xr.Dataset) -> Sequence[Claim]:
        """Return how many concepts each matrix has, when they were born, and what chance gives."""
        return list(claims_of_matrices(name, data))

    def _rows(self, reading: BlockReading, state: xr.Dataset) -> Rows:
        if len(reading.shape) != 2:
            raise ArgumentError(
                f"{reading.name} must be a matrix; its shape is {reading.shape}"
            )
        if len(reading.steps) < FEWEST + 1:
            raise ArgumentError(
                f"lives take at least {FEWEST + 1} checkpoints; there are {len(reading.steps)}"
            )
        untrained = int(reading.steps[0]) == 0
        if self.start == "subtracted" and not untrained:
            raise ArgumentError(
                f"start='subtracted' takes a checkpoint of step 0; the first is {reading.steps[0]}"
            )
        counts = state["count"].values
        special = state["special"].values
        ids = chosen_ids(counts, special, reading.shape[0], self.max_tokens)
        start = None
        if untrained and self.start != "kept":
            start = reading.rows(0, ids)
        return Rows(reading, ids, start)

    def _fitted(self, rows: Rows) -> JointDictionary:
        first = int(rows.start is not None)  # nothing has changed at step 0
        count = min(self.fit_steps, len(rows) - first)
        steps = np.unique(np.linspace(first, len(rows) - 1, count).round().astype(int))
        model = JointDictionary(
            self.n_concepts,
            self.method,
            self.n_active,
            fit_steps=steps.tolist(),
            max_tokens=None,
            readable=self.readable,
            n_draws=0,
            random_state=self.random_state,
        )
        return model.fit(rows, steps=rows.reading.steps)

    def _there(self, joint: JointDictionary) -> np.ndarray:
        """Return (S, r) whether concepts can be read from each checkpoint."""
        is_concept = joint.is_concept_ & joint.replicates_
        return np.asarray((joint.readable_ >= self.readable - SECOND) & is_concept)

    def _of_nulls(self, rows: Rows) -> dict[str, Any]:
        """Return how many latents of the nulls pass for concepts, and for born; means of refits."""
        if not self.nulls:
            return {}
        seeds = np.random.default_rng([self.random_state, 4]).integers(
            2**31, size=self.nulls
        )
        concepts = []
        born = []
        for seed in seeds.tolist():
            fits = [
                self._fitted(null) for null in (rows.permuted(seed), rows.mixed(seed))
            ]
            sure = [fit.replicates_ for fit in fits]
            concepts.append(
                [(f.is_concept_ & s).sum() for f, s in zip(fits, sure, strict=True)]
            )
            born.append(
                [
                    ((f.lives_.born >= 0) & s).sum()
                    for f, s in zip(fits, sure, strict=True)
                ]
            )
        return {
            "null_concepts": ("null", np.mean(concepts, axis=0)),
            "null_born": ("null", np.mean(born, axis=0)),
        }


def _correlations(codes: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the correlation (r,) of each code (n, r) with values (n,); 0 where one is constant."""
    U = codes - codes.mean(axis=0)
    v = values - values.mean()
    lengths = np.linalg.norm(U, axis=0) * np.linalg.norm(v)
    return np.where(lengths > 0, v @ U / np.where(lengths > 0, lengths, 1.0), 0.0)


def _digest(rows: Rows) -> str:
    """Return a digest of the rows at the first and the last step."""
    digest = hashlib.blake2b(digest_size=16)
    for step in rows.reading.steps[[0, -1]].tolist():
        digest.update(np.ascontiguousarray(rows.reading.rows(step, rows.ids)).tobytes())
    return digest.hexdigest()


def _once(data: xr.Dataset) -> xr.Dataset:
    """Return the blocks without those that equal an earlier one: tied matrices."""
    if "digest" not in data:
        return data
    first: dict[str, str] = {}
    same: dict[str, str] = {}
    for block, digest in zip(data.block.values, data.digest.values, strict=True):
        if isinstance(digest, str):  # NaN of a matrix that failed
            one = first.setdefault(digest, str(block))
            same |= {str(block): one} if one != str(block) else {}
    dataset = data.drop_vars("digest").sel(
        block=[b for b in data.block.values if b not in same]
    )
    return dataset.assign_attrs(tied=json.dumps(same)) if same else dataset
