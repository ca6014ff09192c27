"""What a step of an optimiser does: gradients of any loss, and whether two steps commute.

For any `torch.nn.Module` and any ``loss(model, batch)``; the module is never written to.
"""

from ._exports import exported_names, exporter

__all__ = [*exported_names("updates")]

__getattr__ = exporter("updates")
