// Words in a figure: titles, labels of lines, the key, colour bars; and how wide they are.

import { range } from "./core.js";
import { plotText, shortened } from "./format.js";
import { plotFont, smallFont } from "./theme.js";

export const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
export const HEAD = 16;

const ruler = document.createElement("canvas").getContext("2d");

export function textWidth(text, size = plotFont()) {
  ruler.font = `${size}px ${FONT}`;
  return ruler.measureText(text).width;
}

export function widest(texts) {
  return Math.max(0, ...texts.map((text) => textWidth(text)));
}

export function note(text, x, y, more = {}) {
  return {
    text: plotText(text),
    x,
    y,
    xref: "paper",
    yref: "paper",
    showarrow: false,
    xanchor: "left",
    yanchor: "middle",
    ...more,
  };
}

export function emptyNote(frame, box) {
  const x = (box.x + box.width / 2) / frame.width;
  return note("not measured", x, 1 - (box.y + box.height / 2) / frame.height, { xanchor: "center" });
}

// The name of the horizontal axis, centred under the panels as far as it is whole there.
export function axisTitle(frame, text) {
  const right = Math.max(...frame.boxes.map((box) => box.x + box.width));
  const half = Math.min(textWidth(text) / 2 + 2, frame.width / 2);
  const middle = Math.max(half, Math.min((frame.boxes[0].x + right) / 2, frame.width - half));
  return note(text, middle / frame.width, 0, {
    xanchor: "center",
    yanchor: "bottom",
  });
}

// What the vertical axis counts, on the line above all panels.
export function headLine(text, palette) {
  return note(text, 0, 1, { yanchor: "top", font: { size: smallFont(), color: palette.base["ink-3"] } });
}

// Right ends of lines with the heights of their labels, pushed apart so that none covers another.
export function labelledEnds(lines, toY, height) {
  const ends = lines
    .map((line) => ({ line, value: line.ys.findLast(Number.isFinite) }))
    .filter((end) => end.value !== undefined)
    .map((end) => ({ ...end, from: toY(end.value) }))
    .sort((a, b) => a.from - b.from);
  const heights = ends.map((end) => end.from);
  return spread(heights, 13, height).map((to, k) => ({ ...ends[k], to }));
}

export function endLabel(end, frame, box) {
  const x = (box.x + box.width + 20) / frame.width;
  const chosen = end.line.run === undefined ? {} : { name: String(end.line.run), captureevents: true };
  return note(shortened(end.line.label, 18), x, 1 - (box.y + end.to) / frame.height, chosen);
}

// From the end of a line to its label, in the line's own colour.
export function leader(end, frame, box) {
  const point = (x, y) => `${(box.x + box.width + x) / frame.width},${1 - (box.y + y) / frame.height}`;
  return {
    type: "path",
    xref: "paper",
    yref: "paper",
    line: { color: end.line.colour, width: 1.3 },
    path: `M${point(2, end.from)}L${point(8, end.to)}L${point(18, end.to)}`,
  };
}

// Sorted heights moved apart to at least `gap`, none below `bottom`.
export function spread(heights, gap, bottom) {
  const moved = [];
  heights.forEach((height, k) => moved.push(k ? Math.max(height, moved[k - 1] + gap) : height));
  for (let k = moved.length - 1, most = bottom; k >= 0; k -= 1, most = moved[k + 1] - gap)
    moved[k] = Math.min(moved[k], most);
  return moved;
}

// The key: on the lines above all panels, a sample of each grey band or line with its name, behind
// what the values count. No name stands on a line of the picture.
const KEY = { sample: 20, gap: 16 };

export function layKey(items, words, width) {
  const right = (x, label) => x + KEY.sample + textWidth(label, smallFont());
  let [x, line] = [words ? textWidth(words, smallFont()) + KEY.gap : 0, 0];
  return items.map((item) => {
    if (x && right(x, item.label) > width) [x, line] = [0, line + 1];
    const spot = { ...item, x, line };
    x = right(x, item.label) + KEY.gap;
    return spot;
  });
}

export function keyWords(spot, frame, palette) {
  const font = { size: smallFont(), color: palette.base["ink-2"] };
  return note(spot.label, (spot.x + KEY.sample) / frame.width, 1 - (HEAD * spot.line) / frame.height, { yanchor: "top", font });
}

// A band as a patch, a line as a line, in the manner in which the picture draws it.
export function keySample({ x, line, look }, frame) {
  const [left, right] = [x, x + KEY.sample - 6].map((at) => at / frame.width);
  const [top, bottom] = (look.fill ? [3, 12] : [8, 8]).map((y) => 1 - (HEAD * line + y) / frame.height);
  const shared = { xref: "paper", yref: "paper", x0: left, x1: right, y0: top, y1: bottom, line: look.line };
  return look.fill ? { ...shared, type: "rect", fillcolor: look.fill } : { ...shared, type: "line" };
}

export const BAR = { gap: 12, thickness: 8, room: 62 };

function barLabels(names, width) {
  return names.map((name) => shortened(name, width < 500 ? 10 : 22));
}

export function barTitleFits(title) {
  return textWidth(title, smallFont()) <= BAR.room - BAR.gap + 4;
}

export function barRoom(names, width) {
  return Math.max(BAR.room, BAR.gap + BAR.thickness + 8 + widest(barLabels(names, width)));
}

// A colour bar for more series than can be labelled.
export function seriesBar(names, looks, frame, palette, title) {
  const count = names.length;
  const every = Math.ceil(count / 8);
  const ticks = range(count).filter((k) => k % every === 0 || k === count - 1);
  const labels = barLabels(names, frame.width);
  const bar = { title, tickvals: ticks, ticktext: ticks.map((k) => plotText(labels[k])) };
  const colorscale = looks.flatMap((colour, k) => [k, k + 1].map((edge) => [edge / count, colour]));
  return barTrace([-0.5, count - 0.5], colorscale, colourBar(frame, palette, bar));
}

// A trace without a point, for its colour bar.
export function barTrace([cmin, cmax], colorscale, colorbar) {
  const marker = { color: [cmin], cmin, cmax, colorscale, showscale: true, colorbar };
  return { type: "scatter", mode: "markers", x: [null], y: [null], hoverinfo: "skip", meta: { part: "bar" }, marker };
}

export function colourBar(frame, palette, more) {
  const box = frame.boxes[0];
  const { title, ...rest } = more;
  return {
    thickness: BAR.thickness,
    thicknessmode: "pixels",
    len: Math.max(box.height, 90),
    lenmode: "pixels",
    outlinewidth: 0,
    xpad: 0,
    ypad: 0,
    x: (frame.width - frame.right + BAR.gap) / frame.width,
    xanchor: "left",
    y: 1 - box.y / frame.height,
    yanchor: "top",
    ticks: "",
    tickfont: { size: smallFont(), color: palette.base["ink-2"] },
    title: { text: plotText(title), side: "top", font: { size: smallFont() } },
    ...rest,
  };
}
