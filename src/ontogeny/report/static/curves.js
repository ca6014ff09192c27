// Lines over a dimension, one for each label of a series, with intervals and grey null bands.

const DIRECT_LABELS = 6;

function drawCurves(figure, view) {
  const { node, palette } = view;
  const xAxis = node.axes[figure.axes.x];
  const seriesAxis = figure.axes.series ? node.axes[figure.axes.series] : null;
  const facets = view.facets();
  const shown = view.shown(figure.axes.series);
  const styles = seriesAxis
    ? seriesStyles(seriesAxis, palette)
    : [{ colour: palette.base.ink, dash: "solid" }];
  const direct = seriesAxis && shown.length <= DIRECT_LABELS;
  const panels = facets.map((facet) => {
    const lines = shown.map((s) =>
      readLine(
        figure,
        view,
        { ...facet.index, ...seriesIndex(figure, s) },
        {
          label: seriesAxis ? formatLabel(seriesAxis, s) : "",
          full: seriesAxis ? String(seriesAxis.values[s]) : "",
          ...styles[s],
        },
      ),
    );
    return { ...facet, lines, bands: figure.bands.map((band) => readBand(figure, view, band, facet, shown)) };
  });
  const names = direct ? shown.map((s) => shortened(formatLabel(seriesAxis, s), 18)) : [];
  const frame = layPanels(panels.length, view.width, {
    left: 54,
    right: seriesAxis ? (direct ? 26 + widest(names) : 62) : 12,
    top: facets.length > 1 ? 22 : 2,
    bottom: 42,
    between: 6,
    gap: 18,
    minimum: 170,
    panel: panels.length > 3 ? 150 : panels.length > 1 ? 180 : 250,
  });
  const layout = plotLayout(frame, palette);
  const span = valueSpan(panels, figure.yScale);
  const places = dimensionPlaces(xAxis);
  const traces = [];
  panels.forEach((panel, i) => {
    const box = frame.boxes[i];
    placeAxes(
      layout,
      frame,
      i,
      dimensionAxis(xAxis, palette, box.width, box.bottom),
      valueAxis(palette, span, figure.yScale),
    );
    const axes = { xaxis: axisName("x", i), yaxis: axisName("y", i) };
    panel.bands.forEach((band) => traces.push(bandTrace(band, places, palette, axes)));
    panel.lines.forEach((line) => traces.push(...lineTraces(line, xAxis, places, panel, axes)));
    traces.push(missingTrace(panel, places, span, figure.yScale, palette, axes));
    if (xAxis.kind === "step") layout.shapes.push(...stepMarks(frame, i, palette));
    if (facets.length > 1) layout.annotations.push(panelTitle(frame, i, panel.title, palette));
    if (!panel.lines.some((line) => line.ys.some(Number.isFinite)))
      layout.annotations.push(emptyNote(frame, i));
    layout.annotations.push(...bandLabels(panel, places, span, figure.yScale, box, i, palette));
    if (direct && box.last) labelLines(layout, panel.lines, span, figure.yScale, frame, i, palette);
  });
  layout.annotations.push(
    axisTitle(frame, dimensionWords(xAxis, figure.axes.x)),
    headLine(view.unitWords(), palette),
  );
  if (seriesAxis && !direct)
    traces.push(seriesBar(seriesAxis, shown, styles, frame, palette, figure.axes.series));
  return {
    traces,
    layout,
    frame,
    panels,
    xAxis,
    hover: (panel, place, x, y) =>
      nearestLine(figure, view, panels[panel], nearest(places, place), y, span, frame.boxes[panel]),
  };
}

function seriesIndex(figure, s) {
  return figure.axes.series ? { [figure.axes.series]: s } : {};
}

// Values of one line, with what hover needs.
function readLine(figure, view, index, look) {
  const count = view.node.axes[figure.axes.x].values.length;
  const point = (i) => ({ ...index, [figure.axes.x]: i });
  const ys = range(count).map((i) => view.value(point(i)));
  const ends = figure.interval.length
    ? range(count).map((i) => figure.interval.map((pair) => view.paired(pair, point(i))))
    : null;
  const reasons = ys.map((y, i) => (Number.isFinite(y) ? null : view.reason(point(i))));
  return { ...look, ys, ends, reasons, point };
}

// A band over x: where it differs between series, the widest over those that are shown.
function readBand(figure, view, band, facet, shown) {
  const count = view.node.axes[figure.axes.x].values.length;
  const lower = [];
  const upper = [];
  for (let i = 0; i < count; i += 1) {
    const both = shown
      .map((s) => {
        const index = { ...facet.index, ...seriesIndex(figure, s), [figure.axes.x]: i };
        return [view.paired(band.lower, index), view.paired(band.upper, index)];
      })
      .filter(([a, b]) => Number.isFinite(a) && Number.isFinite(b));
    lower.push(both.length ? Math.min(...both.map((b) => b[0])) : NaN);
    upper.push(both.length ? Math.max(...both.map((b) => b[1])) : NaN);
  }
  return { label: band.label, lower, upper };
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

function area(outlined, colour, axes, meta) {
  return {
    type: "scatter",
    mode: "lines",
    ...outlined,
    ...axes,
    fill: "toself",
    fillcolor: colour,
    line: { width: 0 },
    hoverinfo: "skip",
    meta,
  };
}

function bandTrace(band, places, palette, axes) {
  const flat = band.lower.every((low, i) => !Number.isFinite(low) || low === band.upper[i]);
  const trace = area(outline(places, band.lower, band.upper), withAlpha(palette.base.null, 0.32), axes, {
    part: "band",
    label: band.label,
  });
  return flat ? { ...trace, line: { width: 2, color: palette.base.null } } : trace;
}

function lineTraces(line, xAxis, places, panel, axes) {
  const meta = { part: "line", series: line.full, facet: panel.title };
  const alone = line.ys.filter(Number.isFinite).length < 2;
  const trace = {
    type: "scatter",
    mode: alone ? "markers" : "lines",
    x: places,
    y: line.ys,
    customdata: xAxis.values,
    ...axes,
    meta,
    line: { color: line.colour, width: 1.7, dash: line.dash },
    marker: { color: line.colour, size: 6 },
    connectgaps: false,
    hoverinfo: "skip",
  };
  if (!line.ends) return [trace];
  const [lower, upper] = [0, 1].map((k) => line.ends.map((e) => e[k]));
  return [
    area(outline(places, lower, upper), withAlpha(line.colour, 0.14), axes, { ...meta, part: "interval" }),
    trace,
  ];
}

// A cross on the axis wherever a value is missing for a reason that hover tells.
function missingTrace(panel, places, span, scale, palette, axes) {
  const gaps = range(places.length).filter((i) => panel.lines.some((line) => line.reasons[i]));
  const floor = scale === "log" ? 10 ** span[0] : span[0];
  return {
    type: "scatter",
    mode: "markers",
    x: gaps.map((i) => places[i]),
    y: gaps.map(() => floor),
    ...axes,
    hoverinfo: "skip",
    cliponaxis: false,
    meta: { part: "missing" },
    marker: { symbol: "x-thin", size: 7, line: { width: 1.4, color: palette.base["ink-2"] } },
  };
}

function valueSpan(panels, scale) {
  const all = panels
    .flatMap((p) => [
      ...p.lines.flatMap((l) => [...l.ys, ...(l.ends ? l.ends.flat() : [])]),
      ...p.bands.flatMap((b) => [...b.lower, ...b.upper]),
    ])
    .filter((v) => Number.isFinite(v) && (scale !== "log" || v > 0));
  let low = Infinity;
  let high = -Infinity;
  for (const v of all) {
    low = Math.min(low, v);
    high = Math.max(high, v);
  }
  if (low > high) return [0, 1];
  if (scale === "log") return pad(Math.log10(low), Math.log10(high), 0.05);
  // Zero belongs to the picture where it is near.
  if (low >= 0 && low < 0.4 * high) return [0, high * 1.06 || 1];
  return pad(low, high, 0.06);
}

function pad(low, high, share) {
  const room = (high - low) * share || Math.abs(high) * 0.05 || 0.5;
  return [low - room, high + room];
}

// Height of a value in its panel, in pixels from the top.
function pixel(value, span, scale, height) {
  const v = scale === "log" ? Math.log10(value) : value;
  return (height * (span[1] - v)) / (span[1] - span[0]);
}

// What is nearest to the pointer at a step: the line by its height; a missing value lies on the axis.
function nearestLine(figure, view, panel, i, y, span, box) {
  const gap = (line) => {
    if (Number.isFinite(line.ys[i])) return Math.abs(pixel(line.ys[i], span, figure.yScale, box.height) - y);
    return line.reasons[i] ? Math.abs(box.height - y) : Infinity;
  };
  const line = panel.lines.reduce((a, b) => (gap(b) < gap(a) ? b : a));
  const told = view.describe(
    line.point(i),
    [panel.title, line.label],
    line.ys[i],
    line.ends ? line.ends[i] : null,
  );
  const others = panel.lines.filter((other) => other !== line && other.reasons[i]);
  return {
    ...told,
    rest: [...told.rest, ...others.slice(0, 3).map((other) => `${other.label}: ${other.reasons[i]}`)],
  };
}
