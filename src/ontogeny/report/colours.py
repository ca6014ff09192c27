"""The few colours of the page, each with one meaning, for light and for dark surfaces.

Data is cool (two ramps, even in OKLab lightness, so that both survive colour blindness and black
and white print), marks are hot: one accent for the current step, one colour for the audit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from importlib import resources

Palette = dict[str, str]
Stops = Sequence[Sequence[float]]

LEVELS = 24  # number of shades in which the developmental chart draws progress

# Least contrast of lines and points with the paper (WCAG 2.2, success criterion 1.4.11).
MARK_CONTRAST = 3.0

_COLOURS = json.loads(
    resources.files(__package__).joinpath("static/colours.json").read_text()
)

# Plain colours by name, for light and for dark surfaces.
BASE: dict[str, Palette] = _COLOURS["base"]

# The ramp of values as (lightness, chroma, hue in degrees) in OKLCH.
PROGRESS: dict[str, Stops] = _COLOURS["progress"]

# The ramp of layers, by depth.
LAYERS: dict[str, Stops] = _COLOURS["layers"]


def _hex(lightness: float, chroma: float, hue: float) -> str:
    """OKLCH to sRGB (Ottosson, 2020, "A perceptual color space for image processing")."""
    a = chroma * math.cos(math.radians(hue))
    b = chroma * math.sin(math.radians(hue))
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
    channels = (min(max(c, 0.0), 1.0) for c in linear)
    encoded = (
        12.92 * c if c <= 0.0031308 else 1.055 * c ** (1 / 2.4) - 0.055
        for c in channels
    )
    return "#" + "".join(f"{round(255 * c):02x}" for c in encoded)


def ramp(stops: Stops, count: int) -> list[str]:
    """Return `count` colours evenly spaced along OKLCH stops, as hex strings.

    Examples
    --------
    >>> ramp([(0.0, 0.0, 0.0), (1.0, 0.0, 0.0)], 3)
    ['#000000', '#636363', '#ffffff']
    """
    colours = []
    for i in range(count):
        at = (len(stops) - 1) * (i / (count - 1) if count > 1 else 0.5)
        k = min(int(at), len(stops) - 2)
        weight = at - k
        mixed = (
            (1 - weight) * p + weight * q
            for p, q in zip(stops[k], stops[k + 1], strict=True)
        )
        colours.append(_hex(*mixed))
    return colours


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours after WCAG 2.2, between 1 and 21.

    Examples
    --------
    >>> contrast("#000000", "#ffffff"), round(contrast("#767676", "#ffffff"), 2)
    (21.0, 4.54)
    """
    low, high = sorted(map(_luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    """Return the relative luminance of a hex colour."""
    encoded = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in encoded
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def ramp_at(colours: Sequence[str], share: float) -> str:
    """Return the colour of a ramp at a share of its length between 0 and 1.

    Examples
    --------
    >>> ramp_at(["#000000", "#636363", "#ffffff"], 0.5)
    '#636363'
    """
    return colours[round(share * (len(colours) - 1))]


def palettes(layers: int) -> dict[str, dict[str, object]]:
    """Return for light and dark: base colours, `layers` layer colours, and the ramp of values.

    ``marks`` is the part of that ramp for lines and points, which must stand out from the paper, and
    ``diverging`` what stands in its place around a middle: greys below it.
    """
    return {
        mode: {
            "base": BASE[mode],
            "layers": ramp(LAYERS[mode], max(layers, 1)),
            "values": ramp(PROGRESS[mode], LEVELS),
            "diverging": [
                *reversed(
                    ramp([(stop[0], 0.0, 0.0) for stop in PROGRESS[mode]], LEVELS)
                ),
                *ramp(PROGRESS[mode], LEVELS),
            ],
            "marks": [
                colour
                for colour in ramp(PROGRESS[mode], 2 * LEVELS)
                if contrast(colour, BASE[mode]["paper"]) >= MARK_CONTRAST
            ],
        }
        for mode in ("light", "dark")
    }
