// One dot for each row beside the grey bands of its null models; a filled dot lies outside all of them.

function drawNulls(figure, view) {
  const { node, palette } = view;
  const rowAxis = node.axes[figure.axes.rows];
  const facets = view.facets();
  const shown = view.shown(figure.axes.rows);
  const labels = shown.map((s) => shortened(formatLabel(rowAxis, s), view.width < 500 ? 20 : 36));
  const styles = seriesStyles(rowAxis, palette);
  const extra = figure.bands.length > 1 ? 0.8 : 0;
  const frame = layPanels(facets.length, view.width, {
    left: 14 + widest(labels),
    right: 16,
    top: facets.length > 1 ? 36 : 16,
    bottom: 42,
    between: 6,
    gap: 18,
    minimum: 180,
    panel: Math.max(54, (shown.length + extra) * 19),
  });
  const layout = plotLayout(frame, palette);
  const panels = facets.map((facet) => ({
    ...facet,
    rows: shown.map((s) =>
      readNullRow(
        figure,
        view,
        { ...facet.index, [figure.axes.rows]: s },
        labels[shown.indexOf(s)],
        rowAxis.group ? styles[s].colour : palette.base.ink,
      ),
    ),
  }));
  const span = nullSpan(panels);
  const traces = [];
  panels.forEach((panel, i) => {
    const box = frame.boxes[i];
    const axes = { xaxis: axisName("x", i), yaxis: axisName("y", i) };
    placeAxes(
      layout,
      frame,
      i,
      { ...valueAxis(palette, span, "linear"), showline: true, showticklabels: box.bottom },
      {
        ...baseAxis(palette),
        showline: false,
        ticks: "",
        range: [shown.length - 0.4 + extra, -0.6],
        tickvals: range(shown.length),
        ticktext: labels.map(plotText),
      },
    );
    figure.bands.forEach((band, b) => {
      traces.push(nullTrace(panel.rows, b, figure.bands.length, palette, axes, band.label));
      layout.annotations.push(...nullLabel(panel.rows, b, figure.bands, frame, i, palette, span));
    });
    traces.push(...dotTraces(panel, axes, palette, rowAxis, shown));
    if (facets.length > 1) layout.annotations.push(panelTitle(frame, i, panel.title, palette));
    if (facets.length > 1) layout.annotations.at(-1).yshift = 16;
  });
  layout.annotations.push(axisTitle(frame, view.axisWords()));
  if (figure.bands.length) layout.annotations.push(headLine("● outside every null   ○ within one", palette));
  return {
    traces,
    layout,
    frame,
    panels,
    xAxis: null,
    hover: (panel, place, x, y, height) => {
      const k = Math.max(
        0,
        Math.min(shown.length - 1, Math.round((y / height) * (shown.length + 0.2 + extra) - 0.6)),
      );
      const row = panels[panel].rows[k];
      if (!row) return null;
      const bands = row.bands.map(
        (b, j) =>
          Number.isFinite(b[0]) && `${figure.bands[j].label}: ${formatNumber(b[0])} to ${formatNumber(b[1])}`,
      );
      const told = view.describe(
        row.index,
        [panels[panel].title, String(rowAxis.values[shown[k]])],
        row.value,
        row.ends,
      );
      return { ...told, rest: [...told.rest, ...bands] };
    },
  };
}

function readNullRow(figure, view, index, label, colour) {
  const value = view.value(index);
  const ends = figure.interval.length ? figure.interval.map((pair) => view.paired(pair, index)) : null;
  const bands = figure.bands.map((b) => [view.paired(b.lower, index), view.paired(b.upper, index)]);
  const outside = Number.isFinite(value) && bands.every(([low, high]) => !(value >= low && value <= high));
  return { index, label, colour, value, ends, bands, outside };
}

function nullSpan(panels) {
  const all = panels
    .flatMap((p) => p.rows.flatMap((r) => [r.value, ...(r.ends ?? []), ...r.bands.flat()]))
    .filter(Number.isFinite);
  if (!all.length) return [0, 1];
  const [low, high] = [Math.min(...all), Math.max(...all)];
  return pad(low >= 0 && low < 0.5 * high ? 0 : low, high, 0.05);
}

// Bands of several nulls lie above one another within a row.
function bandShift(b, count) {
  return (b - (count - 1) / 2) * Math.min(0.36, 0.6 / count);
}

function nullTrace(rows, b, count, palette, axes, label) {
  const x = rows.flatMap((r) =>
    r.bands[b][0] === r.bands[b][1]
      ? [r.bands[b][0] - 1e-9, r.bands[b][1] + 1e-9, null]
      : [...r.bands[b], null],
  );
  const y = rows.flatMap((_, k) => [k + bandShift(b, count), k + bandShift(b, count), null]);
  return {
    type: "scatter",
    mode: "lines",
    x,
    y,
    ...axes,
    hoverinfo: "skip",
    meta: { part: "band", label },
    line: { color: withAlpha(palette.base.null, b % 2 ? 0.45 : 0.9), width: count > 1 ? 5 : 8 },
  };
}

// The first null is named over the top row, the second under the bottom one, others beside them.
function nullLabel(rows, b, bands, frame, i, palette, span) {
  const row = b % 2 ? rows.length - 1 : 0;
  const ends = rows[row]?.bands[b] ?? [];
  if (!ends.every(Number.isFinite)) return [];
  const middle = (ends[0] + ends[1]) / 2;
  const share = (middle - span[0]) / (span[1] - span[0]);
  return [
    {
      text: plotText(bands[b].label),
      x: middle,
      y: b % 2 ? row + 0.45 : -0.45,
      xref: axisName("x", i),
      yref: axisName("y", i),
      showarrow: false,
      xanchor: share > 0.7 ? "right" : share < 0.3 ? "left" : "center",
      yanchor: b % 2 ? "top" : "bottom",
      yshift: b % 2 ? -1 : 1,
      font: { size: 11, color: palette.base["ink-3"] },
    },
  ];
}

function dotTraces(panel, axes, palette, rowAxis, shown) {
  const ends = panel.rows.flatMap((r, k) =>
    r.ends
      ? [
          [r.ends[0], k],
          [r.ends[1], k],
          [null, null],
        ]
      : [],
  );
  const dots = {
    type: "scatter",
    mode: "markers",
    x: panel.rows.map((r) => r.value),
    y: range(panel.rows.length),
    ...axes,
    hoverinfo: "skip",
    customdata: shown.map((s) => String(rowAxis.values[s])),
    meta: { part: "dots", facet: panel.title },
    marker: {
      size: 9,
      color: panel.rows.map((r) => (r.outside ? r.colour : palette.base.paper)),
      line: { width: 1.6, color: panel.rows.map((r) => r.colour) },
    },
  };
  if (!ends.length) return [dots];
  const lines = {
    type: "scatter",
    mode: "lines",
    x: ends.map((e) => e[0]),
    y: ends.map((e) => e[1]),
    ...axes,
    hoverinfo: "skip",
    line: { color: palette.base.ink, width: 1.4 },
    meta: { part: "interval" },
  };
  return [lines, dots];
}
