"""The state that an answer is read from: read it, edit it, and see what the edit costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ontogeny.capture import match_layers
from ontogeny.capture.forward import first_tensor
from ontogeny.capture.forward import run as forward
from ontogeny.capture.sites import watched
from ontogeny.concepts import SAE
from ontogeny.errors import ArgumentError

from .accuracy import answers

_BATCH = 256


class ReadoutState:
    """One module's output at the last token of each text, which can be read and edited."""

    def __init__(self, value: Any, layer: str) -> None:
        paths = match_layers(value.model, layer)
        if len(paths) != 1 or "#" in paths[0]:
            raise ArgumentError(
                f"layer must match the output of exactly one module; {layer!r} matches "
                f"{', '.join(paths[:4])}."
            )
        self.value = value
        self.path = paths[0]
        self._module = value.model.get_submodule(self.path)

    def states(self) -> np.ndarray:
        """Return the state of each text, (n, m) float64."""
        inputs = self.value.inputs
        state_of: dict[int, Tensor] = {}
        for batch in inputs.batches(_BATCH):
            seen: list[Tensor] = []

            def note(path: str, output: Any, seen: list[Tensor] = seen) -> None:
                seen.append(first_tensor(output))

            with torch.no_grad(), watched(self.value.model, [self.path], note):
                forward(self.value.model, batch)
            state = seen[0][torch.arange(len(batch.rows)), torch.from_numpy(batch.last)]
            state = state.double().cpu()
            state_of.update(zip(batch.rows.tolist(), state, strict=True))
        return torch.stack([state_of[row] for row in range(len(inputs))]).numpy()

    def without(self, sae: SAE, latents: np.ndarray | None) -> np.ndarray:
        """Return which texts are answered correctly without `latents`; None: decoded alone."""

        def edit(states: Tensor) -> Tensor:
            array = states.detach().double().cpu().numpy()
            codes = np.asarray(sae.transform(array))
            if latents is None:
                edited = np.asarray(sae.inverse_transform(codes))
            else:
                edited = array - codes[:, latents] @ sae.components_[latents]
            return torch.as_tensor(edited, dtype=states.dtype, device=states.device)

        with _Edited(self._module, edit, self.value.inputs):
            return answers(self.value)[0].astype(float)


class _Edited:
    """Replace the last token's state in a module's output while the context lasts."""

    def __init__(self, module: nn.Module, edit: Any, inputs: Any) -> None:
        self._module = module
        self._edit = edit
        self._batches = iter(inputs.batches(_BATCH))

    def __enter__(self) -> None:
        def hook(_module: nn.Module, _args: Any, output: Any) -> Any:
            hidden = first_tensor(output).clone()
            rows = torch.from_numpy(next(self._batches).last)
            index = (
                torch.arange(len(rows), device=hidden.device),
                rows.to(hidden.device),
            )
            hidden[index] = self._edit(hidden[index])
            return (hidden, *output[1:]) if isinstance(output, tuple) else hidden

        self._handle = self._module.register_forward_hook(hook)

    def __exit__(self, *_: object) -> None:
        self._handle.remove()
