// What all kinds of figure share: panels side by side with their axes, titles and marks. A kind says
// what it reads, how much room it needs, and what it draws in one panel. It enters its class here by
// its name; one that is no picture but HTML enters a class of figures.

import { HEAD, axisTitle, headLine, keySample, keyWords, layKey, note } from "./annotations.js";
import {
  axisName,
  axisRoom,
  dimensionAxis,
  dimensionWords,
  layPanels,
  placeAxes,
  plotLayout,
  stepMarks,
} from "./panels.js";
import { smallFont } from "./theme.js";

export const PICTURES = {};
export const FIGURES = {};

export class Picture {
  constructor(figure, view) {
    this.figure = figure;
    this.view = view;
    this.palette = view.palette;
    this.panels = view.facets();
    this.traces = [];
    this.read();
    this.key = layKey(this.keyItems(), this.headWords(), this.view.width);
    this.frame = this.layFrame();
    this.layout = plotLayout(this.frame, this.palette);
    this.panels.forEach((panel, i) => this.drawPanel(panel, i));
    this.layout.annotations.push(
      axisTitle(this.frame, this.xWords()),
      headLine(this.headWords(), this.palette),
      ...this.key.map((spot) => keyWords(spot, this.frame, this.palette)),
    );
    this.layout.shapes.push(...this.key.map((spot) => keySample(spot, this.frame)));
    this.finish();
  }

  layFrame(more = {}) {
    return layPanels(this.panels.length, this.view.width, { ...this.room, ...this.sizes(), head: this.head, ...more });
  }

  // Room around panels, in pixels, of which a kind may say otherwise.
  get room() {
    return { right: 16, top: this.many ? 22 : 4, bottom: axisRoom(), between: 6, gap: 18 };
  }

  // Room above all panels: a line for what the values count, and for the key as many as it takes.
  get head() {
    return HEAD * (1 + Math.max(0, ...this.key.map((spot) => spot.line)));
  }

  get many() {
    return this.panels.length > 1;
  }

  axis(use) {
    const dimension = this.figure.axes[use];
    return dimension ? this.view.node.axes[dimension] : null;
  }

  drawPanel(panel, i) {
    const box = this.frame.boxes[i];
    placeAxes(this.layout, this.frame, i, this.xLayout(box), this.yLayout(box));
    const axes = { xaxis: axisName("x", i), yaxis: axisName("y", i) };
    this.traces.push(...this.panelTraces(panel).map((trace) => ({ hoverinfo: "skip", ...axes, ...trace })));
    if (this.xAxis?.kind === "step") this.layout.shapes.push(...stepMarks(i, this.palette));
    if (this.many) this.layout.annotations.push(this.panelTitle(panel, box));
    this.layout.annotations.push(...this.panelWords(panel, box, i));
  }

  panelTitle(panel, box) {
    const y = 1 - (box.y - 4) / this.frame.height;
    const font = { size: smallFont() + 1, color: this.palette.base.ink };
    return note(panel.title, box.x / this.frame.width, y, { yanchor: "bottom", font });
  }

  // A kind may leave out what follows, but for the axis.
  xLayout(box) {
    return dimensionAxis(this.xAxis, this.palette, box.width, box.bottom);
  }

  xWords() {
    return dimensionWords(this.xAxis, this.figure.axes.x);
  }

  panelWords() {
    return [];
  }

  keyItems() {
    return [];
  }

  finish() {}
}
