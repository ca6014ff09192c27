// Several runs in one figure: over one another, side by side, or one as its difference from others.

import { at, extent, range, say } from "./core.js";
import { csv } from "./csv.js";
import { formatNumber, shortest } from "./format.js";
import { RUN, hasControls } from "./nodes.js";
import { View } from "./view.js";

const CONTROL_STEP = "control step";

// A figure in one of its views: other dimensions make its lines and panels.
export function arranged(figure, view) {
  const { runs } = figure;
  if (!runs) return figure;
  const changed = { ...figure, ...runs.views[view], view };
  const ofRun = figure.bands.filter((band) => !band.control);
  if (view === "side by side" && hasControls(figure)) return { ...changed, bands: ofRun };
  if (view !== "difference") return changed;
  return { ...changed, middle: 0, interval: null, bands: [], boundaries: [], reference: null, y_scale: "linear" };
}

// The arrays of a figure of several runs. A control's values lie at the steps that it was read at.
export class RunsView extends View {
  constructor(figure, whole, width, choices, relative) {
    super(figure, width, choices, relative);
    this.runs = figure.runs;
    this.whole = whole; // as it was declared, with its interval
    this.controlled = hasControls(figure);
    this.chosen = this.controlled ? 0 : (choices[RUN] ?? 0);
    const own = range(this.runs.names.length).filter((m) => m !== this.chosen);
    this.others = this.controlled ? this.runs.others : own;
    if (this.controlled) this.readControls();
  }

  readControls() {
    const { controls } = this.runs;
    this.control = this.node.arrays[controls[this.relative ? this.figure.relative : this.figure.value]];
    const steps = this.node.axes.step.values;
    const places = new Map(this.node.axes[CONTROL_STEP].values.map((step, k) => [step, k]));
    this.controlPlaces = steps.map((step) => places.get(step));
  }

  get differs() {
    return this.figure.view === "difference";
  }

  // Places along x of a line that holds the values of controls; null for all.
  places(index) {
    if (!this.controlled || this.figure.axes.x !== "step" || !(this.differs || index[RUN] > 0)) return null;
    return range(this.controlPlaces.length).filter((i) => this.controlPlaces[i] !== undefined);
  }

  member(index, m) {
    if (!this.controlled) return at(this.main, { ...index, [RUN]: m });
    if (m === 0) return at(this.main, index);
    const place = this.controlPlaces[index.step];
    return place === undefined ? NaN : at(this.control, { ...index, [RUN]: m - 1, [CONTROL_STEP]: place });
  }

  // A run minus the mean of the others, and the band around no difference. As in
  // `report/run_differences.py`, in the same order of sums.
  difference(index) {
    const own = this.member(index, this.chosen);
    const others = this.others.map((m) => this.member(index, m));
    const mean = others.reduce((a, b) => a + b) / others.length;
    return { own, mean, value: own - mean, ends: this.spread(index, own, others, mean) };
  }

  spread(index, own, others, mean) {
    if (others.length > 1) {
      const squares = others.reduce((sum, other) => sum + (other - mean) * (other - mean), 0);
      const half = this.runs.factor * Math.sqrt(squares / (others.length - 1));
      return [-half, half];
    }
    const { interval } = this.whole;
    if (this.controlled || !interval) return [NaN, NaN];
    const ends = (m) => interval.map((name) => super.companion(name, { ...index, [RUN]: m }));
    const [low, high] = ends(this.chosen);
    const [otherLow, otherHigh] = ends(this.others[0]);
    const root = (a, b) => Math.sqrt(a * a + b * b);
    return [-root(high - own, mean - otherLow), root(own - low, otherHigh - mean)];
  }

  value(index) {
    if (this.differs) return this.difference(index).value;
    return this.member(index, index[RUN] ?? this.chosen);
  }

  // Nulls and intervals are those of the run, not of its controls.
  companion(name, index) {
    if (this.controlled && index[RUN] > 0) return NaN;
    return super.companion(name, index);
  }

  headWords() {
    const unit = this.unitWords();
    if (!this.differs) return unit;
    return say(unit ? "difference in" : "difference", { unit });
  }

  // Runs over one another: the chosen one in ink, the others grey; many others are a band.
  get over() {
    return this.figure.axes.series === RUN;
  }

  shown(dimension) {
    const many = dimension === RUN && this.over && this.runs.names.length > this.runs.lines;
    return many ? [this.chosen] : super.shown(dimension);
  }

  // The grey band of a view at a place: of the difference, or the range of many other runs.
  band(index) {
    if (this.differs) return this.difference(index).ends;
    const [low, high] = extent([this.others.map((m) => this.member(index, m))]);
    return low > high ? [NaN, NaN] : [low, high];
  }

  get bandLabel() {
    if (this.differs) return this.runs.factor === null && this.controlled ? null : this.runs.band;
    return this.over && this.shown(RUN).length === 1 ? "range of the others" : null;
  }

  absence(index) {
    const members = this.differs ? [this.chosen, ...this.others] : [index[RUN] ?? this.chosen];
    const missing = members.filter((m) => !Number.isFinite(this.member(index, m)));
    if (!this.differs) return "not recorded";
    return `not recorded: ${missing.map((m) => this.runs.names[m]).join(", ")}`;
  }

  more(index, ends) {
    if (!this.differs) return [...super.more(index, ends), ...this.besideCell(index)];
    const { own, mean, ends: band } = this.difference(index);
    const { names } = this.runs;
    const others = this.others.length > 1 ? `mean of ${this.controlled ? "the controls" : "the others"}` : names[this.others[0]];
    const known = band.every(Number.isFinite);
    const words = this.controlled ? "95 % of further control runs" : this.runs.band;
    return [
      `${names[this.chosen]}: ${formatNumber(own)}`,
      `${others}: ${formatNumber(mean)}`,
      ...(known ? [`${words}: ${band.map((end) => formatNumber(end)).join(" to ")}`] : []),
    ];
  }

  // A cell of a map has no room for a band.
  besideCell(index) {
    if (this.figure.kind !== "heatmap" || index[RUN] !== undefined) return [];
    const ends = this.band(index);
    if (!ends.every(Number.isFinite)) return [];
    return [`control runs: ${ends.map((end) => formatNumber(end)).join(" to ")}`];
  }

  // Words with the chosen run's name, and of two runs the other's.
  fill(text, quote = String) {
    const { names } = this.runs;
    const value = this.relative ? this.figure.relative : this.figure.value;
    const words = { run: quote(names[this.chosen]), other: quote(names[this.others[0]] ?? ""), value };
    return text.replace(/\{(run|other|value)\}/g, (_, name) => words[name]);
  }
}

// A figure's data in long form as the view shows it: the difference with its terms, or every run.
export function runsCsv({ view }) {
  const { node, figure, main } = view;
  const dims = main.dims.filter((d) => d !== RUN);
  const label = (index) => dims.map((d) => node.axes[d].values[index[d]]);
  const number = (value) => (Number.isFinite(value) ? shortest(value, { dtype: "f8" }) : "");
  const name = view.relative ? figure.relative : figure.value;
  const all = indices(dims, dims.map((d) => node.axes[d].values.length));
  if (view.differs) {
    const places = view.controlled ? view.controlPlaces : null;
    const rows = all
      .filter((index) => !places || places[index.step] !== undefined)
      .map((index) => {
        const { own, mean, value, ends: band } = view.difference(index);
        return [...label(index), shortest(own, main), ...[mean, value, ...band].map(number)];
      });
    return csv([...dims, name, ...view.runs.columns[name]], rows);
  }
  const rows = view.runs.names.flatMap((run, m) =>
    all
      .filter((index) => m === 0 || view.controlPlaces[index.step] !== undefined)
      .map((index) => [run, ...label(index), shortest(view.member(index, m), m ? view.control : main)]),
  );
  return csv([RUN, ...dims, name], rows);
}

function indices(dims, lengths) {
  return dims.reduce(
    (all, d, k) => all.flatMap((index) => range(lengths[k]).map((i) => ({ ...index, [d]: i }))),
    [{}],
  );
}
