// The colours of the reader's light or dark setting; paper is always light.

import { DATA, range } from "./core.js";

export const darkQuery = matchMedia("screen and (prefers-color-scheme: dark)");
export const paper = { printing: false, column: 349, width: 718 }; // pixels

export function colours() {
  return DATA.palettes[darkQuery.matches && !paper.printing ? "dark" : "light"];
}

// Size of the words in figures, in pixels.
export function plotFont() {
  return paper.printing ? 9 : 11.5;
}

// Size of the words that stand beside: names of bands and of panels, ticks of colour bars.
export function smallFont() {
  return paper.printing ? 8.5 : 11;
}

export function withAlpha(hex, alpha) {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  return `rgba(${r},${g},${b},${alpha})`;
}

export function rampAt(ramp, share) {
  return ramp[Math.round(share * (ramp.length - 1))];
}

export function colourScale(ramp) {
  return ramp.map((colour, k) => [k / (ramp.length - 1), colour]);
}

// Lines of layers take the layers' colours; several of one layer differ in width.
const WIDTHS = [1.7, 1, 2.6, 0.7];

export function seriesStyles(axis, palette) {
  if (axis.group) {
    const seen = {};
    return axis.group.map((group) => {
      seen[group] = (seen[group] ?? -1) + 1;
      return { colour: palette.layers[group] ?? palette.base.ink, width: WIDTHS[seen[group] % WIDTHS.length] };
    });
  }
  const last = axis.values.length - 1;
  if (!last) return [{ colour: palette.base.ink }];
  return range(last + 1).map((i) => ({ colour: rampAt(palette.marks, i / last) }));
}
