// Small multiples: where panels lie in a figure, and their axes. All lengths are pixels.

import { FONT, note, textWidth, widest } from "./annotations.js";
import { DATA, range } from "./core.js";
import { plotText, shortened } from "./format.js";
import { findingsByStep, placeOfStep, state } from "./state.js";
import { paper, plotFont } from "./theme.js";

export function axisRoom() {
  return paper.printing ? 28 : 42;
}

// Lay out `count` panels; `size` gives margins (left, right, top, bottom), gap and panel height.
// `size.head` is the room above all panels, for the unit of the values and the key.
export function layPanels(count, width, size) {
  const room = width - size.left - size.right;
  const most = Math.max(1, Math.floor((room + size.gap) / (size.minimum + size.gap)));
  const rows = Math.ceil(count / Math.min(count, most));
  const columns = Math.ceil(count / rows);
  const panelWidth = (room - (columns - 1) * size.gap) / columns;
  const pitch = size.top + size.panel + (rows > 1 ? size.between : 0);
  const boxes = range(count).map((i) => ({
    column: i % columns,
    row: Math.floor(i / columns),
    last: i % columns === columns - 1 || i === count - 1,
    bottom: i + columns >= count,
    x: size.left + (i % columns) * (panelWidth + size.gap),
    y: size.head + Math.floor(i / columns) * pitch + size.top,
    width: panelWidth,
    height: size.panel,
  }));
  const height = size.head + (rows - 1) * pitch + size.top + size.panel + size.bottom;
  return { boxes, width, height, right: size.right };
}

export function axisName(letter, i) {
  return letter + (i ? i + 1 : "");
}

// A layout without margins: axes lie where the boxes say, ticks in the room around them.
export function plotLayout(frame, palette) {
  return {
    width: frame.width,
    height: frame.height,
    margin: { l: 0, r: 0, t: 0, b: 0 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: FONT, size: plotFont(), color: palette.base["ink-2"] },
    showlegend: false,
    hovermode: false,
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    barmode: "overlay",
    annotations: [],
    shapes: [],
  };
}

// Words at a place of panel `i`, in the units of its axes.
export function panelNote(i, text, x, y, more) {
  return note(text, x, y, { xref: axisName("x", i), yref: axisName("y", i), ...more });
}

export function placeAxes(layout, frame, i, xAxis, yAxis) {
  const box = frame.boxes[i];
  layout[axisName("xaxis", i)] = {
    domain: [box.x / frame.width, (box.x + box.width) / frame.width],
    anchor: axisName("y", i),
    matches: i ? "x" : undefined,
    ...xAxis,
  };
  layout[axisName("yaxis", i)] = {
    domain: [1 - (box.y + box.height) / frame.height, 1 - box.y / frame.height],
    anchor: axisName("x", i),
    fixedrange: true,
    ...yAxis,
    showticklabels: box.column === 0 && yAxis.showticklabels !== false,
  };
}

export function baseAxis(palette) {
  return {
    zeroline: false,
    showgrid: false,
    showline: true,
    linecolor: palette.base.line,
    tickcolor: palette.base.line,
    ticks: "outside",
    ticklen: 4,
    automargin: false,
  };
}

export function valueAxis(palette, span, type) {
  return {
    ...baseAxis(palette),
    type,
    range: span,
    showgrid: true,
    showline: false,
    ticks: "",
    gridcolor: palette.base["line-2"],
    nticks: 5,
    separatethousands: true,
    exponentformat: "power",
    ...(type === "log" ? { dtick: span[1] - span[0] > 1.2 ? 1 : "D2" } : {}),
  };
}

// Labels are kept in the order of their rank as long as they do not touch.
export function tickLabels(ticks, length) {
  const kept = [];
  for (const [place, label] of ticks.filter((t) => t[2] < 9).sort((a, b) => a[2] - b[2])) {
    const half = textWidth(label) / 2;
    if (kept.every((k) => Math.abs(k.place - place) * length >= half + k.half + 8))
      kept.push({ place, label, half });
  }
  return new Map(kept.map((k) => [k.place, k.label]));
}

// The axis of a dimension: steps on the page's scale, numbers as they are, labels by their place.
export function dimensionAxis(axis, palette, length, labelled) {
  const shared = { ...baseAxis(palette), showticklabels: labelled };
  if (axis.kind === "step") {
    const scale = DATA.scales[state.scale];
    const labels = tickLabels(scale.ticks, length);
    return {
      ...shared,
      range: scale.span,
      tickvals: scale.ticks.map((t) => t[0]),
      ticktext: scale.ticks.map((t) => labels.get(t[0]) ?? ""),
    };
  }
  if (axis.kind === "number")
    return {
      ...shared,
      nticks: Math.max(2, Math.floor(length / 60)),
      separatethousands: true,
      autorange: falls(axis) ? "reversed" : true, // a loss falls while time goes on
    };
  const names = axis.short.map((name) => shortened(name, 14));
  const every = Math.ceil((axis.values.length * (widest(names) + 10)) / length);
  const shown = range(axis.values.length).filter((i) => i % every === 0);
  return {
    ...shared,
    range: [-0.5, axis.values.length - 0.5],
    tickvals: shown,
    ticktext: shown.map((i) => plotText(names[i])),
  };
}

function falls(axis) {
  return axis.values.length > 1 && axis.values[0] > axis.values[axis.values.length - 1];
}

export function dimensionWords(axis, name) {
  return axis.kind === "step" ? DATA.clock : name.replaceAll("_", " ");
}

export function dimensionPlaces(axis) {
  if (axis.kind === "step") return axis[state.scale].at;
  return axis.kind === "number" ? axis.values : range(axis.values.length);
}

export function dimensionEdges(axis) {
  if (axis.kind === "step") return axis[state.scale].edges;
  return range(axis.values.length).map((i) => [i - 0.5, i + 0.5]);
}

// A shape in panel `i`: from place to place across, and from the lower to the upper edge.
export function upright(i, type, [x0, x1], line, more = {}) {
  return { type, xref: axisName("x", i), yref: `${axisName("y", i)} domain`, x0, x1, y0: 0, y1: 1, line, ...more };
}

// On a step axis: regime boundaries, the audit's findings, and the break after step 0.
export function stepMarks(i, palette) {
  const scale = DATA.scales[state.scale];
  const line = { color: palette.base["ink-3"], width: 1 };
  const at = (xanchor, path, look, more) =>
    upright(i, "path", [], look, { xsizemode: "pixel", ysizemode: "pixel", yanchor: 0, xanchor, path, ...more });
  const marks = DATA.boundaries.map(({ [state.scale]: [place] }) => upright(i, "line", [place, place], { ...line, dash: "dot" }));
  for (const step of findingsByStep.keys()) {
    const look = { fillcolor: palette.base.warning };
    marks.push(at(placeOfStep(step), "M-4,0L4,0L0,7Z", { width: 0 }, look));
  }
  if (scale.broken) marks.push(at(0.045, "M-4,-4L0,4M0,-4L4,4", line));
  return marks;
}
