// One value for each pair of labels; cells without a value are hatched.

import { barTitleFits, colourBar, widest } from "./annotations.js";
import { extent, nearest, range } from "./core.js";
import { formatLabel, fullLabel, plotText, shortened } from "./format.js";
import { baseAxis, dimensionAxis, dimensionEdges, dimensionWords } from "./panels.js";
import { Picture } from "./picture.js";
import { colourScale, paper } from "./theme.js";

export class HeatmapPicture extends Picture {
  read() {
    const { figure, view } = this;
    this.xAxis = this.axis("x");
    this.yAxis = this.axis("y");
    this.shown = view.shown(figure.axes.y);
    // Steps and numbers grow upwards; labels are read from the top.
    this.upward = this.yAxis.kind !== "category";
    this.labels = this.shown.map((s) => shortened(formatLabel(this.yAxis, s), 22));
    this.xEdges = dimensionEdges(this.xAxis);
    this.yEdges = this.upward ? dimensionEdges(this.yAxis) : this.shown.map((_, k) => [k - 0.5, k + 0.5]);
    for (const panel of this.panels) {
      const value = (s, i) => view.value({ ...panel.index, [figure.axes.y]: s, [figure.axes.x]: i });
      panel.z = this.shown.map((s) => range(this.xAxis.values.length).map((i) => value(s, i)));
    }
  }

  sizes() {
    const count = this.shown.length;
    const most = paper.printing ? 90 : this.panels.length > 8 ? 128 : 220;
    // A few labels are all written.
    const least = this.upward || count > 40 || this.panels.length > 2 ? 4 : 14;
    const cell = Math.max(paper.printing ? 1 : least, Math.min(18, most / count));
    return {
      left: 12 + widest(this.labels),
      right: 62,
      gap: paper.printing ? 8 : 14,
      minimum: this.figure.square ? 84 : paper.printing ? 64 : 130,
      panel: this.upward ? Math.min(260, Math.max(paper.printing ? 64 : 96, count * cell)) : Math.max(40, count * cell),
    };
  }

  // Square cells take the height that the width gives them; where that is too high, less width.
  layFrame() {
    const frame = super.layFrame();
    if (!this.figure.square) return frame;
    const share = this.shown.length / this.xAxis.values.length;
    const height = Math.min(frame.boxes[0].width * share, 420);
    const square = super.layFrame({ panel: height });
    for (const box of square.boxes) box.width = Math.min(box.width, height / share);
    return square;
  }

  // Cells lie side by side, so numbers are labels here.
  xLayout(box) {
    const axis = this.xAxis;
    const labels = axis.kind === "number" ? { ...axis, kind: "category", short: axis.values.map(String) } : axis;
    return dimensionAxis(labels, this.palette, box.width, box.bottom);
  }

  yLayout(box) {
    const bare = { ...baseAxis(this.palette), showline: false, ticks: "" };
    const span = [this.yEdges[0][0], this.yEdges.at(-1)[1]];
    if (this.yAxis.kind === "step") {
      const { tickvals, ticktext } = dimensionAxis(this.yAxis, this.palette, box.height, true);
      return { ...bare, range: span, tickvals, ticktext };
    }
    const every = Math.ceil((this.labels.length * 14) / box.height);
    const ticks = range(this.labels.length).filter((k) => k % every === 0);
    return {
      ...bare,
      range: this.upward ? span : span.reverse(),
      tickvals: ticks,
      ticktext: ticks.map((k) => plotText(this.labels[k])),
    };
  }

  headWords() {
    const unit = this.view.unitWords();
    const words = dimensionWords(this.yAxis, this.figure.axes.y);
    return barTitleFits(unit) ? words : `${words}   ·   colour: ${unit}`;
  }

  panelTraces(panel) {
    const cells = {
      type: "heatmap",
      ...cellGrid(this.xEdges, this.yEdges, panel.z),
      coloraxis: "coloraxis",
      zsmooth: false,
      meta: { part: "heatmap", facet: panel.title },
    };
    return [cells, hatchTrace(this.xEdges, this.yEdges, panel.z, this.palette)];
  }

  // The same colours in all panels; one value alone lies in the middle of the scale. Around a middle,
  // such as chance, both halves are as long, and values below it are grey.
  finish() {
    const { middle } = this.figure;
    const ramp = middle === null ? this.palette.values : this.palette.diverging;
    const unit = this.view.unitWords();
    const bar = { title: barTitleFits(unit) ? unit : "", nticks: 5, separatethousands: true };
    let [low, high] = extent(this.panels.flatMap((panel) => panel.z));
    if (middle !== null && low <= high) {
      const half = Math.max(middle - low, high - middle);
      [low, high] = [middle - half, middle + half];
    }
    const room = low === high ? 0.5 : 0;
    this.layout.coloraxis = {
      colorscale: colourScale(ramp),
      colorbar: colourBar(this.frame, this.palette, bar),
      ...(low > high ? { cmin: 0, cmax: 1, showscale: false } : { cmin: low - room, cmax: high + room }),
    };
  }

  hover(number, spot) {
    const panel = this.panels[number];
    const [low, high] = [this.yEdges[0][0], this.yEdges.at(-1)[1]];
    const down = spot.y / this.frame.boxes[number].height;
    const i = edgeIndex(this.xEdges, spot.place);
    const k = edgeIndex(this.yEdges, this.upward ? high - down * (high - low) : low + down * (high - low));
    const { x, y } = this.figure.axes;
    const index = { ...panel.index, [y]: this.shown[k], [x]: i };
    const names = [panel.title, fullLabel(this.yAxis, this.shown[k])];
    return this.view.describe(index, names, panel.z[k][i], null);
  }
}

// plotly.js wants edges that touch; where cells stand apart (step 0) an empty cell is put between.
function cellGrid(xEdges, yEdges, z) {
  const [x, xFrom] = touching(xEdges);
  const [y, yFrom] = touching(yEdges);
  const value = (k, i) => (k === null || i === null || !Number.isFinite(z[k][i]) ? null : z[k][i]);
  return { x, y, z: yFrom.map((k) => xFrom.map((i) => value(k, i))) };
}

function touching(edges) {
  const places = [edges[0][0]];
  const from = [];
  edges.forEach(([left, right], i) => {
    if (i && left - places.at(-1) > 1e-6) {
      places.push(left);
      from.push(null);
    }
    places.push(right);
    from.push(i);
  });
  return [places, from];
}

// One hatched bar for each stretch of cells without a value, however many cells it holds.
function hatchTrace(xEdges, yEdges, z, palette) {
  const areas = missingAreas(xEdges, yEdges, z);
  const none = "rgba(0,0,0,0)";
  const pattern = { shape: "/", size: 5, solidity: 0.25, fgcolor: palette.base.null, bgcolor: none };
  return {
    type: "bar",
    x: areas.map(({ left, right }) => (left + right) / 2),
    width: areas.map(({ left, right }) => right - left),
    base: areas.map(({ base }) => base),
    y: areas.map(({ base, top }) => top - base),
    meta: { part: "missing" },
    marker: { color: none, pattern, line: { width: 0 } },
  };
}

// Rectangles over the cells without a value: stretches of a row, joined over rows that have the same.
function missingAreas(xEdges, yEdges, z) {
  const areas = [];
  let before = new Map();
  z.forEach((row, k) => {
    const [base, top] = yEdges[k];
    const now = new Map();
    for (const [left, right] of missingStretches(xEdges, row)) {
      const above = before.get(`${left} ${right}`);
      const area = above && Math.abs(above.top - base) < 1e-6 ? above : { left, right, base, top };
      if (area !== above) areas.push(area);
      area.top = top;
      now.set(`${left} ${right}`, area);
    }
    before = now;
  });
  return areas;
}

function missingStretches(edges, row) {
  const stretches = [];
  edges.forEach(([left, right], i) => {
    if (Number.isFinite(row[i])) return;
    const last = stretches.at(-1);
    const joins = last && !Number.isFinite(row[i - 1]) && Math.abs(last[1] - left) < 1e-6;
    if (joins) last[1] = right;
    else stretches.push([left, right]);
  });
  return stretches;
}

function edgeIndex(edges, place) {
  const inside = edges.findIndex(([left, right]) => place >= left && place <= right);
  if (inside >= 0) return inside;
  const middles = edges.map(([left, right]) => (left + right) / 2);
  return nearest(middles, place);
}
