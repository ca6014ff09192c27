"""The ordered checkpoints of one training run."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import (
    ArgumentError,
    CheckpointError,
    TooFewCheckpointsError,
    check_choice,
)
from ..markup import html_block, html_table
from ..own_code import unwatched
from .adapters.base import BaseWeights
from .adapters.own import absent_base
from .audit import audit, resolve
from .checkpoint import Checkpoint
from .control.weights import Controlled, control_checkpoints
from .findings import Findings, some
from .hub.client import resolve_cache
from .hub.names import Revisions
from .hub.repository import Repositories, Repository, list_files
from .opening import Catalogue, open_folder, open_hub, open_models
from .order.choosing import Choice, Order
from .selection import SPACINGS, check_step, spread
from .skeleton import Skeleton
from .tokenizers import load_tokenizer
from .weights.building import Template, check_template
from .weights.digests import combine

_SHOWN = 5  # checkpoints that a notebook lists, and the last


class UnknownStepError(CheckpointError, KeyError):
    """A step that the trajectory does not have."""

    __str__ = Exception.__str__  # KeyError would print the message in quotes


@dataclass(frozen=True, repr=False, eq=False)
class Trajectory:
    """Checkpoints of one training run in order of their steps.

    Made by `from_folder`, `from_hub` or `from_models`; immutable and picklable.
    ``trajectory[500]`` is the checkpoint at step 500, iteration goes through the checkpoints in
    order.

    Examples
    --------
    >>> models = {step: nn.Linear(4, 2) for step in (0, 1, 2, 4, 8, 16)}
    >>> trajectory = Trajectory.from_models(models)
    >>> trajectory
    Trajectory('Linear': 6 checkpoints, steps 0 to 16)
    >>> trajectory.select(count=4).steps
    array([ 0,  1,  4, 16])
    >>> print(trajectory.audit())
    no findings
    """

    checkpoints: tuple[Checkpoint, ...]
    title: str
    catalogue: Catalogue
    path: Path | None = None
    given_tokenizer: Any = field(default=None)
    controlled: Controlled | None = None
    # Those on the disk that it was selected from: the only tokenizer may stand in one left out.
    selected_from: tuple[Checkpoint, ...] = ()

    @classmethod
    def from_folder(
        cls,
        path: str | Path,
        model: Template | None = None,
        tokenizer: Any = None,
        *,
        step_from: str | None = None,
        only: str | Sequence[str] = (),
        exclude: str | Sequence[str] = (),
        key: str | None = None,
        base: str | Path | None = None,
    ) -> Trajectory:
        """Return the trajectory of a folder of checkpoints.

        Parameters
        ----------
        path
            A folder that a `Recorder` or the Hugging Face Trainer wrote, one with folders named
            ``step500``, ``step-500`` or ``step_500``, or one with weight files whose names hold
            the step, such as ``ckpt_500.pt``, ``epoch=1-step=500.ckpt`` (Lightning) and
            ``500.safetensors``. A step that files hold themselves, as nanoGPT's ``ckpt.pt`` and the
            Trainer's state do, counts before their names. The path of one such file is a trajectory
            of one checkpoint.
        model
            For a module that is not of transformers: the module, or a function without arguments
            that builds it.
        tokenizer
            Used instead of the one in the folder; False for none.
        step_from
            Where the step stands: in names, as ``"epoch={}"`` (``*`` is any text), or under a key
            in the files, as ``"iter_num"``.
        only, exclude
            Patterns of names that are taken, and that are left out, as ``"best*"``.
        key
            Under which key of the files the weights stand, as ``"ema"``, where there are several.
        base
            The model that was fine-tuned, a folder or OWNER/NAME of the Hub: it is step 0. Folders
            of adapters (LoRA and what else peft merges) name theirs. Where it is not here, steps
            and audit do without. Tensors that it lacks are those of the first checkpoint.

        Raises
        ------
        ArgumentError
            If `path` is no folder and no file, or `model` neither a module nor a function.
        CheckpointError
            If there is no whole checkpoint, the folder is itself one model, or the steps can be
            read in two ways; the message names both and how to choose.
        """
        check_template(model)
        folder = Path(path).expanduser().resolve()
        choice = Choice(step_from, only, exclude, key)  # type: ignore[arg-type]
        checkpoints, catalogue = open_folder(folder, model, choice, base)
        title = folder.name
        home = folder
        if folder.is_file():
            title = f"{folder.parent.name}/{folder.name}"
            home = folder.parent
        return cls(checkpoints, title, catalogue, home, tokenizer)

    @classmethod
    def from_hub(
        cls,
        repo: str | Sequence[str],
        revisions: Revisions | None = None,
        *,
        pattern: str | re.Pattern[str] | None = None,
        strict: bool = False,
        cache_dir: str | Path | None = None,
        token: str | bool | None = None,
        endpoint: str | None = None,
        local_files_only: bool = False,
        trust_remote_code: bool = False,
        model: Template | None = None,
        tokenizer: Any = None,
    ) -> Trajectory:
        """Return the trajectory of the revisions of a model repository on the Hugging Face Hub.

        Only the names of the revisions are asked for; weights are fetched when a checkpoint is
        opened. Every name is resolved to its commit at once, and weights, configuration,
        tokenizer and code come from that commit.

        Parameters
        ----------
        repo
            Such as ``"EleutherAI/pythia-70m"``; or a list of repositories with one checkpoint
            each, whose names give the steps (then `revisions` is not used).
        revisions
            A glob over branch and tag names, a list of names or steps, or a function from a name
            to its step (None leaves it out). By default ``"step*"``, where there is none
            ``"stage1-*"`` or ``"checkpoint-*"``, and else whatever a given `pattern` reads, or
            names of one form in which a word marks the step, as ``"iter_500"``.
        pattern
            How step and tokens are read from a name: a regular expression with a group ``step``
            and perhaps ``tokens``, or ``"pythia"``, ``"olmo"``, ``"eurobert"``, ``"multiberts"``
            or ``"trainer"``. None tries all of these.
        strict
            Refuse a list of which something does not exist; else it becomes a gap (see `gaps`).
        cache_dir, token, endpoint, local_files_only
            As in huggingface_hub. Without a network (``HF_HUB_OFFLINE=1``), or with
            `local_files_only`, what the cache holds is what exists.
        trust_remote_code
            Run model code that comes with the checkpoints. Otherwise it is not even fetched.
        model, tokenizer
            As in `from_folder`.

        Raises
        ------
        ArgumentError
            If an argument is not as described, or no step can be read from any name.
        UnknownRevisionError
            If nothing matches, or something of a strict list does not exist; it is a KeyError
            and a CheckpointError as well.
        CheckpointError
            If the repository cannot be reached or does not exist.
        """
        check_template(model)
        where = (resolve_cache(cache_dir), endpoint, token, local_files_only)
        source: Repository | Repositories
        if isinstance(repo, str):
            source = Repository(repo, *where)
        else:
            source = Repositories.of(repo, *where)
            revisions = "*"
        checkpoints, catalogue = open_hub(
            source, revisions, pattern, strict, model, trust_remote_code
        )
        return cls(checkpoints, source.repo, catalogue, None, tokenizer)

    @classmethod
    def from_models(
        cls,
        models: Mapping[int, nn.Module | Mapping[str, Tensor]],
        tokenizer: Any = None,
        model: Template | None = None,
    ) -> Trajectory:
        """Return the trajectory of models in memory; their tensors are referred to, not copied.

        Parameters
        ----------
        models
            Module or state dict at each step.
        tokenizer
            The tokenizer of the run, if there is one.
        model
            A module, or a function without arguments that builds one, to put state dicts in.

        Raises
        ------
        ArgumentError
            If a step is not an integer of at least 0, a value is no module or state dict, or two
            steps share all their tensors.
        """
        check_template(model)
        checkpoints, catalogue = open_models(models, model)
        template = checkpoints[0].template
        model_class = type(template) if isinstance(template, nn.Module) else template
        title = getattr(model_class, "__name__", "state dicts")
        return cls(checkpoints, title, catalogue, None, tokenizer)

    @property
    def steps(self) -> np.ndarray:
        """Steps, increasing: int64 array of shape (len(self),)."""
        return np.array(
            [checkpoint.step for checkpoint in self.checkpoints], dtype=np.int64
        )

    @functools.cached_property
    def _by_step(self) -> dict[int, Checkpoint]:
        return {checkpoint.step: checkpoint for checkpoint in self.checkpoints}

    @property
    def gaps(self) -> dict[int, str]:
        """Steps that were asked for and do not exist, with the reason: ``{step: why}``."""
        return dict(self.catalogue.gaps)

    def file_digests(self) -> dict[int, dict[str, str]]:
        """Return ``{step: {weight file: SHA-256}}`` of the Hub revisions, without a download.

        One listing call for each revision in a process, eight at a time.

        Raises
        ------
        CheckpointError
            If the Hub cannot be reached, or a revision holds no weights or not all shards.
        """
        list_files(chain(*(c.hub_revisions for c in self.checkpoints)))
        digests = {c.step: c.file_digests() for c in self.checkpoints}
        return {step: digest for step, digest in digests.items() if digest is not None}

    def provenance(self) -> dict[str, Any]:
        """Return where the checkpoints come from, JSON-ready.

        Keys are ``source``, ``name``, and for Hub revisions ``revisions``:
        ``{step: {revision, commit, tokens}}``. Those of a control are ``source`` ("control"),
        ``name``, ``kind``, ``random_state`` and ``of``, the provenance of the run.
        """
        if self.controlled is not None:
            made = self.controlled
            return {
                "source": "control",
                "name": self.title,
                "kind": made.kind,
                "random_state": made.random_state,
                "of": made.of,
            }
        revisions = {
            str(c.step): {
                "revision": c.revision,
                "commit": c.commit,
                "tokens": c.tokens,
            }
            for c in self.checkpoints
            if c.source is not None
        }
        source = "memory" if self.path is None else "folder"
        if revisions:
            source = "hub"
        fields = {"source": source, "name": self.title, "revisions": revisions}
        return {key: value for key, value in fields.items() if value}

    @property
    def unit(self) -> str:
        """What its steps count: ``"step"``, ``"epoch"`` or ``"token"``."""
        return (
            "step"
            if self.catalogue.order is None
            else self.catalogue.order.unit.rstrip("s")
        )

    @property
    def has_base(self) -> bool:
        """Whether its first checkpoint is a base that the others were adapted from."""
        return isinstance(self.checkpoints[0].derived, BaseWeights)

    def lines(self) -> list[str]:
        """Return which checkpoints there are, by what, and what was left out and why.

        At most five names of a kind are listed.

        Examples
        --------
        >>> Trajectory.from_models({0: nn.Linear(1, 1), 9: nn.Linear(1, 1)}).lines()
        ['2 checkpoints, steps 0 to 9']
        """
        available = self.catalogue.steps
        order = self.catalogue.order or Order(dict.fromkeys(available, ""))
        readings = unwatched(self.checkpoints[0].template)
        notes = [
            f"not noticed if it changes: what the model's code reads by {some(readings)}"
        ]
        absent = absent_base(self.checkpoints)
        unread = [f"no model can be read: {absent}"] if absent else []
        gone = [
            f"left out: {order.unit} {step} ({why.replace(f'{self.path}/', '')})"
            for step, why in self.catalogue.incomplete[:5]
        ]
        lines = order.lines([c.step for c in self.checkpoints], available)
        return [*lines, *gone, *notes[: len(readings)], *unread]

    def __len__(self) -> int:
        return len(self.checkpoints)

    def __iter__(self) -> Iterator[Checkpoint]:
        return iter(self.checkpoints)

    def __contains__(self, step: object) -> bool:
        return step in self._by_step

    def __getitem__(self, step: int) -> Checkpoint:
        """Return the checkpoint at `step`.

        Raises
        ------
        UnknownStepError
            If there is none; the message names the nearest ones. It is a KeyError as well.
        """
        step = check_step("step", step)
        if step not in self._by_step:
            near = sorted(self._by_step, key=lambda s: (abs(s - step), s))[:3]
            raise UnknownStepError(
                f"{self.title} has no checkpoint at step {step}; the nearest are "
                f"{', '.join(map(str, sorted(near)))}."
            )
        return self._by_step[step]

    def __repr__(self) -> str:
        return f"Trajectory({self.title!r}: {self._reach})"

    def _repr_html_(self) -> str:
        rows = [*self.checkpoints[:_SHOWN], *self.checkpoints[_SHOWN:][-1:]]
        heads = ("step", "name", "tokens")[: 3 if any(c.tokens for c in rows) else 2]
        lines = [
            (f"{c.step:,}", c.label, f"{c.tokens or 0:,}")[: len(heads)] for c in rows
        ]
        gaps = (
            f"{len(self.gaps)} of the steps asked for do not exist: .gaps"
            if self.gaps
            else ""
        )
        more = (
            f"{len(rows)} of {len(self)} checkpoints" if len(rows) < len(self) else ""
        )
        notes = "; ".join(filter(None, [more, gaps]))
        return html_block(self.title, self._reach, html_table(heads, lines, notes))

    @property
    def _reach(self) -> str:
        """How many checkpoints there are, and from where to where."""
        count = f"{len(self)} checkpoint{'s' if len(self) > 1 else ''}"
        first = self.checkpoints[0].step
        last = self.checkpoints[-1].step
        reach = f"s {first} to {last}" if first != last else f" {first}"
        return f"{count}, {self.unit}{reach}"

    def select(
        self,
        count: int | None = None,
        spacing: str = "log",
        *,
        steps: Iterable[int] | None = None,
        start: int | None = None,
        stop: int | None = None,
    ) -> Trajectory:
        """Return a thinner trajectory.

        Parameters
        ----------
        count
            How many checkpoints to keep; all if there are no more than that.
        spacing
            ``"log"`` spreads the positive steps evenly in their logarithm, ``"linear"`` all steps
            evenly. The first and the last are always kept, with ``"log"`` step 0 as well.
        steps
            Exactly these steps, instead of `count`.
        start, stop
            First and last step allowed, both inclusive.

        Raises
        ------
        ArgumentError
            If the arguments do not fit together or nothing is left.
        UnknownStepError
            If a step of `steps` does not exist.

        Examples
        --------
        >>> trajectory = Trajectory.from_models(
        ...     {s: nn.Linear(1, 1) for s in range(0, 1001, 100)}
        ... )
        >>> trajectory.select(count=5).steps
        array([   0,  100,  200,  500, 1000])
        >>> trajectory.select(start=300, stop=500).steps
        array([300, 400, 500])
        """
        if steps is not None and count is not None:
            raise ArgumentError("select takes count or steps, not both.")
        check_choice("spacing", spacing, SPACINGS)
        first = self.checkpoints[0].step
        last = self.checkpoints[-1].step
        low = first if start is None else check_step("start", start)
        high = last if stop is None else check_step("stop", stop)
        candidates = (
            self._by_step if steps is None else {self[step].step for step in steps}
        )
        selection = sorted(step for step in candidates if low <= step <= high)
        if not selection:
            raise TooFewCheckpointsError(
                f"no checkpoint is left between {low} and {high}; {self.title} has steps {first} "
                f"to {last}."
            )
        if count is not None:
            selection = spread(selection, count, spacing)
        here = tuple(c for c in self.checkpoints if c.path and c.source is None)
        return replace(
            self,
            checkpoints=tuple(self._by_step[step] for step in selection),
            selected_from=self.selected_from or here,
        )

    def control(self, kind: str = "turned", random_state: int = 0) -> Trajectory:
        """Return a run that moved as far as this one at the same steps, and learned nothing.

        Its checkpoints are computed when they are read, tensor by tensor and in double precision,
        and rounded to the stored dtype; nothing is copied, and making it reads nothing. The first
        checkpoint is that of this trajectory, bit for bit. Only parameters move otherwise:
        integers and the buffers of a module, such as running statistics, stay as they are here.
        Tensors that are tied stay tied. The numbers depend on the seed, the tensor's name and the
        step, so they are the same in every process and whatever is read before.

        Parameters
        ----------
        kind
            ``"turned"``: ``W_0 + Q_l (W_t - W_0) Q_r``. Random orthogonal Q, the same at all
            steps, give the motion another direction and keep its Gram matrix over steps, singular
            values, rank and drift. Sides of up to 1,024 have a Q from the Haar measure; larger
            ones, vocabularies among them, are permuted with random signs, and so are vectors.
            Tensors of more than two dimensions are taken as (first, all other).
            ``"mirrored"``: the same of half the seed, and of odd seeds backwards, so that seeds 2k
            and 2k + 1 are a pair; for runs that begin trained, which motion mostly harms.
            ``"walk"``: Gaussian increments with the norms of this run's, for each tensor.
            ``"line"``: straight from the first to the last checkpoint of each tensor, with the
            share of the way that the length of the path until a step has in the whole path.
            ``"shuffled"``: the increments' directions in another order, the same for all tensors,
            and their lengths at their places.
        random_state
            Seed; a line has none, and takes it as a part of its name.

        Returns
        -------
        Trajectory
            Its increments and ends are those between the checkpoints of this trajectory: select
            first for a walk of fewer, longer steps, and afterwards to leave steps of the walk out.

        Raises
        ------
        ArgumentError
            If the kind is unknown, the seed no whole number, there are fewer than two
            checkpoints (three for ``"shuffled"``), or this is a control already.

        Examples
        --------
        >>> run = Trajectory.from_models({s: nn.Linear(8, 4) for s in (0, 10, 20)})
        >>> control = run.control("turned", random_state=1)
        >>> control
        Trajectory('Linear (turned 1)': 3 checkpoints, steps 0 to 20)
        >>> def moved(trajectory):
        ...     first, last = trajectory[0].model(), trajectory[20].model()
        ...     return torch.linalg.svdvals(
        ...         last.weight.detach() - first.weight.detach()
        ...     )
        >>> torch.allclose(moved(run), moved(control), atol=1e-6)
        True
        """
        made = control_checkpoints(self.checkpoints, kind, random_state, self.title)
        derived = made[0].derived
        assert derived is not None
        order = self.catalogue.order
        return replace(
            self,
            checkpoints=made,
            title=f"{self.title} ({derived.name})",
            catalogue=Catalogue(
                self.catalogue.steps,
                self.catalogue.planned,
                gaps=self.catalogue.gaps,
                order=order and replace(order, left_out=()),  # what it counts
            ),
            path=None,
            controlled=Controlled(
                kind, int(random_state), self.provenance(), self.path
            ),
        )

    def audit(self, recorded: Mapping[int, str] | None = None) -> Findings:
        """Return what is certainly or probably wrong with the checkpoints.

        Weights in folders are read. Of Hub revisions only the file listings and small text files
        are downloaded; the values of weights are checked where they are on this machine.

        Parameters
        ----------
        recorded
            Fingerprints of an earlier time, as `fingerprints` gave them: what was exchanged or
            altered since is found. A `Recorder` keeps its own.

        Raises
        ------
        CheckpointError
            If the Hub cannot be reached. A checkpoint that cannot be read is a finding.
        """
        return audit(self.checkpoints, self.catalogue, self.path, recorded or {})

    def fingerprints(self) -> dict[int, str]:
        """Return ``{step: digest of all weights}``; reads weights as `fingerprint` does.

        Raises
        ------
        CheckpointError
            If a checkpoint cannot be read.
        """
        self.file_digests()
        return {
            checkpoint.step: checkpoint.fingerprint for checkpoint in self.checkpoints
        }

    def deduplicated(self, on_duplicate: str = "drop") -> Trajectory:
        """Return the trajectory after a rule for checkpoints with the same weights.

        The files do not show which of several labels is the right one. The last step of the
        trajectory is kept if it is among them, and otherwise the earliest. The audit of the new
        trajectory lists what was dropped.

        Parameters
        ----------
        on_duplicate
            ``"drop"`` keeps one checkpoint of every group, ``"mark"`` keeps all (the audit marks
            them), ``"raise"`` refuses.

        Raises
        ------
        ArgumentError
            If `on_duplicate` is none of these.
        CheckpointError
            With ``"raise"``, if there are groups; the message names them.

        Examples
        --------
        >>> weights = {"w": torch.zeros(2)}
        >>> copies = {0: weights, 1: {"w": torch.ones(2)}, 2: {"w": torch.zeros(2)}}
        >>> Trajectory.from_models(copies).deduplicated().steps
        array([1, 2])
        """
        remaining, noted = resolve(self.checkpoints, on_duplicate)
        catalogue = replace(self.catalogue, noted=(*self.catalogue.noted, *noted))
        return replace(self, checkpoints=remaining, catalogue=catalogue)

    def tokenizer(self) -> Any:
        """Return the run's tokenizer, or None if there is none or none was wished for.

        Raises
        ------
        CheckpointError
            If the tokenizer changes along the trajectory, or cannot be read.
        """
        if self.given_tokenizer is not None:
            return None if self.given_tokenizer is False else self.given_tokenizer
        path = self.path if self.controlled is None else self.controlled.path
        found = load_tokenizer(path, self.checkpoints)
        if found is None and self.selected_from:
            return load_tokenizer(path, self.selected_from)
        return found

    def skeleton(
        self,
        device: str | torch.device = "cpu",
        dtype: torch.dtype | None = None,
        anew: bool = False,
    ) -> Skeleton:
        """Return one module that can hold the weights of any of the checkpoints in turn.

        With `anew` a module is built for each: where one keeps what it computed from its weights.
        """
        return Skeleton(self, device, dtype, anew)

    @property
    def fingerprint(self) -> str:
        """Digest (hexadecimal) of steps and weights; the first use reads all weights.

        Those of Hub revisions are not read: their listings give digests of whole files.
        """
        return combine(
            {str(step): digest for step, digest in self.fingerprints().items()}
        )
