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


class TwoExponentials(Shape):
    """Two exponentials, one at least three times as fast, each with a fifth of the fall or more.

    The rate is that of the slower one; the share is the faster one's of the fall up to s = 1.
    """

    name = "two-exponentials"
    parameters = ("rate", "ratio", "share")
    timelike = (-1, 0, 0)
    slowest: ClassVar[float] = 0.3
    least_ratio: ClassVar[float] = 3.0
    shares: ClassVar[tuple[float, float]] = (0.2, 0.8)

    def bounds(self, gap: float, offset: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the ranges of rate, ratio and share; the faster one does not fall at once."""
        fastest = self._fastest(gap)
        (low, high) = self.shares
        least = np.array([self.slowest, self.least_ratio, low])
        return least, np.array(
            [fastest / self.least_ratio, fastest / self.slowest, high]
        )

    def grid(self, gap: float, offset: bool) -> np.ndarray:
        """Return triples whose faster exponential is not too fast."""
        low, high = self.bounds(gap, offset)
        axes = [np.geomspace(low[0], high[0], 24), np.geomspace(low[1], high[1], 8)]
        mesh = np.meshgrid(*axes, np.linspace(*self.shares, 5), indexing="ij")
        triples = np.stack(mesh, axis=-1).reshape(-1, 3)
        return triples[triples[:, 0] * triples[:, 1] <= 1.001 * self._fastest(gap)]

    def curve(self, s: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return the sum, up to a constant and a factor."""
        rate, ratio, share = (theta[..., i : i + 1] for i in range(3))
        return share * _unit_fall(s, rate * ratio) + (1 - share) * _unit_fall(s, rate)

    def slopes(self, s: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return the derivatives by rate, ratio and share."""
        rate, ratio, share = theta
        fast = _unit_fall(s, rate * ratio)
        slow = _unit_fall(s, rate)
        faster = _unit_fall_slope(s, rate * ratio)
        slower = _unit_fall_slope(s, rate)
        by_rate = share * ratio * faster + (1 - share) * slower
        return np.stack([by_rate, share * rate * faster, fast - slow], axis=1)

    def _fastest(self, gap: float) -> float:
        return max(1 / (FASTEST * gap), 2 * self.slowest * self.least_ratio)


def _unit_fall(s: np.ndarray, rate: np.ndarray | float) -> np.ndarray:
    """Return an exponential that falls by 1 from s = 0 to s = 1."""
    return np.asarray(np.exp(-rate * s) / -np.expm1(-rate))


def _unit_fall_slope(s: np.ndarray, rate: float) -> np.ndarray:
    """Return the derivative of `_unit_fall` by the rate."""
    fall = -np.expm1(-rate)
    return -np.exp(-rate * s) * (s * fall + np.exp(-rate)) / fall**2


class FarPower(Power):
    """Power laws that no exponential comes near: exponents up to 3."""

    exponents = (0.05, 3.0)


class FarStretched(StretchedExponential):
    """Stretched exponentials that no exponential comes near: β up to 0.8."""

    exponents = (0.1, 0.8)


class FarCompressed(StretchedExponential):
    """Stretched exponentials that start slowly: β of at least 1.25."""

    name = "compressed-exponential"
    exponents = (1.25, 6.0)


SHAPES: dict[str, Shape] = {
    shape.name: shape for shape in (Exponential(), Power(), StretchedExponential())
}
ALTERNATIVES: tuple[Shape, ...] = (
    FarPower(),
    FarStretched(),
    FarCompressed(),
    TwoExponentials(),
)
"""Shapes that differ materially from an exponential."""
