// Points in a plane or in space, coloured by step, number or kind.

import { BAR, barRoom, barTitleFits, barTrace, colourBar, emptyNote, seriesBar } from "./annotations.js";
import { DATA, at, extent, pad, range, say, textAt, values } from "./core.js";
import { formatLabel, formatNumber, fullLabel, shortened } from "./format.js";
import { placeNames } from "./names.js";
import { axisRoom, panelNote, tickLabels, valueAxis } from "./panels.js";
import { Picture } from "./picture.js";
import { projection, spaceAxes } from "./space.js";
import { layerShown, state, stepIndex } from "./state.js";
import { colourScale, paper, rampAt, smallFont } from "./theme.js";

const NAMED_POINTS = 12; // no more points than this have their names beside them
const SYMBOLS = ["circle", "diamond", "square", "triangle-up", "cross", "x"];

export class ScatterPicture extends Picture {
  read() {
    const { figure, view } = this;
    const { axes } = view.node;
    [this.y, this.z, this.label] = ["y", "z", "label"].map((role) => view.array(figure[role]));
    this.colour = figure.colour_dimension ? null : view.array(figure.colour);
    this.space = this.z !== null;
    this.dims = figure.points;
    const lengths = this.dims.map((d) => axes[d].values.length);
    const all = figure.drawn ?? range(lengths.reduce((a, b) => a * b, 1));
    const places = all.map((flat) => this.indexOf(flat, lengths));
    this.scale = this.readScale();
    for (const panel of this.panels) {
      const points = places
        .filter((place) => this.dims.every((d) => !axes[d].group || layerShown(axes[d].group[place[d]])))
        .map((place) => this.readPoint({ ...panel.index, ...place }));
      panel.points = points.filter((point) => point.where.every(Number.isFinite));
      panel.left = points.length - panel.points.length;
    }
    this.spans = [0, 1, ...(this.space ? [2] : [])].map((k) => this.findSpan(k));
    if (this.space) this.placePoints();
  }

  indexOf(flat, lengths) {
    const index = {};
    for (let k = this.dims.length - 1, rest = flat; k >= 0; rest = Math.floor(rest / lengths[k]), k -= 1)
      index[this.dims[k]] = rest % lengths[k];
    return index;
  }

  // A point in the units of the axes: logarithms on a logarithmic one.
  readPoint(index) {
    const { x_scale: xScale, y_scale: yScale } = this.figure;
    const numbers = [this.view.value(index), at(this.y, index)];
    if (this.space) numbers.push(at(this.z, index));
    const log = (value, scale) => (scale === "log" && !this.space ? Math.log10(value > 0 ? value : NaN) : value);
    const where = [log(numbers[0], xScale), log(numbers[1], yScale), ...numbers.slice(2)];
    return { index, values: numbers, where, u: where[0], v: where[1], paint: this.scale.paint(index) };
  }

  findSpan(k) {
    const [low, high] = extent(this.panels.map((panel) => panel.points.map((point) => point.where[k])));
    if (low > high) return [0, 1];
    return this.space ? [low, high] : pad(low, high, 0.06);
  }

  placePoints() {
    const place = projection(this.spans);
    this.edges = spaceAxes(this.spans, place);
    for (const panel of this.panels) {
      for (const point of panel.points) Object.assign(point, place(point.where));
      panel.points.sort((a, b) => b.depth - a.depth);
    }
  }

  // What the colours say: places on the axis of steps, numbers, or kinds.
  readScale() {
    const { figure, palette, view } = this;
    const dimension = figure.colour_dimension;
    const axis = dimension ? view.node.axes[dimension] : null;
    const ramp = palette.marks;
    if (axis?.kind === "step")
      return { kind: "step", ramp, paint: (index) => axis[state.scale].at[index[dimension]], span: [0, 1] };
    if (axis?.kind === "category") {
      const own = axis.group ? axis.group.map((group) => palette.layers[group] ?? palette.base.ink) : null;
      const kinds = this.kinds(axis.short, (index) => index[dimension], own);
      return { ...kinds, full: axis.values.map(String) };
    }
    if (this.colour?.texts) return this.kinds(this.colour.texts, (index) => at(this.colour, index));
    if (!this.colour && !axis) return { kind: "none", paint: () => 0 };
    const paint = axis ? (index) => axis.values[index[dimension]] : (index) => at(this.colour, index);
    const known = axis ? axis.values : values(this.colour);
    const [low, high] = extent([known]);
    return { kind: "number", ramp, paint, span: low < high ? [low, high] : [low - 0.5, low + 0.5] };
  }

  kinds(names, paint, own = null) {
    const last = Math.max(names.length - 1, 1);
    const looks = own ?? names.map((_, k) => rampAt(this.palette.marks, k / last));
    return { kind: "kinds", names: names.map((name) => name || "none"), looks, paint };
  }

  sizes() {
    const count = this.panels.length;
    const { kind, names } = this.scale;
    const bar = kind === "kinds" ? barRoom(names, this.view.width) : BAR.room;
    return {
      left: this.space ? 12 : 58,
      right: kind === "none" ? 16 : 12 + bar,
      bottom: this.space ? 12 : axisRoom(),
      between: 10,
      minimum: 200,
      panel: paper.printing ? 170 : this.space ? (count > 1 ? 260 : 420) : count > 1 ? 200 : 320,
    };
  }

  // In space both axes of the picture count the same unit, and are not drawn.
  spaceLayout(box) {
    const unit = 1.5 / Math.min(box.width, box.height);
    const bare = { showticklabels: false, showgrid: false, zeroline: false, ticks: "", fixedrange: true };
    return [box.width, box.height].map((length) => ({ ...bare, range: [-unit * length, unit * length] }));
  }

  xLayout(box) {
    if (this.space) return this.spaceLayout(box)[0];
    const { x_scale: xScale } = this.figure;
    const axis = valueAxis(this.palette, this.spans[0], xScale);
    return { ...axis, showticklabels: box.bottom, nticks: Math.max(2, Math.floor(box.width / 70)) };
  }

  yLayout(box) {
    return this.space
      ? this.spaceLayout(box)[1]
      : valueAxis(this.palette, this.spans[1], this.figure.y_scale);
  }

  xWords() {
    return this.space ? "" : this.view.axisWords();
  }

  // What the colours tell apart: over the colour bar, or where that is too narrow on the line above.
  get colourName() {
    const { figure } = this;
    return figure.colour_dimension ?? figure.named[figure.colour] ?? "";
  }

  headWords() {
    const left = this.panels.reduce((sum, panel) => sum + panel.left, 0);
    const words = this.space ? [] : [this.figure.named[this.figure.y]];
    if (!barTitleFits(this.colourName)) words.push(`colour: ${this.colourName}`);
    if (left) words.push(say("not drawn", { left: left.toLocaleString("en-US") }));
    return words.join("   ·   ");
  }

  panelTraces(panel) {
    const traces = [this.pointTrace(panel)];
    const now = this.nowTrace(panel);
    if (now) traces.push(now);
    if (this.space) traces.unshift(...this.edges.map((edge) => this.edgeTrace(edge)));
    return traces;
  }

  edgeTrace({ from, to }) {
    const line = { color: this.palette.base["ink-3"], width: 1 };
    return { type: "scatter", mode: "lines", x: [from.u, to.u], y: [from.v, to.v], line, meta: { part: "axis" } };
  }

  pointTrace(panel) {
    const { points } = panel;
    const { kind, looks } = this.scale;
    const size = points.length <= 60 ? 8 : points.length <= 400 ? 6 : 4;
    const many = kind === "kinds" && looks.length <= SYMBOLS.length && points.length <= 400;
    return {
      ...this.dots(points),
      cliponaxis: false,
      meta: { part: "points", facet: panel.title },
      marker: {
        size,
        opacity: points.length <= 400 ? 0.9 : 0.6,
        symbol: many ? points.map((point) => SYMBOLS[point.paint]) : "circle",
        line: { width: 0 },
        ...this.markerColours(points),
      },
    };
  }

  markerColours(points) {
    const { kind, looks, ramp, span } = this.scale;
    if (kind === "none") return { color: this.palette.base.ink };
    if (kind === "kinds") return { color: points.map((point) => looks[point.paint]) };
    return {
      color: points.map((point) => point.paint),
      cmin: span[0],
      cmax: span[1],
      colorscale: colourScale(ramp),
    };
  }

  dots(points) {
    const { x_scale: xScale, y_scale: yScale } = this.figure;
    const [x, y] = [points.map(({ u }) => this.raw(u, xScale)), points.map(({ v }) => this.raw(v, yScale))];
    return { type: "scatter", mode: "markers", x, y };
  }

  raw(value, scale) {
    return scale === "log" && !this.space ? 10 ** value : value;
  }

  // Points of the current step have a ring in the colour of the step.
  nowTrace(panel) {
    const dimension = this.dims.find((d) => this.view.node.axes[d].kind === "step");
    if (!dimension || paper.printing) return null;
    const now = stepIndex(this.view.node.axes[dimension]);
    const points = panel.points.filter((point) => point.index[dimension] === now);
    return {
      ...this.dots(points),
      meta: { part: "now" },
      marker: { symbol: "circle-open", size: 9, color: this.palette.base.accent, line: { width: 1.5 } },
    };
  }

  panelWords(panel, box, i) {
    const words = panel.points.length ? this.pointNames(panel, box, i) : [emptyNote(this.frame, box)];
    if (!this.space || !panel.points.length) return words;
    const names = [this.view.axisWords(), this.figure.named[this.figure.y], this.figure.named[this.figure.z]];
    const font = { size: smallFont(), color: this.palette.base["ink-3"] };
    return this.edges.map(({ to }, k) => {
      const xanchor = k === 2 ? "center" : to.u > 0 === box.width > 460 ? "left" : "right";
      const yanchor = k === 2 ? "bottom" : box.width > 460 ? "middle" : "top";
      return panelNote(i, shortened(names[k], 24), to.u, to.v, { xanchor, yanchor, font });
    });
  }

  // Names of a few points, each beside its own where it covers no other; hover tells the rest.
  pointNames(panel, box, i) {
    if (!this.label || panel.points.length > NAMED_POINTS) return [];
    const [xs, ys] = this.space ? this.spaceLayout(box).map((axis) => axis.range) : this.spans;
    const spots = panel.points.map((point) => ({
      x: ((point.u - xs[0]) / (xs[1] - xs[0])) * box.width,
      y: ((ys[1] - point.v) / (ys[1] - ys[0])) * box.height,
    }));
    const names = panel.points.map((point) => shortened(this.nameOf(point), 18));
    const font = { size: smallFont(), color: this.palette.base["ink-2"] };
    return placeNames(names, spots, box.width).map(({ k, dx, dy }) => {
      const { u, v } = panel.points[k];
      return panelNote(i, names[k], u, v, { xshift: dx, yshift: -dy, xanchor: "center", font });
    });
  }

  finish() {
    if (this.space) this.layout.dragmode = false;
    const { kind, names, looks, ramp, span } = this.scale;
    const { frame, palette } = this;
    const title = this.colourName;
    const over = barTitleFits(title) ? title : "";
    if (kind === "kinds") {
      [this.barTitle, this.barFull] = [title, this.scale.full ?? names];
      this.traces.push(seriesBar(names, looks, frame, palette, over));
    }
    if (kind !== "step" && kind !== "number") return;
    const bar = { title: over, nticks: 5, separatethousands: true };
    if (kind === "step") {
      const labels = [...tickLabels(DATA.scales[state.scale].ticks, Math.max(frame.boxes[0].height, 90) * 2)];
      Object.assign(bar, { tickvals: labels.map((t) => t[0]), ticktext: labels.map((t) => t[1]) });
    }
    this.traces.push(barTrace(span, colourScale(ramp), colourBar(frame, palette, bar)));
  }

  nameOf(point, written = formatLabel) {
    if (this.label) return textAt(this.label, point.index);
    return this.dims
      .filter((d) => this.view.node.axes[d].kind !== "step")
      .map((d) => written(this.view.node.axes[d], point.index[d]))
      .join(" · ");
  }

  hover(number, spot) {
    const panel = this.panels[number];
    const box = this.frame.boxes[number];
    const [xs, ys] = this.space ? this.spaceLayout(box).map((axis) => axis.range) : this.spans;
    const [left, right] = spot.span;
    const gap = (point) =>
      Math.hypot(
        ((point.u - spot.place) / (right - left)) * box.width,
        ((ys[1] - point.v) / (ys[1] - ys[0])) * box.height - spot.y,
      );
    if (!panel.points.length || !xs) return null;
    const point = panel.points.reduce((a, b) => (gap(b) <= gap(a) ? b : a));
    if (gap(point) > 24) return null;
    const names = [this.view.axisWords(), this.figure.named[this.figure.y], this.figure.named[this.figure.z]];
    const told = this.view.describe(point.index, [panel.title, this.nameOf(point, fullLabel)], point.values[0], null);
    const rest = point.values.map((value, k) => `${names[k]}: ${formatNumber(value)}`);
    return { head: told.head, value: rest[0], rest: [...rest.slice(1), this.colourFact(point)], index: point.index };
  }

  colourFact({ paint }) {
    const { kind, names } = this.scale;
    const known = kind === "kinds" ? names[paint] : kind === "number" && formatNumber(paint);
    return this.colour && known ? `${this.figure.named[this.figure.colour]}: ${known}` : null;
  }
}
