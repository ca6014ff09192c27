"""Shapes of decays over scaled time s in [0, 1]: what a curve does beside its offset and amplitude.

Each shape g(s; θ) equals 1 at s = 0; a curve is offset + amplitude · g.
"""

from __future__ import annotations

import abc
from typing import ClassVar

import numpy as np

SLOWEST = 20.0  # time scales in units of the run; slower ones are straight lines
FASTEST = 0.2  # in units of the smallest gap; faster ones fall between two checkpoints


class Shape(abc.ABC):
    """A family of curves with one or two shape parameters θ."""

    name: ClassVar[str]
    parameters: ClassVar[tuple[str, ...]]
    timelike: ClassVar[tuple[int, ...]]
    """Power of the unit of time in which each parameter is measured."""

    @abc.abstractmethod
    def bounds(self, gap: float, offset: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest and largest θ for series whose smallest gap is `gap`."""

    @abc.abstractmethod
    def grid(self, gap: float, offset: bool) -> np.ndarray:
        """Return θ (n, parameters) to start from."""

    @abc.abstractmethod
    def curve(self, s: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return g (..., T) for θ (..., parameters)."""

    @abc.abstractmethod
    def slopes(self, s: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return ∂g/∂θ (T, parameters) for one θ."""


class Exponential(Shape):
    """g = exp(c s); c < 0 falls."""

    name = "exponential"
    parameters = ("rate",)
    timelike = (-1,)
    steepest_rise: ClassVar[float] = 50.0

    def bounds(self, gap: float, offset: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the fastest fall and the fastest rise."""
        return np.array([-1 / (FASTEST * gap)]), np.array([self.steepest_rise])

    def grid(self, gap: float, offset: bool) -> np.ndarray:
        """Return rates of both signs; without an offset also nearly flat ones."""
        slowest = 1 / SLOWEST if offset else 1e-4
        falls = -np.geomspace(slowest, 1 / (FASTEST * gap), 100)
        rises = np.geomspace(slowest, self.steepest_rise, 40)
        return np.concatenate([falls, rises])[:, None]

    def curve(self, s: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return exp(c s)."""
        return np.exp(theta[..., :1] * s)

    def slopes(self, s: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return s exp(c s)."""
        return (s * np.exp(theta[0] * s))[:, None]


class ScaleAndExponent(Shape):
    """A shape with a time scale τ and an exponent."""

    parameters = ("scale", "exponent")
    timelike = (1, 0)
    exponents: ClassVar[tuple[float, float]]
    longest: ClassVar[float]

    def bounds(self, gap: float, offset: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the ranges of τ and of the exponent."""
        low, high = self.exponents
        return np.array([FASTEST * gap, low]), np.array([self.longest, high])

    def grid(self, gap: float, offset: bool) -> np.ndarray:
        """Return pairs of τ and exponent."""
        scales = np.geomspace(FASTEST * gap, self.longest, 40)
        exponents = np.geomspace(*self.exponents, 16)
        pairs = np.meshgrid(scales, exponents, indexing="ij")
        return np.stack(pairs, axis=-1).reshape(-1, 2)


class Power(ScaleAndExponent):
    """g = (1 + s/τ)^−p: a power law once s is beyond τ."""

    name = "power"
    exponents = (0.05, 50.0)
    longest = SLOWEST * 50.0

    def curve(self, s: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return (1 + s/τ)^−p."""
        return np.exp(-theta[..., 1:] * np.log1p(s / theta[..., :1]))

    def slopes(self, s: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return the derivatives by τ and p."""
        tau, p = theta
        g = self.curve(s, theta)
        return np.stack([g * p * s / (tau * (tau + s)), -g * np.log1p(s / tau)], axis=1)


class StretchedExponential(ScaleAndExponent):
    """g = exp(−(s/τ)^β); β = 1 is an exponential."""

    name = "stretched-exponential"
    exponents = (0.1, 6.0)
    longest = SLOWEST

    def curve(self, s: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return exp(−(s/τ)^β)."""
        with np.errstate(over="ignore"):  # exp(-inf) is the 0 that is meant
            return np.exp(-((s / theta[..., :1]) ** theta[..., 1:]))

    def slopes(self, s: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return the derivatives by τ and β."""
        tau, beta = theta
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            x = (s / tau) ** beta
            fall = np.where(x < 700, x * np.exp(-x), 0.0)
            log = np.where(s > 0, np.log(s / tau), 0.0)
        return np.stack([fall * beta / tau, -fall * log], axis=1)


SHAPES: dict[str, Shape] = {
    shape.name: shape for shape in (Exponential(), Power(), StretchedExponential())
}
