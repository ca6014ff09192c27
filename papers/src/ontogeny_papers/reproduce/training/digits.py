"""A small convolutional network that learns imbalanced digits."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ontogeny.capture.forward import device_of, quiet

from ..tasks import ImbalancedDigits


@dataclass(frozen=True, eq=False)
class DigitTask:
    """All images in every batch, with the cross-entropy of their classes: a task for `record_logits`.

    Parameters
    ----------
    data
        Images and labels.

    Examples
    --------
    >>> from ontogeny_papers.reproduce.tasks import imbalanced_digits
    >>> task = DigitTask(imbalanced_digits(per_majority=20))
    >>> task.logits(digit_network(4)).shape
    (4, 44)
    """

    data: ImbalancedDigits

    def sample(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return all images and labels; nothing is drawn."""
        return torch.from_numpy(self.data.images), torch.from_numpy(self.data.labels)

    def loss(self, model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        """Return the mean loss."""
        images, labels = batch
        return cross_entropy(model(images), labels, reduction="none").mean()

    def logits(self, model: nn.Module) -> np.ndarray:
        """Return the logits of all images, (classes, n) float32, in evaluation mode."""
        with quiet(model):
            values = model(torch.from_numpy(self.data.images).to(device_of(model)))
        return np.ascontiguousarray(values.float().cpu().numpy().T)


def digit_network(
    classes: int, *, width: int = 16, random_state: int = 0
) -> nn.Sequential:
    """Return a network of three convolutions, mean pooling and a linear read-out.

    Parameters
    ----------
    classes
        Number of outputs, at least 2.
    width
        Channels of the first layer; the others have twice as many.
    random_state
        Seed of the weights; PyTorch's own random state is left as it was.

    Notes
    -----
    After the 3-layer convolutional network of Zhao and Thrampoulidis 2025, Fig. 9, whose sizes the
    paper does not give.

    Examples
    --------
    >>> digit_network(4)(torch.zeros(1, 1, 8, 8)).shape
    torch.Size([1, 4])
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(random_state)
        return nn.Sequential(
            OrderedDict(
                convolution1=nn.Conv2d(1, width, 3, padding=1),
                relu1=nn.ReLU(),
                convolution2=nn.Conv2d(width, 2 * width, 3, padding=1, stride=2),
                relu2=nn.ReLU(),
                convolution3=nn.Conv2d(2 * width, 2 * width, 3, padding=1),
                relu3=nn.ReLU(),
                pool=nn.AdaptiveAvgPool2d(2),
                flatten=nn.Flatten(),
                readout=nn.Linear(8 * width, classes),
            )
        )
