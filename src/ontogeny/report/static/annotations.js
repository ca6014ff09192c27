// Words in a figure: titles, direct labels of lines and bands, colour bars; and how wide they are.

const ruler = document.createElement("canvas").getContext("2d");

function textWidth(text, size = 11.5) {
  ruler.font = `${size}px ${FONT}`;
  return ruler.measureText(text).width;
}

function widest(texts) {
  return Math.max(0, ...texts.map((text) => textWidth(text)));
}

function note(text, x, y, more = {}) {
  return {
    text: plotText(text),
    x,
    y,
    xref: "paper",
    yref: "paper",
    showarrow: false,
    xanchor: "left",
    yanchor: "middle",
    ...more,
  };
}

function panelTitle(frame, i, text, palette) {
  const box = frame.boxes[i];
  return note(text, box.x / frame.width, 1 - (box.y - 4) / frame.height, {
    yanchor: "bottom",
    xshift: 0,
    font: { size: 12, color: palette.base.ink },
  });
}

function emptyNote(frame, i) {
  const box = frame.boxes[i];
  const x = (box.x + box.width / 2) / frame.width;
  return note("not measured", x, 1 - (box.y + box.height / 2) / frame.height, { xanchor: "center" });
}

// The name of the horizontal axis, centred under the panels.
function axisTitle(frame, text) {
  const right = Math.max(...frame.boxes.map((box) => box.x + box.width));
  return note(text, (frame.boxes[0].x + right) / 2 / frame.width, 0, {
    xanchor: "center",
    yanchor: "bottom",
  });
}

// What the vertical axis counts, on the line above all panels.
function headLine(text, palette) {
  return note(text, 0, 1, { yanchor: "top", font: { size: 11, color: palette.base["ink-3"] } });
}

// Labels at the right end of lines, pushed apart so that none covers another, each with a leader
// in the colour of its line.
function labelLines(layout, lines, span, scale, frame, i, palette) {
  const box = frame.boxes[i];
  const ends = lines
    .map((line) => ({ line, value: line.ys.findLast(Number.isFinite) }))
    .filter((end) => end.value !== undefined)
    .map((end) => ({ ...end, from: pixel(end.value, span, scale, box.height) }))
    .sort((a, b) => a.from - b.from);
  const heights = spread(
    ends.map((end) => end.from),
    13,
    box.height,
  );
  const x = (pixels) => (box.x + box.width + pixels) / frame.width;
  const y = (pixels) => 1 - (box.y + pixels) / frame.height;
  ends.forEach((end, k) => {
    layout.annotations.push(note(shortened(end.line.label, 18), x(20), y(heights[k])));
    layout.shapes.push({
      type: "path",
      xref: "paper",
      yref: "paper",
      line: { color: end.line.colour, width: 1.3, dash: end.line.dash },
      path: `M${x(2)},${y(end.from)}L${x(8)},${y(heights[k])}L${x(18)},${y(heights[k])}`,
    });
  });
}

// Sorted heights moved apart to at least `gap`, none below `bottom`.
function spread(heights, gap, bottom) {
  const moved = [];
  heights.forEach((height, k) => moved.push(k ? Math.max(height, moved[k - 1] + gap) : height));
  for (let k = moved.length - 1, most = bottom; k >= 0; k -= 1, most = moved[k + 1] - gap)
    moved[k] = Math.min(moved[k], most);
  return moved;
}

// The name of each band, inside it or over it where lines and other names leave most room.
function bandLabels(panel, places, span, scale, box, i, palette) {
  if (i && box.width < 200) return [];
  const xOf = (k) => ((places[k] - places[0] + 0.03) / (places.at(-1) - places[0] + 0.06)) * box.width;
  const yOf = (value) => pixel(value, span, scale, box.height);
  const tried = range(places.length).filter((k) => k % Math.ceil(places.length / 24) === 0);
  const room = (spot) => {
    let gap = 40;
    for (const line of panel.lines) {
      for (let k = 0; k < places.length; k += 1) {
        const beside = Math.abs(xOf(k) - spot.x) > spot.half + 8;
        if (!beside && Number.isFinite(line.ys[k])) gap = Math.min(gap, Math.abs(yOf(line.ys[k]) - spot.y));
      }
    }
    return gap + (spot.inside ? 2 : 0) - Math.max(0, 8 - spot.y);
  };
  const taken = [];
  const free = (spot) =>
    taken.every((t) => Math.abs(t.y - spot.y) > 13 || Math.abs(t.x - spot.x) > t.half + spot.half + 6);
  return panel.bands.flatMap((band) => {
    const half = textWidth(band.label, 11) / 2;
    const spots = tried
      .filter((k) => Number.isFinite(band.upper[k]))
      .flatMap((k) => {
        const edge = yOf(band.upper[k]);
        const inside = edge + Math.min(9, (yOf(band.lower[k]) - edge) / 2);
        const fits = xOf(k) - half > 10 && xOf(k) + half < box.width - 4;
        return fits ? [edge - 9, inside].map((y) => ({ x: xOf(k), y, half, inside: y > edge })) : [];
      })
      .filter(free)
      .map((spot) => ({ ...spot, room: room(spot) }));
    if (!spots.length) return [];
    const best = spots.reduce((a, b) => (b.room > a.room ? b : a));
    taken.push(best);
    return [
      {
        text: plotText(band.label),
        x: best.x / box.width,
        y: 1 - best.y / box.height,
        xref: `${axisName("x", i)} domain`,
        yref: `${axisName("y", i)} domain`,
        showarrow: false,
        xanchor: "center",
        yanchor: "middle",
        font: { size: 11, color: palette.base["ink-2"] },
      },
    ];
  });
}

// A colour bar for more series than can be labelled.
function seriesBar(axis, shown, styles, frame, palette, name) {
  const count = shown.length;
  const every = Math.ceil(count / 8);
  const ticks = range(count).filter((k) => k % every === 0 || k === count - 1);
  const scale = shown.flatMap((s, k) => [
    [k / count, styles[s].colour],
    [(k + 1) / count, styles[s].colour],
  ]);
  return {
    type: "scatter",
    mode: "markers",
    x: [null],
    y: [null],
    hoverinfo: "skip",
    meta: { part: "bar" },
    marker: {
      color: [0],
      cmin: -0.5,
      cmax: count - 0.5,
      colorscale: scale,
      showscale: true,
      colorbar: colourBar(frame, palette, {
        title: name,
        tickvals: ticks,
        ticktext: ticks.map((k) =>
          plotText(
            shortened(
              axis.short ? axis.short[shown[k]].replace(/^layer /, "") : formatLabel(axis, shown[k]),
              8,
            ),
          ),
        ),
      }),
    },
  };
}

function colourBar(frame, palette, more) {
  const box = frame.boxes[0];
  const { title, ...rest } = more;
  return {
    thickness: 8,
    thicknessmode: "pixels",
    len: Math.max(box.height, 90),
    lenmode: "pixels",
    outlinewidth: 0,
    xpad: 0,
    ypad: 0,
    x: (frame.width - 50) / frame.width,
    xanchor: "left",
    y: 1 - box.y / frame.height,
    yanchor: "top",
    ticks: "",
    tickfont: { size: 11, color: palette.base["ink-2"] },
    title: { text: plotText(title), side: "top", font: { size: 11 } },
    ...rest,
  };
}
