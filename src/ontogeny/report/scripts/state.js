// What the reader has chosen for the whole page: the step, the kind of step axis, the layers, what the
// rows of the chart show, and which of several runs is drawn in ink.

import { DATA, lastNotAbove, nearest } from "./core.js";

export const state = { step: DATA.start, scale: "log", layers: null, chart: DATA.views[0], run: 0 };
const listeners = [];
const indexOfStep = new Map(DATA.steps.map((step, i) => [step, i]));

// What the audit found, under each step that it names.
export const findingsByStep = new Map();
for (const finding of DATA.findings) {
  for (const step of finding.steps.filter((s) => indexOfStep.has(s))) {
    findingsByStep.set(step, [...(findingsByStep.get(step) ?? []), finding.message]);
  }
}

// Call back with what has changed, or only where one of some choices has.
export function listen(callback, ...keys) {
  listeners.push((changed) => {
    if (!keys.length || keys.some((key) => changed.has(key))) callback(changed);
  });
}

export function change(update) {
  const changed = Object.keys(update).filter((key) => state[key] !== update[key]);
  if (!changed.length) return;
  Object.assign(state, update);
  for (const callback of listeners) callback(new Set(changed));
}

export function setStep(index) {
  change({ step: Math.max(0, Math.min(DATA.steps.length - 1, index)) });
}

export function checkpointOf(step) {
  return indexOfStep.get(step) ?? nearest(DATA.steps, step);
}

export function stepNow() {
  return DATA.steps[state.step];
}

// `layers` is null for all, else a set of chip numbers; what belongs to no layer is always shown.
export function layerShown(group) {
  return state.layers === null || group === undefined || group < 0 || state.layers.has(group);
}

export function currentPlace() {
  return placeOfStep(stepNow());
}

export function placeOfStep(step) {
  return DATA.scales[state.scale].at[checkpointOf(step)];
}

export function goToPlace(place) {
  setStep(nearest(DATA.scales[state.scale].at, place));
}

// Where a place lies on the step axis, as a share of its length; and back.
export function shareOfAxis(place) {
  const [low, high] = DATA.scales[state.scale].span;
  return (place - low) / (high - low);
}

export function placeOnAxis(share) {
  const [low, high] = DATA.scales[state.scale].span;
  return low + share * (high - low);
}

// The place on a node's own step axis of the last measured step up to the current one.
export function stepIndex(axis) {
  return lastNotAbove(axis.values, stepNow());
}
