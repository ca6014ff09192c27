// Lines over a dimension, one for each label of a series, with intervals and grey null bands.

import { barRoom, emptyNote, endLabel, labelledEnds, leader, seriesBar, widest } from "./annotations.js";
import { extent, lastNotAbove, nearest, pad, range } from "./core.js";
import { formatLabel, formatNumber, fullLabel, shortened } from "./format.js";
import { axisName, dimensionPlaces, valueAxis } from "./panels.js";
import { Picture } from "./picture.js";
import { readRegimes, regimeFact, regimeShapes, regimeWords } from "./regimes.js";
import { stepIndex } from "./state.js";
import { paper, seriesStyles, withAlpha } from "./theme.js";

const DIRECT_LABELS = 6;

export class CurvesPicture extends Picture {
  read() {
    const { figure, view } = this;
    this.xAxis = this.axis("x");
    this.series = this.axis("series");
    this.places = dimensionPlaces(this.xAxis);
    this.shown = view.shown(figure.axes.series);
    this.direct = this.series !== null && this.shown.length <= DIRECT_LABELS;
    this.banded = view.over ? [view.chosen] : this.shown;
    for (const panel of this.panels) {
      const looks = this.looks(panel);
      panel.lines = this.shown.map((s, k) => ({ ...looks[k], ...this.readLine(this.index(panel, s), looks[k]) }));
      panel.bands = figure.bands.map((band) => this.readBand(band, panel));
      if (view.bandLabel) panel.bands.push(this.readSpread(panel));
      panel.regimes = readRegimes(this, panel);
    }
    this.span = this.findSpan();
  }

  looks(panel) {
    const { series, palette, view } = this;
    if (!series) return [{ label: "", full: "", path: "", colour: this.panelColour(panel) }];
    const styles = seriesStyles(series, palette);
    return this.shown.map((s) => ({
      label: formatLabel(series, s),
      full: fullLabel(series, s),
      path: String(series.values[s]),
      ...styles[s],
      ...(view.over ? this.runLook(s) : {}),
    }));
  }

  // A single line keeps its layer's colour where the figure's lines are layers.
  panelColour(panel) {
    const { palette, view } = this;
    const facet = this.axis("facet");
    if (!view.differs || !view.controlled || !facet?.group) return palette.base.ink;
    return seriesStyles(facet, palette)[panel.index[this.figure.axes.facet]].colour;
  }

  runLook(s) {
    const { base } = this.palette;
    if (s === this.view.chosen) return { run: s, colour: base.ink, width: 2 };
    return { run: s, colour: base.null, width: 1.1, other: true };
  }

  index(panel, s) {
    const { series } = this.figure.axes;
    return series ? { ...panel.index, [series]: s } : panel.index;
  }

  // Values of one line along x, with their intervals and, where missing, the reasons.
  readLine(index, look) {
    const { figure, view } = this;
    const point = (i) => ({ ...index, [figure.axes.x]: i });
    const all = range(this.places.length).map(point);
    const ys = all.map((where) => view.value(where));
    const ends = figure.interval && !look.other
      ? all.map((where) => figure.interval.map((name) => view.companion(name, where)))
      : null;
    const places = view.places(index);
    const reasons = ys.map((y, i) => (Number.isFinite(y) || places ? null : view.reason(point(i))));
    const { reference } = figure;
    const theory = reference ? all.map((where) => view.companion(reference, where)) : null;
    return { ys, ends, theory, reasons, point, kept: places ?? range(ys.length), partial: places !== null };
  }

  // A band along x; where it differs between the lines that are shown, in its parts, each as its line,
  // since what chance gives one line says nothing of another.
  readBand(band, panel) {
    const { figure, view } = this;
    const parts = this.banded.map((s, k) => {
      const end = (name, i) => view.companion(name, { ...this.index(panel, s), [figure.axes.x]: i });
      const [lower, upper] = [band.lower, band.upper].map((name) =>
        range(this.places.length).map((i) => end(name, i)),
      );
      return { lower, upper, line: this.banded.length > 1 ? panel.lines[k] : null };
    });
    const ends = parts.map(({ lower, upper }) => String([lower, upper]));
    const differ = ends.some((each) => each !== ends[0]);
    return { label: band.label, control: band.control, ...hull(parts), ...(differ ? { parts } : {}) };
  }

  // The band of a difference, or of the range of many runs.
  readSpread(panel) {
    const { view } = this;
    const { kept, point } = panel.lines[0];
    const ends = range(this.places.length).map((i) => view.band(point(i)));
    const [lower, upper] = [0, 1].map((k) => ends.map((e) => e[k]));
    return { label: view.bandLabel, control: view.controlled, lower, upper, kept };
  }

  get logarithmic() {
    return this.figure.y_scale === "log";
  }

  // The span of the value axis, the same in all panels; zero belongs to it where it is near.
  findSpan() {
    const [low, high] = extent(
      this.panels.flatMap((panel) => [
        ...panel.lines.flatMap((line) => [line.ys, ...(line.ends ?? []), line.theory ?? []]),
        ...panel.bands.flatMap((band) => [band.lower, band.upper]),
      ]),
      this.logarithmic ? (v) => v > 0 : Number.isFinite,
    );
    if (low > high) return [0, 1];
    if (this.logarithmic) return pad(Math.log10(low), Math.log10(high), 0.05);
    return low >= 0 && low < 0.4 * high ? [0, high * 1.06 || 1] : pad(low, high, 0.06);
  }

  toPixels(value, box) {
    const [low, high] = this.span;
    return (box.height * (high - (this.logarithmic ? Math.log10(value) : value))) / (high - low);
  }

  sizes() {
    const count = this.panels.length;
    const names = this.direct ? this.shown.map((s) => shortened(formatLabel(this.series, s), 18)) : [];
    const bar = () => barRoom(this.barNames(), this.view.width);
    return {
      left: 54,
      right: !this.series ? 12 : this.direct ? 26 + widest(names) : bar(),
      top: this.many ? 22 : 2,
      gap: paper.printing ? 10 : 18,
      minimum: paper.printing ? 56 : 170,
      panel: paper.printing ? (count > 1 ? 54 : 72) : count > 3 ? 150 : count > 1 ? 180 : 250,
    };
  }

  yLayout() {
    return valueAxis(this.palette, this.span, this.figure.y_scale);
  }

  headWords() {
    return this.view.headWords();
  }

  // The grey bands, and the dashes of theory.
  keyItems() {
    const { reference, reference_label: label } = this.figure;
    const dashes = { line: { color: this.palette.base["ink-2"], width: 1.3, dash: "5px,4px" } };
    const bands = this.panels[0].bands.map((band) => {
      const { fillcolor, line } = this.bandTrace(band);
      const name = band.parts?.length > 1 ? `${band.label}, in the colour of their line` : band.label;
      return { label: name, look: isFlat(band) ? { line } : { fill: fillcolor, line } };
    });
    return reference ? [{ label, look: dashes }, ...bands] : bands;
  }

  panelTraces(panel) {
    return [
      ...panel.bands.flatMap((band) => (band.parts ?? [band]).map((part) => this.bandTrace(band, part))),
      ...[...panel.lines].sort(chosenLast).flatMap((line) => this.lineTraces(line, panel)),
      this.missingTrace(panel),
    ];
  }

  area(parts, colour, meta) {
    const filled = { fill: "toself", fillcolor: colour, line: { width: 0 } };
    const outlines = parts.map(({ lower, upper, kept = range(lower.length) }) => {
      const [places, low, high] = [this.places, lower, upper].map((list) => kept.map((i) => list[i]));
      return outline(places, low, high);
    });
    const [x, y] = ["x", "y"].map((axis) => outlines.flatMap((each) => each[axis]));
    return { type: "scatter", mode: "lines", x, y, ...filled, meta };
  }

  // A band without width is a line with dashes of its own. A part has the colour of its line and dotted
  // edges, the lighter the more there are; the band of control runs is lighter.
  bandTrace(band, part = band) {
    const { null: grey, "ink-3": ink } = this.palette.base;
    const { line } = part;
    const meta = { part: band.control ? "control" : "band", label: line?.label ?? band.label };
    const share = band.control ? 0.16 : 0.32 / (band.parts?.length ?? 1);
    const rank = this.panels[0].bands.filter(isFlat).findIndex(({ label }) => label === band.label);
    const dash = band.control || line ? "dot" : FLAT_DASHES[Math.max(rank, 0) % FLAT_DASHES.length];
    const look = { color: line?.colour ?? ink, dash };
    if (isFlat(part)) {
      const [x, y] = [this.places, part.lower].map((list) => (part.kept ?? range(list.length)).map((i) => list[i]));
      return { type: "scatter", mode: "lines", x, y, line: { ...look, width: 2 }, meta };
    }
    const trace = this.area([part], withAlpha(line?.colour ?? grey, share), meta);
    return { ...trace, line: { ...look, width: band.parts?.length > 8 ? 0 : 1 } };
  }

  lineTraces(line, panel) {
    const meta = { part: "line", series: line.path, facet: panel.title, label: line.label };
    const { kept } = line;
    const ys = kept.map((i) => line.ys[i]);
    const sizes = ys.map((_, k) => (line.partial ? 5 : isLonely(ys, k) ? 6 : 0));
    const trace = {
      type: "scatter",
      mode: sizes.some(Boolean) ? "lines+markers" : "lines",
      x: kept.map((i) => this.places[i]),
      y: ys,
      customdata: kept.map((i) => this.xAxis.values[i]),
      line: { color: line.colour, width: line.width ?? 1.7 },
      marker: { color: line.colour, size: sizes, opacity: 1, line: { width: 0 } },
      connectgaps: false,
      meta,
    };
    const traces = line.theory ? [trace, this.theoryTrace(line, meta)] : [trace];
    if (!line.ends) return traces;
    const [lower, upper] = [0, 1].map((k) => line.ends.map((ends) => ends[k]));
    return [this.area([{ lower, upper }], withAlpha(line.colour, 0.14), { ...meta, part: "interval" }), ...traces];
  }

  theoryTrace(line, meta) {
    return {
      type: "scatter",
      mode: "lines",
      x: this.places,
      y: line.theory,
      line: { color: line.colour, width: 1.3, dash: "5px,4px" },
      connectgaps: false,
      meta: { ...meta, part: "reference" },
    };
  }

  // A cross on the axis wherever a value is missing for a reason that hover tells.
  missingTrace(panel) {
    const gaps = range(this.places.length).filter((i) => panel.lines.some((line) => line.reasons[i]));
    const floor = this.logarithmic ? 10 ** this.span[0] : this.span[0];
    return {
      type: "scatter",
      mode: "markers",
      x: gaps.map((i) => this.places[i]),
      y: gaps.map(() => floor),
      cliponaxis: false,
      meta: { part: "missing" },
      marker: { symbol: "x-thin", size: 7, line: { width: 1.4, color: this.palette.base["ink-2"] } },
    };
  }

  panelWords(panel, box, i) {
    const toY = (value) => this.toPixels(value, box);
    const words = [];
    if (!panel.lines.some((line) => line.ys.some(Number.isFinite))) words.push(emptyNote(this.frame, box));
    for (const regime of panel.regimes) {
      this.layout.shapes.push(...regimeShapes(regime, i, box, this.palette));
      words.push(...regimeWords(regime, i, this.palette));
    }
    if (this.view.differs) this.layout.shapes.push(zeroLine(i, this.palette));
    if (!this.direct || !box.last) return words;
    const ends = labelledEnds(panel.lines, toY, box.height);
    this.layout.shapes.push(...ends.map((end) => leader(end, this.frame, box)));
    return [...words, ...ends.map((end) => endLabel(end, this.frame, box))];
  }

  barNames() {
    return this.shown.map((s) => formatLabel(this.series, s).replace(/^layer /, ""));
  }

  finish() {
    if (!this.series || this.direct) return;
    const lines = this.panels[0].lines;
    this.barTitle = this.figure.axes.series;
    const looks = lines.map((line) => line.colour);
    this.barFull = lines.map((line) => line.full);
    this.traces.push(seriesBar(this.barNames(), looks, this.frame, this.palette, this.barTitle));
  }

  // What is nearest to the pointer: the step by its place, then the line by its height; a missing
  // value lies on the axis.
  hover(number, spot) {
    const panel = this.panels[number];
    const box = this.frame.boxes[number];
    const i = this.nearestPlace(panel, spot.place);
    const gap = (line) => {
      if (Number.isFinite(line.ys[i])) return Math.abs(this.toPixels(line.ys[i], box) - spot.y);
      return line.reasons[i] ? Math.abs(box.height - spot.y) : Infinity;
    };
    const line = panel.lines.reduce((a, b) => (gap(b) < gap(a) ? b : a));
    const told = this.view.describe(line.point(i), [panel.title, line.full], line.ys[i], line.ends?.[i]);
    const failures = this.view.over ? this.otherRuns(panel, line, i) : this.failures(panel, line, i);
    const theory = line.theory ? [`${this.figure.reference_label}: ${formatNumber(line.theory[i])}`] : [];
    const near = panel.regimes.filter((regime) => Math.abs(regime.at - spot.place) < 0.02).map(regimeFact);
    const beside = this.view.differs ? [] : panel.bands.map((band) => bandWords(band, i, panel.lines.indexOf(line))).filter(Boolean);
    return { ...told, lifted: this.shown.length > 1 && line.label, rest: [...theory, ...told.rest, ...beside, ...near, ...failures] };
  }

  // The place under the pointer, of those at which the panel's lines stand.
  nearestPlace(panel, place) {
    const kept = panel.lines[0].kept;
    return kept[nearest(kept.map((i) => this.places[i]), place)];
  }

  failures(panel, line, i) {
    const others = panel.lines.filter((other) => other !== line && other.reasons[i]);
    return others.slice(0, 3).map((other) => `${other.label}: ${other.reasons[i]}`);
  }

  otherRuns(panel, line, i) {
    const others = panel.lines.filter((other) => other !== line);
    return others.map((other) => `${other.label}: ${this.view.say(other.point(i), other.ys[i])}`);
  }

  // The place of the current step along x; of a difference the last one up to it.
  get currentPlace() {
    const { kept } = this.panels[0].lines[0];
    return kept[lastNotAbove(kept, stepIndex(this.xAxis))];
  }
}

const FLAT_DASHES = ["solid", "4px,3px", "1.5px,3px", "8px,2px", "8px,2px,1.5px,2px"];

function isFlat({ lower, upper }) {
  return lower.every((low, i) => !Number.isFinite(low) || low === upper[i]);
}

function chosenLast(one, other) {
  return Number(one.other !== true) - Number(other.other !== true);
}

function isLonely(ys, k) {
  return Number.isFinite(ys[k]) && !Number.isFinite(ys[k - 1]) && !Number.isFinite(ys[k + 1]);
}

function zeroLine(i, palette) {
  const line = { color: palette.base["ink-3"], width: 1 };
  const across = { xref: `${axisName("x", i)} domain`, x0: 0, x1: 1, yref: axisName("y", i), y0: 0, y1: 0 };
  return { type: "line", layer: "below", ...across, line };
}

function hull(parts) {
  const ends = parts[0].lower.map((_, i) => {
    const known = parts.filter(({ lower, upper }) => Number.isFinite(lower[i]) && Number.isFinite(upper[i]));
    const [low] = extent([known.map((part) => part.lower[i])]);
    const [, high] = extent([known.map((part) => part.upper[i])]);
    return known.length ? [low, high] : [NaN, NaN];
  });
  const [lower, upper] = [0, 1].map((k) => ends.map((each) => each[k]));
  return { lower, upper };
}

// What a band holds at a place: its two ends, or the one value of a line; its part of line `k`.
function bandWords(band, i, k) {
  const { lower, upper } = band.parts?.[k] ?? band;
  const [low, high] = [lower[i], upper[i]];
  if (!Number.isFinite(low)) return null;
  const ends = low === high ? formatNumber(low) : `${formatNumber(low)} to ${formatNumber(high)}`;
  return `${band.label}: ${ends}`;
}

// A closed outline for every stretch without gaps: along the upper ends, back along the lower ones.
function outline(places, lower, upper) {
  const xs = [];
  const ys = [];
  let stretch = [];
  const close = () => {
    if (!stretch.length) return;
    const back = [...stretch].reverse();
    xs.push(...[...stretch, ...back].map((k) => places[k]), null);
    ys.push(...stretch.map((k) => upper[k]), ...back.map((k) => lower[k]), null);
    stretch = [];
  };
  for (let k = 0; k < places.length; k += 1) {
    if (Number.isFinite(lower[k]) && Number.isFinite(upper[k])) stretch.push(k);
    else close();
  }
  close();
  return { x: xs, y: ys };
}
