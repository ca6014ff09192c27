// One value for each pair of labels; cells without a value are hatched.

function drawHeatmap(figure, view) {
  const { node, palette } = view;
  const xAxis = node.axes[figure.axes.x];
  const yAxis = node.axes[figure.axes.y];
  const facets = view.facets();
  const shown = view.shown(figure.axes.y);
  const upward = yAxis.kind !== "category";
  const cell = Math.max(4, Math.min(18, (facets.length > 8 ? 128 : 220) / shown.length));
  const labels = shown.map((s) => shortened(formatLabel(yAxis, s), 22));
  const frame = layPanels(facets.length, view.width, {
    left: 12 + widest(labels),
    right: 62,
    top: facets.length > 1 ? 22 : 4,
    bottom: 42,
    between: 6,
    gap: 14,
    minimum: 130,
    panel: upward ? Math.min(260, Math.max(96, shown.length * cell)) : Math.max(40, shown.length * cell),
  });
  const layout = plotLayout(frame, palette);
  const xEdges = dimensionEdges(xAxis);
  const yEdges = upward ? dimensionEdges(yAxis) : range(shown.length).map((k) => [k - 0.5, k + 0.5]);
  const panels = facets.map((facet) => ({
    ...facet,
    z: shown.map((s) =>
      range(xAxis.values.length).map((i) =>
        view.value({ ...facet.index, [figure.axes.y]: s, [figure.axes.x]: i }),
      ),
    ),
  }));
  const traces = [];
  panels.forEach((panel, i) => {
    const box = frame.boxes[i];
    const axes = { xaxis: axisName("x", i), yaxis: axisName("y", i) };
    placeAxes(
      layout,
      frame,
      i,
      dimensionAxis(xAxis, palette, box.width, box.bottom),
      heatmapRows(yAxis, yEdges, labels, upward, box, palette),
    );
    traces.push(
      {
        type: "heatmap",
        ...axes,
        ...cellGrid(xEdges, yEdges, panel.z),
        coloraxis: "coloraxis",
        hoverinfo: "skip",
        zsmooth: false,
        meta: { part: "heatmap", facet: panel.title },
      },
      hatchTrace(xEdges, yEdges, panel.z, palette, axes),
    );
    if (xAxis.kind === "step") layout.shapes.push(...stepMarks(frame, i, palette));
    if (facets.length > 1) layout.annotations.push(panelTitle(frame, i, panel.title, palette));
  });
  layout.annotations.push(
    axisTitle(frame, dimensionWords(xAxis, figure.axes.x)),
    headLine(dimensionWords(yAxis, figure.axes.y), palette),
  );
  layout.coloraxis = {
    colorscale: palette.values.map((c, k) => [k / (palette.values.length - 1), c]),
    colorbar: colourBar(frame, palette, {
      title: shortened(view.unitWords(), 9),
      nticks: 5,
      separatethousands: true,
    }),
    ...valueRange(panels),
  };
  return {
    traces,
    layout,
    frame,
    panels,
    xAxis,
    hover: (panel, place, x, y, height) => {
      const i = edgeIndex(xEdges, place);
      const share = upward
        ? yEdges[0][0] + (1 - y / height) * (yEdges.at(-1)[1] - yEdges[0][0])
        : (y / height) * shown.length - 0.5;
      const k = edgeIndex(yEdges, share);
      const index = { ...panels[panel].index, [figure.axes.y]: shown[k], [figure.axes.x]: i };
      return view.describe(index, [panels[panel].title, labels[k]], panels[panel].z[k][i], null);
    },
  };
}

// The same colours in all panels; one value alone lies in the middle of the scale.
function valueRange(panels) {
  let low = Infinity;
  let high = -Infinity;
  for (const v of panels.flatMap((p) => p.z).flat()) {
    if (Number.isFinite(v)) {
      low = Math.min(low, v);
      high = Math.max(high, v);
    }
  }
  if (low > high) return { cmin: 0, cmax: 1, showscale: false };
  return low === high ? { cmin: low - 0.5, cmax: high + 0.5 } : { cmin: low, cmax: high };
}

function heatmapRows(yAxis, yEdges, labels, upward, box, palette) {
  const count = labels.length;
  const shared = { ...baseAxis(palette), showline: false, ticks: "" };
  if (yAxis.kind === "step")
    return {
      ...dimensionAxis(yAxis, palette, box.height, true),
      range: [yEdges[0][0], yEdges.at(-1)[1]],
      ticks: "",
      showline: false,
    };
  if (upward)
    return {
      ...shared,
      range: [-0.5, count - 0.5],
      tickvals: range(count).filter((k) => k % Math.ceil((count * 16) / box.height) === 0),
      ticktext: labels.filter((_, k) => k % Math.ceil((count * 16) / box.height) === 0),
    };
  const every = Math.ceil((count * 13) / box.height);
  const ticks = range(count).filter((k) => k % every === 0);
  return {
    ...shared,
    range: [count - 0.5, -0.5],
    tickvals: ticks,
    ticktext: ticks.map((k) => plotText(labels[k])),
  };
}

// plotly.js wants edges that touch; where cells stand apart (step 0) an empty cell is put between.
function cellGrid(xEdges, yEdges, z) {
  const [x, xFrom] = touching(xEdges);
  const [y, yFrom] = touching(yEdges);
  return {
    x,
    y,
    z: yFrom.map((k) =>
      xFrom.map((i) => (k === null || i === null || !Number.isFinite(z[k][i]) ? null : z[k][i])),
    ),
  };
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

function hatchTrace(xEdges, yEdges, z, palette, axes) {
  const bars = { x: [], width: [], base: [], y: [] };
  z.forEach((row, k) => {
    row.forEach((value, i) => {
      if (Number.isFinite(value)) return;
      bars.x.push((xEdges[i][0] + xEdges[i][1]) / 2);
      bars.width.push(xEdges[i][1] - xEdges[i][0]);
      bars.base.push(yEdges[k][0]);
      bars.y.push(yEdges[k][1] - yEdges[k][0]);
    });
  });
  return {
    type: "bar",
    ...bars,
    ...axes,
    hoverinfo: "skip",
    meta: { part: "missing" },
    marker: {
      color: "rgba(0,0,0,0)",
      pattern: { shape: "/", size: 5, solidity: 0.25, fgcolor: palette.base.null, bgcolor: "rgba(0,0,0,0)" },
      line: { width: 0 },
    },
  };
}

function edgeIndex(edges, place) {
  const inside = edges.findIndex(([left, right]) => place >= left && place <= right);
  return inside >= 0
    ? inside
    : nearest(
        edges.map(([l, r]) => (l + r) / 2),
        place,
      );
}
