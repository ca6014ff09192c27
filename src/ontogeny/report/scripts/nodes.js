// A node of the result, as its figures read it; of several runs they are one more axis.

import { DATA } from "./core.js";

export const RUN = "run";

export function hasControls({ runs }) {
  return Object.keys(runs.controls).length > 0;
}

// The node of a figure; its runs are named there as the figure names them.
export function nodeOf(figure) {
  const node = DATA.nodes[figure.node];
  if (!figure.runs) return node;
  const { names } = figure.runs;
  return { ...node, axes: { ...node.axes, [RUN]: { kind: "category", values: names, short: names } } };
}
