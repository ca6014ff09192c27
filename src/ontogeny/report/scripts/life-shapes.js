// Sizes and paths that the parts of the first picture share.

import { range } from "./core.js";

export const LIFE = { loss: 108, alone: 200, levels: 12 }; // heights in pixels, of the loss over lines and alone
export const PICTURE_NAMES = 156; // pixels left of the step axis, for the names of life lines

export function linePath(xs, numbers, yOf) {
  const known = (i) => (numbers[i] ?? null) !== null;
  const move = (x, i) => `${known(i - 1) ? "L" : "M"}${x.toFixed(1)} ${yOf(numbers[i]).toFixed(1)}`;
  return xs.map((x, i) => (known(i) ? move(x, i) : "")).join("");
}

export function bandPath(xs, [lower, upper], yOf) {
  const known = range(xs.length).filter((i) => lower[i] !== null && upper[i] !== null);
  if (!known.length) return "";
  const point = (side) => (i) => `${xs[i].toFixed(1)} ${yOf(side[i]).toFixed(1)}`;
  return `M${known.map(point(upper)).join("L")}L${known.reverse().map(point(lower)).join("L")}Z`;
}
