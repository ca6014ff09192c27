"""One reading of one model in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
import xarray as xr
from torch import Tensor, nn

from ..errors import BatchInvarianceError, check_iterable
from ..inputs import Inputs
from ..needs import Activations, Attention, Losses
from .forward import device_of
from .objectives import ReadingSettings
from .reading import read
from .trial.first_look import is_own
from .trial.invariance import say_alone, why_alone


def activations(
    model: nn.Module,
    inputs: Any,
    layers: str | Sequence[str],
    tokens: str = "all",
    max_tokens: int | None = 5000,
    random_state: int = 0,
    batch_size: int = 16,
    device: str | torch.device | None = None,
) -> dict[str, Tensor]:
    """Return the outputs of modules at chosen tokens: ``{path: (n, m) float32 tensor}``.

    Parameters
    ----------
    model
        Any module. It runs where it is, in evaluation mode, and is left as it was.
    inputs
        `Inputs`, or a dict of token tensors ``input_ids`` and ``attention_mask``.
    layers
        Patterns over module paths (see :mod:`ontogeny.capture.layers`), or short names such as
        ``"attn"`` and ``"layers[3].resid_pre"`` in known families. A transformer block's path
        (``"model.layers.3"``) gives the residual stream after it. Of a module that is called
        several times, name the call (``"layer@0"``): the pass ends where the deepest layer is first
        called. A study refuses such a module without a call.
    tokens
        ``"all"``, ``"mean"``, ``"last"``, ``"cls"`` or ``"masked"`` (see `needs.Activations`).
    max_tokens
        Rows kept, drawn with `random_state`: the same for every model; None keeps all.
    batch_size
        Texts in one forward pass.
    device
        Where the result is put; None: where the model is.

    Raises
    ------
    LayerMatchError
        If a pattern matches no module.
    ArgumentError
        If a module does not give (texts, tokens, features), is never called, or is called again
        before the pass ends.
    NonFiniteError
        If a layer gives NaN or infinity.

    Examples
    --------
    >>> model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 3))
    >>> activations(model, {"input_ids": [[1, 2, 3], [4, 5, 6]]}, "1")["1"].shape
    torch.Size([6, 3])
    """
    need = Activations(_patterns(layers), None, tokens, max_tokens, random_state)
    where = str(device_of(model) if device is None else device)
    texts = Inputs.coerce(inputs)
    settings = _settings(model, texts, ReadingSettings(batch_size, where), need.layers)
    return read(model, [need], {"inputs": texts}, settings)[need]


def attention_entropy(
    model: nn.Module,
    inputs: Any,
    layers: str | Sequence[str] = "*",
    batch_size: int = 16,
) -> xr.DataArray:
    """Return the mean entropy of attention distributions in nats: DataArray(layer, head).

    The mean runs over all ordinary query tokens of all texts; padded keys are left out. Equal
    attention to ``k`` keys has entropy ``log k``. A transformers model computes its maps meanwhile,
    beside its kernel or by its eager implementation; of other models, every module counts whose
    output tuple holds a (texts, heads, tokens, tokens) tensor whose rows sum to 1 at most, or that
    calls ``scaled_dot_product_attention``.

    Raises
    ------
    LayerMatchError
        If no matching module returns attention weights.
    NonFiniteError
        If attention weights are not finite.
    """
    need = Attention(_patterns(layers))
    texts = Inputs.coerce(inputs)
    settings = _settings(model, texts, ReadingSettings(batch_size))
    data = read(model, [need], {"inputs": texts}, settings)[need]
    real = data.isel(text=(data.tokens > 0).values)
    mean = (real.entropy * real.tokens).sum("text", skipna=False) / real.tokens.sum()
    return mean.rename("entropy").assign_attrs(
        units="nats", long_name="attention entropy"
    )


def losses(
    model: nn.Module,
    inputs: Any,
    objective: str = "auto",
    mask_fraction: float = 0.15,
    random_state: int = 0,
    batch_size: int = 16,
) -> xr.Dataset:
    """Return the loss of each text: Dataset ``loss(text)``, ``tokens(text)``, in nats per token.

    Parameters
    ----------
    model
        A model whose output, or its ``.logits``, is (texts, tokens, vocabulary).
    inputs
        `Inputs`, or a dict of token tensors.
    objective
        ``"causal"``: every ordinary token after the first is predicted from those before it;
        ``"masked"``: a fixed random `mask_fraction` of each text's ordinary tokens is replaced by
        the mask token and predicted; ``"auto"``: by the model's class name.
    mask_fraction, random_state
        The corruption, for ``"masked"``.
    batch_size
        Texts in one forward pass.

    Raises
    ------
    ArgumentError
        If the class name does not show the objective, or the output holds no such logits.
    NonFiniteError
        If a loss is not finite.

    Warns
    -----
    StudyWarning
        If texts are read one by one, since those of a batch change each other's losses.
    """
    need = Losses(None, objective, mask_fraction, random_state)
    texts = Inputs.coerce(inputs)
    settings = _settings(model, texts, ReadingSettings(batch_size))
    try:
        return read(model, [need], {"inputs": texts}, settings)[need]
    except BatchInvarianceError as error:
        say_alone(str(error))
        return read(model, [need], {"inputs": texts}, replace(settings, batch_size=1))[
            need
        ]


def _settings(
    model: nn.Module,
    inputs: Inputs,
    settings: ReadingSettings,
    layers: str | Sequence[str] | None = None,
) -> ReadingSettings:
    """Return how a model is read: texts alone, where those of a batch change each other's numbers.

    Models of libraries are not asked: a study's planning does it with whole texts.
    """
    several = len(inputs) > 1 and settings.batch_size > 1
    if several and is_own(model) and (why := why_alone(model, inputs, layers)):
        say_alone(why)
        return replace(settings, batch_size=1)
    return settings


def _patterns(layers: str | Sequence[str]) -> str | tuple[str, ...]:
    if isinstance(layers, str):
        return layers
    return tuple(check_iterable("layers", layers, "patterns"))
