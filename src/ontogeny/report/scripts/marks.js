// A forest plot: rows with a mark for each run. Marks of one row lie a little apart.

import { textWidth } from "./annotations.js";
import { DATA, at, extent, nearest, pad, range } from "./core.js";
import { formatNumber, fullLabel, shortened } from "./format.js";
import { dimensionAxis, dimensionWords } from "./panels.js";
import { RowsPicture } from "./rows.js";
import { state } from "./state.js";

const MARK_SYMBOLS = ["circle", "square", "diamond", "triangle-up", "cross", "star"];
const MARK_SIGNS = ["●", "■", "◆", "▲", "✚", "★"];

export class MarksPicture extends RowsPicture {
  read() {
    const { figure } = this;
    this.onSteps = figure.x_scale === "step";
    this.xAxis = this.onSteps ? { kind: "step" } : null;
    this.readRows(44);
    this.seriesAxis = this.axis("series");
    const count = this.seriesAxis ? this.seriesAxis.values.length : 1;
    this.spread = range(count).map((k) => (k - (count - 1) / 2) * Math.min(0.2, 0.7 / count));
    for (const panel of this.panels) {
      panel.marks = this.shown.flatMap((s, row) =>
        range(count).map((k) => this.readMark({ ...panel.index, [figure.axes.rows]: s }, row, k)),
      );
    }
    this.span = this.findSpan();
  }

  readMark(index, row, k) {
    const { figure, view } = this;
    const where = figure.axes.series ? { ...index, [figure.axes.series]: k } : index;
    const placed = (name) =>
      this.onSteps ? at(view.node.arrays[figure.placed[name][state.scale]], where) : at(view.array(name), where);
    return {
      row,
      k,
      y: row + this.spread[k],
      x: placed(figure.value),
      ends: figure.interval ? figure.interval.map(placed) : null,
      value: at(view.array(figure.value), where),
      range: figure.interval ? figure.interval.map((name) => at(view.array(name), where)) : null,
      filled: figure.filled ? at(view.array(figure.filled), where) > 0 : true,
    };
  }

  findSpan() {
    if (this.onSteps) return DATA.scales[state.scale].span;
    const marks = this.panels.flatMap((panel) => panel.marks);
    const [low, high] = extent(marks.flatMap((mark) => [[mark.x], mark.ends ?? []]));
    return low > high ? [0, 1] : pad(low, high, 0.05);
  }

  // Height of a row in pixels: marks of one row must stay apart.
  get pitch() {
    return Math.max(19, 9 * this.spread.length);
  }

  sizes() {
    return { ...super.sizes(), minimum: 220 };
  }

  xLayout(box) {
    if (this.onSteps) return dimensionAxis(this.xAxis, this.palette, box.width, box.bottom);
    return super.xLayout(box);
  }

  xWords() {
    return this.onSteps ? dimensionWords(this.xAxis) : super.xWords();
  }

  sign(k) {
    return MARK_SIGNS[k % MARK_SIGNS.length];
  }

  runName(k) {
    return this.seriesAxis ? String(fullLabel(this.seriesAxis, k)) : "";
  }

  headWords() {
    const names = range(this.spread.length).map((k) => `${this.sign(k)} ${shortened(this.runName(k), 18)}`);
    const named = this.seriesAxis ? names : [];
    const open = this.figure.filled && this.view.width >= 500 ? [`open: ${this.figure.open_label}`] : [];
    const words = [...named, ...open].join("   ");
    return textWidth(words) < this.view.width ? words : named.join("  ");
  }

  panelTraces(panel) {
    const bars = panel.marks.filter(({ ends }) => ends?.every(Number.isFinite));
    return [this.intervalTrace(bars, "ink-3", 1.2), ...range(this.spread.length).map((k) => this.markTrace(panel, k))];
  }

  markTrace(panel, k) {
    const marks = panel.marks.filter((mark) => mark.k === k && Number.isFinite(mark.x));
    const { ink, paper } = this.palette.base;
    return {
      type: "scatter",
      mode: "markers",
      x: marks.map((mark) => mark.x),
      y: marks.map((mark) => mark.y),
      customdata: marks.map((mark) => String(this.rowAxis.values[this.shown[mark.row]])),
      meta: { part: "marks", run: this.runName(k) },
      marker: {
        symbol: MARK_SYMBOLS[k % MARK_SYMBOLS.length],
        size: 7,
        color: marks.map((mark) => (mark.filled ? ink : paper)),
        line: { width: 1.3, color: ink },
      },
    };
  }

  hover(number, spot) {
    const { marks, title } = this.panels[number];
    const { place, row, name } = this.rowAt(number, spot);
    const own = marks.filter((mark) => mark.row === row);
    const best = nearest(own.map((mark) => mark.y), place);
    const index = { [this.figure.axes.rows]: this.shown[row] };
    if (this.figure.axes.series) index[this.figure.axes.series] = own[best].k;
    const told = this.view.describe(index, [title, name], own[best].value, own[best].range);
    const lines = own.map((mark) => {
      const ends = mark.range && mark.range.every(Number.isFinite);
      const interval = ends ? ` (${mark.range.map(formatNumber).join(" to ")})` : "";
      const words = Number.isFinite(mark.value) ? `${formatNumber(mark.value)}${interval}` : "none";
      return `${this.sign(mark.k)} ${this.runName(mark.k)}: ${words}`;
    });
    return { ...told, rest: [...told.rest, ...lines] };
  }
}
