// Lines over a dimension, one for each label of a series, with intervals and grey null bands.

const DIRECT_LABELS = 6;

function drawCurves(figure, view) {
  const { node, palette } = view;
  const xAxis = node.axes[figure.axes.x];
  const seriesAxis = figure.axes.series ? node.axes[figure.axes.series] : null;
  const facets = view.facets();
  const shown = view.shown(figure.axes.series);
  const styles = seriesAxis ? seriesStyles(seriesAxis, palette) : [{ colour: palette.base.ink, dash: "solid" }];
  const direct = seriesAxis && shown.length <= DIRECT_LABELS;
  const panels = facets.map((facet) => {
    const lines = shown.map((s) => readLine(figure, view, { ...facet.index, ...seriesIndex(figure, s) }, {
      label: seriesAxis ? formatLabel(seriesAxis, s) : "", full: seriesAxis ? String(seriesAxis.values[s]) : "", ...styles[s],
    }));
    return { ...facet, lines, bands: figure.bands.map((band) => readBand(figure, view, band, facet, shown)) };
  });
  const widest = direct ? Math.max(...shown.map((s) => formatLabel(seriesAxis, s).length)) : 0;
  const frame = layPanels(panels.length, view.width, {
    left: 54, right: seriesAxis ? (direct ? 16 + Math.min(widest, 18) * 6.3 : 62) : 12,
    top: facets.length > 1 ? 26 : 10, bottom: 42, between: 8, gap: 18, minimum: 170,
    panel: panels.length > 3 ? 150 : panels.length > 1 ? 180 : 250,
  });
  const layout = plotLayout(frame, palette);
  const span = valueSpan(panels, figure.yScale);
  const places = dimensionPlaces(xAxis);
  const traces = [];
  panels.forEach((panel, i) => {
    const box = frame.boxes[i];
    placeAxes(layout, frame, i, dimensionAxis(xAxis, palette, box.width, box.bottom), valueAxis(palette, span, figure.yScale));
    const axes = { xaxis: axisName("x", i), yaxis: axisName("y", i) };
    panel.bands.forEach((band) => traces.push(bandTrace(band, places, palette, axes)));
    panel.lines.forEach((line) => traces.push(...lineTraces(line, xAxis, places, panel, axes)));
    if (xAxis.kind === "step") layout.shapes.push(...stepMarks(frame, i, palette));
    if (facets.length > 1) layout.annotations.push(panelTitle(frame, i, panel.title, palette));
    layout.annotations.push(...bandLabels(panel, places, span, figure.yScale, box, i, palette));
    if (direct && box.last) layout.annotations.push(...lineLabels(panel.lines, span, figure.yScale, frame, i));
  });
  layout.annotations.push(axisTitle(frame, xAxis.kind === "step" ? "training step" : figure.axes.x), unitTitle(figure, view, frame));
  if (seriesAxis && !direct) traces.push(seriesBar(seriesAxis, shown, styles, frame, palette, figure.axes.series));
  return {
    traces, layout, frame, panels, xAxis,
    hover: (panel, place, x, y) => nearestLine(figure, view, panels[panel], xAxis, places, place, y, span, frame.boxes[panel]),
  };
}

function seriesIndex(figure, s) { return figure.axes.series ? { [figure.axes.series]: s } : {}; }

// Values of one line, with what hover needs.
function readLine(figure, view, index, look) {
  const count = view.node.axes[figure.axes.x].values.length;
  const point = (i) => ({ ...index, [figure.axes.x]: i });
  const ys = range(count).map((i) => view.value(point(i)));
  const ends = figure.interval.length
    ? range(count).map((i) => figure.interval.map((pair) => view.paired(pair, point(i)))) : null;
  return { ...look, ys, ends, point };
}

// A band over x: where it differs between series, the widest over those that are shown.
function readBand(figure, view, band, facet, shown) {
  const count = view.node.axes[figure.axes.x].values.length;
  const lower = [];
  const upper = [];
  for (let i = 0; i < count; i += 1) {
    const both = shown.map((s) => {
      const index = { ...facet.index, ...seriesIndex(figure, s), [figure.axes.x]: i };
      return [view.paired(band.lower, index), view.paired(band.upper, index)];
    }).filter(([a, b]) => Number.isFinite(a) && Number.isFinite(b));
    lower.push(both.length ? Math.min(...both.map((b) => b[0])) : NaN);
    upper.push(both.length ? Math.max(...both.map((b) => b[1])) : NaN);
  }
  return { label: band.label, lower, upper };
}

// A closed outline for every stretch without gaps.
function outline(places, lower, upper) {
  const xs = [];
  const ys = [];
  let start = null;
  const close = (stop) => {
    const stretch = range(stop - start).map((k) => start + k);
    xs.push(...stretch.map((k) => places[k]), ...stretch.reverse().map((k) => places[k]), null);
    ys.push(...stretch.reverse().map((k) => upper[k]), ...stretch.reverse().map((k) => lower[k]), null);
  };
  for (let i = 0; i <= places.length; i += 1) {
    const good = i < places.length && Number.isFinite(lower[i]) && Number.isFinite(upper[i]);
    if (good && start === null) start = i;
    if (!good && start !== null) { close(i); start = null; }
  }
  return { x: xs, y: ys };
}

function area(outlined, colour, axes, meta) {
  return { type: "scatter", mode: "lines", ...outlined, ...axes, fill: "toself", fillcolor: colour, line: { width: 0 }, hoverinfo: "skip", meta };
}

function bandTrace(band, places, palette, axes) {
  return area(outline(places, band.lower, band.upper), withAlpha(palette.base.null, 0.32), axes, { part: "band", label: band.label });
}

function lineTraces(line, xAxis, places, panel, axes) {
  const meta = { part: "line", series: line.full, facet: panel.title };
  const alone = line.ys.filter(Number.isFinite).length < 2;
  const trace = {
    type: "scatter", mode: alone ? "markers" : "lines", x: places, y: line.ys, customdata: xAxis.values, ...axes, meta,
    line: { color: line.colour, width: 1.7, dash: line.dash }, marker: { color: line.colour, size: 6 },
    connectgaps: false, hoverinfo: "skip",
  };
  if (!line.ends) return [trace];
  const [lower, upper] = [0, 1].map((k) => line.ends.map((e) => e[k]));
  return [area(outline(places, lower, upper), withAlpha(line.colour, 0.14), axes, { ...meta, part: "interval" }), trace];
}

function valueSpan(panels, scale) {
  const all = panels.flatMap((p) => [
    ...p.lines.flatMap((l) => [...l.ys, ...(l.ends ? l.ends.flat() : [])]), ...p.bands.flatMap((b) => [...b.lower, ...b.upper]),
  ]).filter((v) => Number.isFinite(v) && (scale !== "log" || v > 0));
  let low = Infinity;
  let high = -Infinity;
  for (const v of all) { low = Math.min(low, v); high = Math.max(high, v); }
  if (low > high) return scale === "log" ? [0, 1] : [0, 1];
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

// Labels at the right end of lines, pushed apart so that none covers another.
function lineLabels(lines, span, scale, frame, i) {
  const box = frame.boxes[i];
  const ends = lines.map((line) => ({ line, value: line.ys.findLast(Number.isFinite) }))
    .filter((e) => e.value !== undefined)
    .map((e) => ({ ...e, y: pixel(e.value, span, scale, box.height) })).sort((a, b) => a.y - b.y);
  ends.forEach((e, k) => { if (k) e.y = Math.max(e.y, ends[k - 1].y + 13); });
  const over = ends.length ? Math.max(0, ends[ends.length - 1].y - box.height) : 0;
  ends.reverse().forEach((e, k) => { e.y = Math.min(e.y - (k ? 0 : over), k ? ends[k - 1].y - 13 : Infinity); });
  return ends.map((e) => note(shortened(e.line.label, 18), (box.x + box.width + 6) / frame.width,
    1 - (box.y + e.y) / frame.height, { font: { color: e.line.colour, size: 11.5 } }));
}

function shortened(text, length) { return text.length > length ? `${text.slice(0, length - 1)}…` : text; }

// The name of each band, inside it where the lines leave most room.
function bandLabels(panel, places, span, scale, box, i, palette) {
  if (i && box.width < 200) return [];
  return panel.bands.flatMap((band) => {
    const spots = [0.08, 0.3, 0.55, 0.8].map((share) => Math.round(share * (places.length - 1)))
      .filter((k) => Number.isFinite(band.upper[k])).map((k) => {
        const y = pixel(band.upper[k], span, scale, box.height);
        const room = Math.min(...panel.lines.map((l) => Math.abs(pixel(l.ys[k], span, scale, box.height) - y + 8) || 0), 60);
        return { k, y, room };
      });
    if (!spots.length) return [];
    const best = spots.reduce((a, b) => (b.room > a.room ? b : a));
    const right = best.k > places.length / 2;
    return [{
      text: plotText(band.label), x: places[best.k], y: scale === "log" ? Math.log10(band.upper[best.k]) : band.upper[best.k],
      xref: axisName("x", i), yref: axisName("y", i), showarrow: false, xanchor: right ? "right" : "left",
      yanchor: best.y < 14 ? "top" : "bottom", font: { size: 11, color: palette.base["ink-3"] },
    }];
  });
}

function unitTitle(figure, view, frame) {
  const words = view.relative ? figure.relativeLabel : figure.units && figure.units !== "1" ? figure.units : "";
  return note(words, 0, 1, { yanchor: "top", font: { size: 11, color: view.palette.base["ink-3"] }, yshift: frame.boxes[0].y > 20 ? 2 : 0 });
}

// A colour bar for more series than can be labelled.
function seriesBar(axis, shown, styles, frame, palette, name) {
  const count = shown.length;
  const every = Math.ceil(count / 8);
  const ticks = range(count).filter((k) => k % every === 0 || k === count - 1);
  const scale = shown.flatMap((s, k) => [[k / count, styles[s].colour], [(k + 1) / count, styles[s].colour]]);
  return {
    type: "scatter", mode: "markers", x: [null], y: [null], hoverinfo: "skip", meta: { part: "bar" },
    marker: {
      color: [0], cmin: -0.5, cmax: count - 0.5, colorscale: scale, showscale: true,
      colorbar: colourBar(frame, palette, { title: name, tickvals: ticks, ticktext: ticks.map((k) => plotText(shortened(axis.short ? axis.short[shown[k]].replace(/^layer /, "") : formatLabel(axis, shown[k]), 8))) }),
    },
  };
}

function colourBar(frame, palette, more) {
  const box = frame.boxes[0];
  const { title, ...rest } = more;
  return {
    thickness: 8, thicknessmode: "pixels", len: Math.max(box.height, 90), lenmode: "pixels", outlinewidth: 0, xpad: 0, ypad: 0,
    x: (frame.width - 50) / frame.width, xanchor: "left", y: 1 - box.y / frame.height, yanchor: "top",
    ticks: "", tickfont: { size: 11, color: palette.base["ink-2"] }, title: { text: plotText(title), side: "top", font: { size: 11 } }, ...rest,
  };
}

// What is nearest to the pointer: the step by its place, then the line by its height.
function nearestLine(figure, view, panel, xAxis, places, place, y, span, box) {
  const i = nearest(places, place);
  const ranked = panel.lines.map((line) => ({
    line, gap: Math.abs(pixel(line.ys[i], span, figure.yScale, box.height) - y),
  })).sort((a, b) => (Number.isFinite(a.gap) ? a.gap : 1e9) - (Number.isFinite(b.gap) ? b.gap : 1e9));
  if (!ranked.length) return null;
  const { line } = ranked[0];
  return view.describe(line.point(i), [panel.title, line.label], line.ys[i], line.ends ? line.ends[i] : null);
}
