// Lines over a dimension, one for each label of a series, with intervals and grey null bands.

const DIRECT_LABELS = 6;

class CurvesPicture extends Picture {
  read() {
    const { figure, view } = this;
    this.xAxis = this.axis("x");
    this.series = this.axis("series");
    this.places = dimensionPlaces(this.xAxis);
    this.shown = view.shown(figure.axes.series);
    this.direct = this.series !== null && this.shown.length <= DIRECT_LABELS;
    const looks = this.looks();
    for (const panel of this.panels) {
      panel.lines = this.shown.map((s, k) => ({ ...looks[k], ...this.readLine(this.index(panel, s)) }));
      panel.bands = figure.bands.map((band) => this.readBand(band, panel));
      panel.regimes = readRegimes(this, panel);
    }
    this.span = this.findSpan();
  }

  // Name, colour and dash of every line.
  looks() {
    const { series, palette } = this;
    if (!series) return [{ label: "", full: "", colour: palette.base.ink, dash: "solid" }];
    const styles = seriesStyles(series, palette, !this.figure.reference);
    return this.shown.map((s) => ({
      label: formatLabel(series, s),
      full: fullLabel(series, s),
      ...styles[s],
    }));
  }

  index(panel, s) {
    const { series } = this.figure.axes;
    return series ? { ...panel.index, [series]: s } : panel.index;
  }

  // Values of one line along x, with their intervals and, where missing, the reasons.
  readLine(index) {
    const { figure, view } = this;
    const point = (i) => ({ ...index, [figure.axes.x]: i });
    const all = range(this.places.length).map(point);
    const ys = all.map((where) => view.value(where));
    const ends = figure.interval
      ? all.map((where) => figure.interval.map((name) => view.companion(name, where)))
      : null;
    const reasons = ys.map((y, i) => (Number.isFinite(y) ? null : view.reason(point(i))));
    const { reference } = figure;
    const theory = reference ? all.map((where) => view.companion(reference, where)) : null;
    return { ys, ends, theory, reasons, point };
  }

  // A band along x: where it differs between series, the widest over those that are shown.
  readBand(band, panel) {
    const { figure, view } = this;
    const widestAt = (i) => {
      const both = this.shown
        .map((s) => ({ ...this.index(panel, s), [figure.axes.x]: i }))
        .map((where) => [view.companion(band.lower, where), view.companion(band.upper, where)])
        .filter((ends) => ends.every(Number.isFinite));
      if (!both.length) return [NaN, NaN];
      return [Math.min(...both.map((ends) => ends[0])), Math.max(...both.map((ends) => ends[1]))];
    };
    const ends = range(this.places.length).map(widestAt);
    const [lower, upper] = [0, 1].map((k) => ends.map((e) => e[k]));
    return { label: band.label, control: band.control, lower, upper };
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

  // Height of a value in its panel, in pixels from the top.
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
      bottom: axisRoom(),
      between: 6,
      gap: paper.printing ? 10 : 18,
      minimum: paper.printing ? 56 : 170,
      panel: paper.printing ? (count > 1 ? 54 : 72) : count > 3 ? 150 : count > 1 ? 180 : 250,
    };
  }

  yLayout() {
    return valueAxis(this.palette, this.span, this.figure.y_scale);
  }

  headWords() {
    const theory = this.figure.reference ? `╌╌ ${this.figure.reference_label}` : "";
    return [this.view.unitWords(), theory].filter(Boolean).join("   ");
  }

  panelTraces(panel) {
    return [
      ...panel.bands.map((band) => this.bandTrace(band)),
      ...panel.lines.flatMap((line) => this.lineTraces(line, panel)),
      this.missingTrace(panel),
    ];
  }

  area(lower, upper, colour, meta) {
    const filled = { fill: "toself", fillcolor: colour, line: { width: 0 } };
    return { type: "scatter", mode: "lines", ...outline(this.places, lower, upper), ...filled, meta };
  }

  // A band without width is drawn as a grey line; that of control runs is lighter, its edges dotted.
  bandTrace(band) {
    const grey = this.palette.base.null;
    const flat = band.lower.every((low, i) => !Number.isFinite(low) || low === band.upper[i]);
    const meta = { part: band.control ? "control" : "band", label: band.label };
    const trace = this.area(band.lower, band.upper, withAlpha(grey, band.control ? 0.16 : 0.32), meta);
    const edge = { width: flat ? 2 : 1, color: grey, dash: band.control ? "dot" : "solid" };
    return { ...trace, line: edge };
  }

  lineTraces(line, panel) {
    const meta = { part: "line", series: line.full, facet: panel.title };
    const alone = line.ys.filter(Number.isFinite).length < 2;
    const trace = {
      type: "scatter",
      mode: alone ? "markers" : "lines",
      x: this.places,
      y: line.ys,
      customdata: this.xAxis.values,
      line: { color: line.colour, width: 1.7, dash: line.dash },
      marker: { color: line.colour, size: 6 },
      connectgaps: false,
      meta,
    };
    const traces = line.theory ? [trace, this.theoryTrace(line, meta)] : [trace];
    if (!line.ends) return traces;
    const [lower, upper] = [0, 1].map((k) => line.ends.map((ends) => ends[k]));
    return [this.area(lower, upper, withAlpha(line.colour, 0.14), { ...meta, part: "interval" }), ...traces];
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
    const words = i && box.width < 200 ? [] : bandLabels(panel, this.places, toY, box, i, this.palette);
    if (!panel.lines.some((line) => line.ys.some(Number.isFinite))) words.push(emptyNote(this.frame, box));
    for (const regime of panel.regimes) {
      this.layout.shapes.push(...regimeShapes(regime, i, box, this.palette));
      words.push(...regimeWords(regime, i, this.palette));
    }
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
    const i = nearest(this.places, spot.place);
    const gap = (line) => {
      if (Number.isFinite(line.ys[i])) return Math.abs(this.toPixels(line.ys[i], box) - spot.y);
      return line.reasons[i] ? Math.abs(box.height - spot.y) : Infinity;
    };
    const line = panel.lines.reduce((a, b) => (gap(b) < gap(a) ? b : a));
    const told = this.view.describe(line.point(i), [panel.title, line.full], line.ys[i], line.ends?.[i]);
    const others = panel.lines.filter((other) => other !== line && other.reasons[i]);
    const failures = others.slice(0, 3).map((other) => `${other.label}: ${other.reasons[i]}`);
    const theory = line.theory ? [`${this.figure.reference_label}: ${formatNumber(line.theory[i])}`] : [];
    const near = panel.regimes.filter((regime) => Math.abs(regime.at - spot.place) < 0.02).map(regimeFact);
    const beside = panel.bands.map((band) => bandWords(band, i)).filter(Boolean);
    return { ...told, rest: [...theory, ...told.rest, ...beside, ...near, ...failures] };
  }
}

// What a band holds at a place: its two ends, or the one value of a line.
function bandWords(band, i) {
  const [low, high] = [band.lower[i], band.upper[i]];
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
