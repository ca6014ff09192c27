// What the example text shows now, and what its tokens have of it.

import { DATA, at, lastNotAbove, say } from "./core.js";
import { stepNow } from "./state.js";

const TINT = 0.62;
// What is shown: a measure, one option of its menu, a text, and of each text a token.
export const example = { measure: 0, text: 0, chosen: [], tokens: [] };

export function measureNow() {
  return DATA.example.measures[example.measure];
}

export function exampleStep() {
  return lastNotAbove(measureNow().steps, stepNow());
}

// The value of a token in parts of its unit; null where there is none.
export function valueOf(t, text, place) {
  const { option, values: array } = measureNow();
  return orNull(at(array, { d0: option, d1: t, d2: text, d3: place }));
}

// What its value is read against: guesses, equal attention, or the code of all checkpoints.
export function referenceOf(text, place) {
  const { option, references } = measureNow();
  if (!references) return null;
  return orNull(at(references, { d0: Math.min(option, references.shape[0] - 1), d1: text, d2: place }));
}

export function orNull(value) {
  return value === DATA.example.missing ? null : value;
}

export function hasValue(text, place) {
  return measureNow().steps.some((_, t) => valueOf(t, text, place) !== null);
}

export function tintOf(value) {
  const { bottom, top, parts } = measureNow();
  if (value === null) return "0";
  return (TINT * Math.max(0, Math.min(1, (value / parts - bottom) / (top - bottom)))).toFixed(3);
}

export function meanWords(t, text) {
  const { means, costs, told, beside, option } = measureNow();
  if (!example.tokens[text].some((_, place) => hasValue(text, place))) return say("not kept");
  const mean = means[option][Math.min(text, means[option].length - 1)][t];
  if (mean === null) return say("not measured here");
  const cost = costs?.[text] ?? null;
  const against = beside && cost !== null ? beside.replace("{}", cost.toFixed(2)) : "";
  return `${told.replace("{}", mean.toFixed(2))}${against}.`;
}
