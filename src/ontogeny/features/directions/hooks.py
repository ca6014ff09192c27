"""Hook names of TransformerLens as patterns of layers, by the short names of known families."""

from __future__ import annotations

from ...errors import ArgumentError

PLACES = {
    "hook_resid_pre": "resid_pre",
    "hook_resid_mid": "resid_mid",
    "hook_resid_post": "resid",
    "hook_mlp_out": "mlp",
    "hook_attn_out": "attn",
    "attn.hook_z": "o#in",
    "attn.hook_q": "q",
    "attn.hook_k": "k",
    "attn.hook_v": "v",
}


def layer_of(hook: str) -> str:
    """Return the pattern of the layer that a hook name means; another name is a pattern itself.

    Raises
    ------
    ArgumentError
        If it is a hook of TransformerLens that no layer gives.

    Examples
    --------
    >>> layer_of("blocks.8.hook_resid_pre"), layer_of("blocks.2.attn.hook_z")
    ('layers[8].resid_pre', 'layers[2].o#in')
    >>> layer_of("model.layers.3.mlp")
    'model.layers.3.mlp'
    """
    if hook == "hook_embed":
        return "embed"
    blocks, _, rest = hook.partition(".")
    block, _, place = rest.partition(".")
    if blocks != "blocks" or not block.isdecimal() or "hook_" not in place:
        return hook
    if place not in PLACES:
        raise ArgumentError(
            f"hook must be one of {', '.join(f'blocks.N.{name}' for name in PLACES)}, or a "
            f"pattern of layers; got {hook!r}."
        )
    return f"layers[{block}].{PLACES[place]}"
