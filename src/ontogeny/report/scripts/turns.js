// Where a curve turns: the line that goes furthest past both of its ends, in a sentence.

import { capital } from "./concepts.js";
import { extent, findAll, say } from "./core.js";
import { formatNumber, formatStep } from "./format.js";
import { halfWidth } from "./view.js";

const TURN = 0.15; // of the height of the figure; less looks like noise

export function turnWords(picture) {
  const turns = picture.panels.flatMap((panel) => panel.lines.map((line) => turnOf(line, panel, picture)));
  const [most, ...others] = turns.filter(Boolean).sort((a, b) => b.depth - a.depth);
  if (!most) return "";
  const whose = capital([most.panel, most.label].filter(Boolean).join(", ") || "it");
  const several = turns.length === 2 ? "other turns" : "others turn";
  const also = others.length ? say(several, { some: others.length, all: turns.length - 1 }) : "";
  const [value, last] = [most.value, most.last].map((each) => formatNumber(each, most.digit));
  return say(most.low ? "lowest" : "highest", { Whose: whose, value, at: most.when, last, also });
}

// The deepest turn of a line: further than its own interval from both ends, and of some height.
function turnOf({ ys, ends, kept, label, other }, panel, picture) {
  const known = kept.filter((i) => Number.isFinite(ys[i]));
  if (other || known.length < 5) return null;
  const [low, high] = extent(picture.panels.flatMap((each) => each.lines.map((line) => line.ys)));
  const [first, last] = [ys[known[0]], ys[known.at(-1)]];
  const sides = [true, false].map((down) => {
    const at = known.reduce((a, b) => ((down ? ys[b] < ys[a] : ys[b] > ys[a]) ? b : a));
    return { at, low: down, depth: Math.min(Math.abs(ys[at] - first), Math.abs(ys[at] - last)) };
  });
  const turn = sides[0].depth > sides[1].depth ? sides[0] : sides[1];
  const half = ends ? halfWidth(ends[turn.at]) : 0;
  if (!(turn.depth > Math.max(TURN * (high - low), 2 * half))) return null;
  const near = known.filter((i) => Math.abs(ys[i] - ys[turn.at]) <= Math.max(half, 0.02 * (high - low)));
  const [from, to] = [near[0], near.at(-1)].map((i) => formatStep(picture.xAxis.values[i]));
  const when = `${formatStep(picture.xAxis.values[turn.at])}${from === to ? "" : ` (${from}–${to})`}`;
  return { ...turn, panel: panel.title, label, value: ys[turn.at], last, when, digit: 0.1 * turn.depth };
}

// Pointing at a line lifts it in all panels and fades the rest.
export function liftLine(plot, label) {
  for (const trace of findAll(".scatterlayer .trace", plot)) {
    const meta = trace.__data__?.[0]?.trace?.meta;
    if (meta?.label) trace.style.opacity = !label || meta.label === label ? "" : 0.18;
  }
}
