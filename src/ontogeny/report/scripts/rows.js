// What pictures with a row for each label share: names at the left, and the row under the pointer.

import { widest } from "./annotations.js";
import { range } from "./core.js";
import { formatLabel, fullLabel, plotText, shortened } from "./format.js";
import { baseAxis, valueAxis } from "./panels.js";
import { Picture } from "./picture.js";
import { paper, plotFont } from "./theme.js";

export class RowsPicture extends Picture {
  readRows(characters) {
    const { figure, view } = this;
    this.rowAxis = this.axis("rows");
    this.shown = view.shown(figure.axes.rows);
    const most = view.width < 500 ? 20 : characters;
    this.labels = this.shown.map((s) => shortened(formatLabel(this.rowAxis, s), most));
  }

  // Height of a row in pixels; many rows stand closer.
  get pitch() {
    if (paper.printing) return this.shown.length > 30 ? 6.5 : 8.5;
    return this.shown.length > 60 ? 15 : 19;
  }

  sizes() {
    return {
      left: 14 + widest(this.labels),
      top: this.many ? 22 : 6,
      minimum: 180,
      panel: Math.max(54, this.shown.length * this.pitch),
    };
  }

  xLayout(box) {
    return { ...valueAxis(this.palette, this.span, "linear"), showline: true, showticklabels: box.bottom };
  }

  yLayout() {
    return {
      ...baseAxis(this.palette),
      showline: false,
      ticks: "",
      range: [this.shown.length - 0.4, -0.6],
      tickvals: range(this.shown.length),
      ticktext: this.labels.map(plotText),
      tickfont: { size: Math.min(plotFont(), this.pitch - 1) },
    };
  }

  xWords() {
    return this.view.axisWords();
  }

  intervalTrace(bars, colour, width) {
    const line = { color: this.palette.base[colour], width };
    return { ...barsAt(bars), line, meta: { part: "interval" } };
  }

  // Where the pointer lies: in rows, the nearest row, and its name.
  rowAt(number, spot) {
    const { height } = this.frame.boxes[number];
    const place = (spot.y / height) * (this.shown.length + 0.2) - 0.6;
    const row = Math.max(0, Math.min(this.shown.length - 1, Math.round(place)));
    return { place, row, name: fullLabel(this.rowAxis, this.shown[row]) };
  }
}

// Level lines from end to end, one apart from the other.
export function barsAt(bars) {
  return {
    type: "scatter",
    mode: "lines",
    x: bars.flatMap(({ ends }) => [...ends, null]),
    y: bars.flatMap(({ y }) => [y, y, null]),
  };
}
