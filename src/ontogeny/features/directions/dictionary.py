"""A pretrained dictionary applied to all checkpoints of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr

from ...arrays import to_numpy
from ...claims import Claim
from ...concepts.joint.snapshots import fixed_half
from ...errors import ArgumentError, CheckpointError, NonFiniteError
from ...figures import Column, Curves, Section, Table
from ...needs import Activations, Need
from ...needs.derived import Reference
from ...observables import Observable, Reading, Run, by_layer
from ...observables.fits import OfWidth
from ...observables.readable import UNTRAINED
from ...quantities import Measured, Quantity
from ...trees import Nodes
from ...units import Units
from .dictionary_files import read_dictionary
from .dictionary_lives import LIVES, claims_of_dictionary, labels_of, with_features
from .encoding import Encoding
from .hooks import layer_of

GAUSSIAN = "Gaussian activations of the same covariance"
PARTS = ("all", "first half", "second half")
DRAWS = 5  # of Gaussian activations
SURROGATE = 1000  # rows of each at most


@dataclass(frozen=True)
class Dictionary(Observable):
    """A sparse autoencoder that was trained elsewhere, at every checkpoint, with its labels.

    Features are encoded as SAELens encodes them, and nothing is fitted. At every step: how much of
    the activations the dictionary explains, how many features never fire, how often each does, and
    how far its codes are those of the reference step. A feature is born where they come to
    agree for good, on all texts and on both halves.

    Parameters
    ----------
    dictionary
        A folder of SAELens (standard, topk, jumprelu, gated) or Gemma Scope, a file with ``W_enc``,
        ``b_enc``, ``W_dec``, ``b_dec`` and perhaps ``threshold``, or ``OWNER/NAME[/FOLDER]``.
    hook
        Where its activations are: a hook of TransformerLens such as ``"blocks.8.hook_resid_pre"``,
        or a pattern of layers. By default as the dictionary says.
    labels
        A file of its labels: CSV or JSON with ``index`` and ``label``.
    features
        Numbers of features that are shown and claimed; by default the `n_shown` that live most.
    on, tokens, max_tokens, random_state
        Which tokens.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> file = tempfile.mkdtemp() + "/plain.npz"
    >>> np.savez(
    ...     file, W_enc=np.eye(3), b_enc=np.zeros(3), W_dec=np.eye(3), b_dec=np.zeros(3)
    ... )
    >>> Dictionary(file, hook="blocks.2.hook_mlp_out").layer
    'layers[2].mlp'
    """

    dictionary: str | tuple[str, ...]
    hook: str = ""
    labels: str | tuple[str, ...] | None = None
    features: tuple[int, ...] = ()
    n_shown: int = 20
    on: str | None = None
    tokens: str = "later"
    max_tokens: int | None = 5000
    random_state: int = 0

    kind = "dictionary"
    question = "Since when do the features of a pretrained dictionary fire as they do?"
    requires = "texts, a dictionary"
    price = "one pass, and the dictionary's products, at each step"
    file_arguments = ("labels",)
    minima = {"n_shown": 1}
    compared = ("n_born",)
    variables = LIVES
    quantities = (
        Quantity(
            "explained",
            "variance that the dictionary explains",
            symbol="1 − ‖A − Â‖² / ‖A − mean A‖²",
            rows="{layer} · explained by the dictionary",
            nulls={"gaussian": GAUSSIAN, "untrained": UNTRAINED},
            caption="Below 0 the mean activation explains more.",
        ),
        Quantity(
            "dead",
            "share of features that never fire on these tokens",
            rows="",
            minimum=0.0,
        ),
        Quantity(
            "active",
            "features that fire at a token",
            "features",
            several=True,
            rows="{layer} · features that fire",
            minimum=0.0,
        ),
    )
    section = Section(
        title="A dictionary over checkpoints",
        definition="A dictionary that was trained elsewhere encodes every checkpoint. A feature "
        "agrees by the correlation of its codes with those of the reference {checkpoint}; its birth is "
        "where that stays above one half, in all texts and in both halves.",
        symbol="corr(uⱼ(θₜ), uⱼ(θ_ref))",
        null="Gaussian activations with the same mean and covariance; the untrained model; the "
        "births that control runs show by the same rule.",
        care="A dictionary fits the checkpoint that it was trained on. Features of earlier "
        "checkpoints that it never learned are not seen.",
        source="SAELens; Gemma Scope (Lieberum et al. 2024)",
    )
    charts = (
        Curves(
            "lives",
            "How far features fire as at the reference",
            value="shown_agreement",
            series="shown",
            facet="layer",
            caption="Correlation of a feature’s codes with those at the reference.",
        ),
        Table(
            "features",
            "Features",
            columns=[
                Column("shown_label"),
                Column("shown_born"),
                Column("shown_born_after"),
                Column("shown_firing"),
            ],
            rows="shown",
            group="layer",
        ),
    )

    def check(self) -> None:
        """Refuse what is no dictionary, a hook that none knows, and numbers of no feature."""
        if self.tokens == "mean":
            raise ArgumentError(
                "tokens must not be 'mean': codes are of single tokens."
            )
        count = self._encoding.count
        wrong = [i for i in self.features if not 0 <= i < count]
        if wrong:
            raise ArgumentError(
                f"features must be numbers from 0 to {count - 1}; got {wrong[0]}."
            )
        assert self.layer
        labels_of(self._labels_file, count)

    def check_inputs(self, inputs: Mapping[str, Any]) -> None:
        """Refuse a single text, of which no half says what the other one does."""
        name = self.on or next(iter(inputs))
        if name in inputs and Units(np.asarray(inputs[name].groups)).count < 2:
            raise ArgumentError(
                "dictionary needs at least two texts, as a birth is one in both halves of them; "
                f"{name!r} has one."
            )

    @property
    def _source(self) -> str:
        one = self.dictionary
        return one if isinstance(one, str) else one[0]

    @property
    def _labels_file(self) -> str | None:
        one = self.labels
        return one if one is None or isinstance(one, str) else one[0]

    @property
    def _encoding(self) -> Encoding:
        return read_dictionary(self._source)

    @property
    def layer(self) -> str:
        """The pattern of the layer that it encodes."""
        hook = self.hook or self._encoding.hook
        if not hook:
            raise ArgumentError(
                f"hook must be named: {self._source!r} does not say where its activations were "
                "read, such as 'blocks.20.hook_resid_post'."
            )
        return layer_of(hook)

    @property
    def stem(self) -> str:
        """The name of its folder or file."""
        return Path(self._source).stem

    def arguments(self) -> dict[str, Any]:
        """Return the fields; of files their names and what they hold."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        labels = labels_of(self._labels_file, self._encoding.count)
        content = {"content": self._encoding.digest, "named": sorted(labels.items())}
        return given | {"dictionary": self.stem, "labels": bool(labels), **content}

    def files_read(self) -> Sequence[str | Path]:
        """Return none: `arguments` tells what they hold, wherever they lie."""
        return ()

    @property
    def activations(self) -> Activations:
        """The activations that are encoded."""
        sample = (self.on, self.tokens, self.max_tokens, self.random_state)
        return Activations(self.layer, *sample)

    def needs(self) -> Sequence[Need]:
        """Return the activations here and at the reference."""
        fits = OfWidth(
            self.layer, self._encoding.width, f"the dictionary {self.stem!r}"
        )
        return [self.activations, Reference(self.activations), fits]

    def prepare(self, run: Run) -> xr.Dataset | None:
        """Return how much of an untrained model it explains; None where none can be made."""
        try:
            values = run.untrained()[self.activations]
        except (ArgumentError, CheckpointError, NonFiniteError):
            return None
        encoding = self._encoding
        return by_layer(values, lambda _, A: {"untrained": _explained(encoding, A)})

    def observe(self, reading: Reading, state: xr.Dataset | None) -> xr.Dataset:
        """Return what the dictionary makes of one checkpoint."""
        there = reading[Reference(self.activations)]
        units = Units(reading.units(self.activations))

        def one(path: str, A: torch.Tensor) -> Mapping[str, Any]:
            untrained = {}
            if state is not None:
                untrained = {"untrained": float(state.untrained.sel(layer=path))}
            reference = torch.from_numpy(to_numpy(there[path]))
            return self._of_layer(A.cpu(), reference, units, untrained)

        found = by_layer(reading[self.activations], one)
        return found.assign_coords(part=list(PARTS)) if "part" in found.dims else found

    def _of_layer(
        self,
        A: torch.Tensor,
        there: torch.Tensor,
        units: Units,
        untrained: Mapping[str, float],
    ) -> dict[str, Any]:
        encoding = self._encoding
        codes, given = encoding.both(A)
        squares = ((A - A.mean(dim=0)) ** 2).sum(dim=1).double().numpy()
        lost = ((A - given) ** 2).sum(dim=1).double().numpy()
        share = np.divide(lost, squares, out=np.zeros_like(lost), where=squares > 0)
        of_text, weights = units.means(1 - share, squares)
        rng = np.random.default_rng([self.random_state, 11])
        gaussian = [_explained(encoding, _surrogate(A, rng)) for _ in range(DRAWS)]
        fires = codes > 0
        before = encoding.codes(there).float()
        size = (codes.double() ** 2).mean(dim=0).sqrt()
        length = encoding.weights["W_dec"].double().norm(dim=1)
        return {
            "explained": Measured(
                1 - float(lost.sum() / max(squares.sum(), 1e-30)),
                of_text=("text", of_text),
                weights=("text", weights),
                nulls={"gaussian": ("draw", gaussian), **untrained},
            ),
            "dead": float((~fires.any(dim=0)).double().mean()),
            "active": Measured.mean(fires.sum(dim=1), units.of_row),
            "firing": (
                "feature",
                fires.double().mean(dim=0).numpy().astype(np.float32),
            ),
            "written": ("feature", (size * length).numpy().astype(np.float32)),
            "agreement": (("part", "feature"), agreements(codes, before, units)),
        }

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Add the lives of the features, and which of them are shown."""
        if "agreement" not in data:
            return data
        labels = labels_of(self._labels_file, self._encoding.count)
        return with_features(data, labels, self.features, self.n_shown)

    def claims(self, name: str, data: xr.Dataset) -> Sequence[Claim]:
        """Return since when it explains the layer, and which features were born."""
        return list(claims_of_dictionary(name, data, GAUSSIAN))


def _explained(encoding: Encoding, A: torch.Tensor) -> float:
    A = A.cpu()
    given = encoding.both(A)[1]
    whole = float(((A - A.mean(dim=0)) ** 2).sum())
    return 1 - float(((A - given) ** 2).sum()) / max(whole, 1e-30)


def _surrogate(A: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """Return Gaussian rows with the mean and covariance of activations (n, m)."""
    mean = A.mean(dim=0)
    weights = rng.standard_normal((min(SURROGATE, len(A)), len(A))) / np.sqrt(len(A))
    return mean + torch.from_numpy(weights).float() @ (A - mean)


def agreements(codes: torch.Tensor, before: torch.Tensor, units: Units) -> np.ndarray:
    """Return the correlation (3, r) of codes with others, of all rows and of both halves."""
    half = torch.from_numpy(fixed_half(units.place))
    found = []
    for rows in (torch.ones_like(half), half, ~half):
        one, other = (part[rows] - part[rows].mean(dim=0) for part in (codes, before))
        size = one.norm(dim=0) * other.norm(dim=0)
        along = (one * other).sum(dim=0)
        found.append(torch.where(size > 0, along / size.clamp(min=1e-30), 0.0))
    return torch.stack(found).numpy().astype(np.float32)
