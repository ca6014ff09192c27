// One dot for each row beside the grey bands of its null models; where it is filled, its interval lies
// outside all of them. A value alone almost never equals a null without width, such as chance.

import { extent, pad, range, say } from "./core.js";
import { formatNumber } from "./format.js";
import { RowsPicture, barsAt } from "./rows.js";
import { seriesStyles, withAlpha } from "./theme.js";

export class NullPicture extends RowsPicture {
  read() {
    const { figure } = this;
    this.xAxis = null;
    this.readRows(36);
    const styles = seriesStyles(this.rowAxis, this.palette);
    const colour = (s) => (this.rowAxis.group ? styles[s].colour : this.palette.base.ink);
    for (const panel of this.panels) {
      panel.rows = this.shown.map((s) => ({
        colour: colour(s),
        ...this.readRow({ ...panel.index, [figure.axes.rows]: s }),
      }));
    }
    this.span = this.findSpan();
  }

  readRow(index) {
    const { figure, view } = this;
    const value = view.value(index);
    const ends = figure.interval ? figure.interval.map((name) => view.companion(name, index)) : null;
    const bands = figure.bands.map((b) => [view.companion(b.lower, index), view.companion(b.upper, index)]);
    const [least, most] = ends?.every(Number.isFinite) ? ends : [value, value];
    // A null without numbers tells nothing about the value, so it cannot be outside of it.
    const outside = Number.isFinite(value) && bands.every(([low, high]) => most < low || least > high);
    return { index, value, ends, bands, outside };
  }

  findSpan() {
    const rows = this.panels.flatMap((panel) => panel.rows);
    const [low, high] = extent(rows.flatMap((row) => [[row.value], row.ends ?? [], ...row.bands]));
    if (low > high) return [0, 1];
    return pad(low >= 0 && low < 0.5 * high ? 0 : low, high, 0.05);
  }

  headWords() {
    const { bands, interval } = this.figure;
    return bands.length ? say(interval ? "interval outside" : "value outside") : "";
  }

  panelTraces(panel) {
    const bands = this.figure.bands.flatMap((band, b) => this.bandTraces(panel.rows, b, band.label));
    const bars = panel.rows.map((row, y) => ({ ends: row.ends ?? [null, null], y }));
    return [...bands, this.intervalTrace(bars, "ink", 1.4), this.dotTrace(panel)];
  }

  // Bands of several nulls lie above one another within a row; one without width is a tick.
  bandTraces(rows, b, label) {
    const count = this.figure.bands.length;
    const shift = (b - (count - 1) / 2) * Math.min(0.36, 0.6 / count);
    const colour = this.grey(b);
    const width = Math.min(count > 1 ? 5 : 8, this.pitch / (count + 1));
    const points = rows.map((row, k) => ({ ends: row.bands[b], y: k + shift }));
    const flat = points.filter(({ ends }) => ends[0] === ends[1]);
    const bars = { ...barsAt(points), line: { color: colour, width }, meta: { part: "band", label } };
    const ticks = {
      type: "scatter",
      mode: "markers",
      x: flat.map(({ ends }) => ends[0]),
      y: flat.map(({ y }) => y),
      marker: { symbol: "line-ns", size: width, line: { color: colour, width: 4 } },
      meta: { part: "flat-band", label },
    };
    return [bars, ticks];
  }

  dotTrace(panel) {
    const { rows } = panel;
    return {
      type: "scatter",
      mode: "markers",
      x: rows.map((row) => row.value),
      y: range(rows.length),
      customdata: this.shown.map((s) => String(this.rowAxis.values[s])),
      meta: { part: "dots", facet: panel.title },
      marker: {
        size: Math.min(9, this.pitch - 3),
        color: rows.map((row) => (row.outside ? row.colour : this.palette.base.paper)),
        line: { width: 1.6, color: rows.map((row) => row.colour) },
      },
    };
  }

  keyItems() {
    return this.figure.bands.map((band, b) => ({ label: band.label, look: { line: { color: this.grey(b), width: 6 } } }));
  }

  // Neighbouring nulls differ in tint.
  grey(b) {
    return withAlpha(this.palette.base.null, b % 2 ? 0.45 : 0.9);
  }

  hover(number, spot) {
    const { rows, title } = this.panels[number];
    const { row: k, name } = this.rowAt(number, spot);
    const row = rows[k];
    const told = this.view.describe(row.index, [title, name], row.value, row.ends);
    const bands = row.bands.map(([low, high], b) =>
      Number.isFinite(low)
        ? `${this.figure.bands[b].label}: ${formatNumber(low)} to ${formatNumber(high)}`
        : null,
    );
    return { ...told, rest: [...told.rest, ...bands] };
  }
}
