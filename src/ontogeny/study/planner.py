"""Compares what a study folder holds with what the study would compute today.

A cell is reused only if every component of its fingerprint is what it would be today.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import ArgumentError, CheckpointError
from ..inputs import Inputs
from ..needs import Gradients, Need, Reference
from ..observables import Observable
from ..store import read_header
from ..trajectory import Checkpoint, Trajectory
from .digests import DigestCache, combine
from .judging import judge, looked_at, plain
from .layout import cell_path, reference_path, state_path
from .plan import Entry, Plan
from .probe import Probe
from .readings import vocabulary_size
from .settings import Settings
from .sound import SoundCells

__all__ = ["Planner"]


class Planner:
    """Compares what a folder holds with what a study would compute today."""

    def __init__(
        self,
        trajectory: Trajectory,
        inputs: Mapping[str, Inputs],
        observables: Sequence[Observable],
        settings: Settings,
        probe: Probe,
        folder: Path | None,
        digests: DigestCache,
    ) -> None:
        self.trajectory, self.inputs, self.observables = trajectory, inputs, observables
        self.settings, self.probe, self.folder, self.digests = settings, probe, folder, digests
        self.read = SoundCells()  # shared by the plans of a run and its merge
        self._by_name = {o.name: o for o in observables}
        self._models: dict[int, str] = {}

    def plan(self) -> Plan:
        """Return the plan as things stand; states that are not current make their cells stale."""
        plan = Plan(steps=tuple(int(s) for s in self.trajectory.steps))
        for observable in self.observables:
            for need in observable.needs():
                if isinstance(need, Reference) and need not in plan.references:
                    plan.references[need] = self._reference(need)
            if has_state(observable):
                plan.states.append(self._state(observable))
        pending = {e.node for e in plan.states if e.to_do}
        pending_needs = {need for need, e in plan.references.items() if e.to_do}
        for observable in self.observables:
            if observable.source is None:
                waits = observable.name in pending or bool(pending_needs & set(observable.needs()))
                plan.entries += [self._cell(observable, k, waits) for k in self.keys(observable)]
        unsettled = {e.node for e in plan.entries if e.outcome in ("new", "stale")}
        for observable in self.observables:
            if observable.source is not None:
                waits = observable.source.node in unsettled
                plan.entries += [self._layer(observable, k, waits) for k in self.keys(observable)]
        self._price(plan)
        return plan

    def keys(self, observable: Observable) -> list[int | str]:
        """Return the steps, blocks or layers that an observable has cells for.

        One that needs nothing has none: it follows from other nodes alone.

        Raises
        ------
        ArgumentError
            If an observable of series asks for those of one that reads no layers.
        """
        if not observable.needs():
            return []
        if observable.over_blocks:
            return list(self.probe.blocks[observable.name])
        if observable.source is not None:
            layers = self.probe.layers_of(self._by_name[observable.source.node])
            if not layers:
                raise ArgumentError(
                    f"{observable.name} needs an observable of activations; "
                    f"{observable.source.node!r} has no layers."
                )
            return list(layers)
        return [int(s) for s in self.trajectory.steps]

    def _cell(self, observable: Observable, key: int | str, waits: bool) -> Entry:
        fingerprint = self._common(observable)
        if observable.over_blocks:
            fingerprint["weights"] = {
                str(c.step): self._digest(c, [str(key).partition("#")[0]]) for c in self.trajectory
            }
            fingerprint["vocabulary"] = vocabulary_size(self.trajectory)
            fingerprint["model"] = self._model(int(self.trajectory.steps[0]))
        else:
            own = [n for n in observable.needs() if n.at_step is n]
            fingerprint["weights"] = self._weights(int(key), own)
            fingerprint["inputs"] = self._inputs(observable.needs())
            fingerprint["reading"] = self._reading(int(key))
            losses = [repr(need) for need in own if isinstance(need, Gradients)]
            if losses:
                fingerprint["losses"] = losses
            if observable.uses_noise:
                fingerprint["noise"] = key in self.settings.noise_steps
        fingerprint["threads"] = self.settings.threads
        references = [n for n in observable.needs() if isinstance(n, Reference)]
        if references or has_state(observable):
            fingerprint["reference_step"] = self.settings.reference_step
        if waits:
            fingerprint["state"] = "to be computed"
        elif self.folder is not None:
            paths = [reference_path(self.folder, n) for n in references]
            paths += [state_path(self.folder, observable.name)] * has_state(observable)
            if paths:
                fingerprint["state"] = [read_header(p)["checksum"] for p in paths]
        return self._judge(
            observable.name,
            key,
            fingerprint,
            None if self.folder is None else cell_path(self.folder, observable.name, key),
        )

    def _layer(self, observable: Observable, key: int | str, waits: bool) -> Entry:
        """Return the entry of an observable of a series at one layer."""
        assert observable.source is not None
        fingerprint = self._common(observable)
        fingerprint["threads"] = self.settings.threads
        fingerprint["reference_step"] = self.settings.reference_step
        if waits:
            fingerprint["series"] = "to be computed"
        elif self.folder is not None:
            node = observable.source.node
            fingerprint["series"] = {
                str(step): read_header(cell_path(self.folder, node, int(step)))["checksum"]
                for step in self.trajectory.steps
            }
        path = None if self.folder is None else cell_path(self.folder, observable.name, key)
        return self._judge(observable.name, key, fingerprint, path)

    def _reference(self, need: Reference) -> Entry:
        fingerprint = {
            "need": repr(need.need),
            "weights": self._weights(self.settings.reference_step, [need.need]),
            "inputs": self._inputs([need]),
            "reading": self._reading(self.settings.reference_step),
        }
        path = None if self.folder is None else reference_path(self.folder, need)
        return self._judge("reference", self.settings.reference_step, fingerprint, path)

    def _state(self, observable: Observable) -> Entry:
        fingerprint = self._common(observable)
        fingerprint["reference_step"] = self.settings.reference_step
        fingerprint["weights"] = self._weights(self.settings.reference_step, observable.needs())
        fingerprint["inputs"] = self._inputs(observable.needs())
        fingerprint["reading"] = self._reading(self.settings.reference_step)
        path = None if self.folder is None else state_path(self.folder, observable.name)
        extra = looked_at(path, self.trajectory)
        entry = self._judge(observable.name, "state", {**fingerprint, **extra}, path)
        return Entry(entry.node, entry.key, fingerprint, entry.outcome, entry.why)

    def _common(self, observable: Observable) -> dict[str, Any]:
        return {
            "observable": {
                "kind": observable.kind,
                "version": observable.version,
                "arguments": plain(observable.arguments()),
            }
        }

    def _weights(self, step: int, needs: Sequence[Need]) -> str:
        names: set[str] | None = set()
        for need in needs:
            known = self.probe.reads.get(need.at_step)
            names = None if names is None or known is None else names | known
        return self._digest(self.trajectory[step], names)

    def _reading(self, step: int) -> dict[str, Any]:
        return {**self.settings.reading(), "model": self._model(step)}

    def _model(self, step: int) -> str:
        """Return a digest of what a checkpoint's model is, beside its weights."""
        if step not in self._models:
            try:
                configuration = self.trajectory[step].configuration()
            except CheckpointError as error:
                configuration = {"unreadable": str(error)}
            content = {"class": self.probe.model_class, "attention": self.probe.attention}
            content["configuration"] = json.dumps(configuration, sort_keys=True, default=str)
            self._models[step] = combine(content)
        return self._models[step]

    def _digest(self, checkpoint: Checkpoint, names: Iterable[str] | None) -> str:
        try:
            return self.digests(checkpoint, names)
        except CheckpointError as error:
            return f"unreadable: {error}"

    def _inputs(self, needs: Sequence[Need]) -> dict[str, str]:
        used: dict[str, str] = {}
        for need in needs:
            if need.at_step.reads_inputs:
                name = need.at_step.on or next(iter(self.inputs))
                used[name] = self.inputs[name].fingerprint
        return used

    def _judge(
        self, node: str, key: int | str, fingerprint: Mapping[str, Any], path: Path | None
    ) -> Entry:
        outcome, why = judge(path, fingerprint, self.read)
        return Entry(node, key, fingerprint, outcome, why)

    def _price(self, plan: Plan) -> None:
        per_step: dict[int, list[Need]] = {}
        for entry in plan.entries:
            if entry.to_do and isinstance(entry.key, int):
                per_step.setdefault(entry.key, []).extend(self._by_name[entry.node].needs())
        for needs in per_step.values():
            keys = {self.probe.passes[n] for n in needs if n in self.probe.passes}
            plan.forwards += len(keys)
            plan.batches += sum(
                -(-len(self.inputs[k.on]) // self.settings.batch_size) for k in keys
            )
            held = sum(self.probe.bytes.get(need, 0) for need in set(needs))
            plan.activation_bytes = max(plan.activation_bytes, held)
        blocks = any(e.to_do and self._by_name[e.node].over_blocks for e in plan.entries)
        plan.retained_bytes = sum(self.probe.block_bytes.values()) * len(plan.steps) * blocks
        size = self.probe.parameters * 4
        plan.weight_bytes = size * (len(per_step) + len(plan.steps) * blocks)


def has_state(observable: Observable) -> bool:
    """Return whether an observable prepares a state."""
    return type(observable).prepare is not Observable.prepare
