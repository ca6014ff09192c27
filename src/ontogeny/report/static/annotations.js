// Words in a figure: titles, direct labels of lines and bands, colour bars; and how wide they are.

const ruler = document.createElement("canvas").getContext("2d");

function textWidth(text, size = plotFont()) {
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

function emptyNote(frame, box) {
  const x = (box.x + box.width / 2) / frame.width;
  return note("not measured", x, 1 - (box.y + box.height / 2) / frame.height, { xanchor: "center" });
}

// The name of the horizontal axis, centred under the panels as far as it is whole there.
function axisTitle(frame, text) {
  const right = Math.max(...frame.boxes.map((box) => box.x + box.width));
  const half = Math.min(textWidth(text) / 2 + 2, frame.width / 2);
  const middle = Math.max(half, Math.min((frame.boxes[0].x + right) / 2, frame.width - half));
  return note(text, middle / frame.width, 0, {
    xanchor: "center",
    yanchor: "bottom",
  });
}

// What the vertical axis counts, on the line above all panels.
function headLine(text, palette) {
  return note(text, 0, 1, { yanchor: "top", font: { size: smallFont(), color: palette.base["ink-3"] } });
}

// Right ends of lines with the heights of their labels, pushed apart so that none covers another.
function labelledEnds(lines, toY, height) {
  const ends = lines
    .map((line) => ({ line, value: line.ys.findLast(Number.isFinite) }))
    .filter((end) => end.value !== undefined)
    .map((end) => ({ ...end, from: toY(end.value) }))
    .sort((a, b) => a.from - b.from);
  const heights = ends.map((end) => end.from);
  return spread(heights, 13, height).map((to, k) => ({ ...ends[k], to }));
}

function endLabel(end, frame, box) {
  const x = (box.x + box.width + 20) / frame.width;
  const chosen = end.line.run === undefined ? {} : { name: String(end.line.run), captureevents: true };
  return note(shortened(end.line.label, 18), x, 1 - (box.y + end.to) / frame.height, chosen);
}

// From the end of a line to its label, in the line's own colour.
function leader(end, frame, box) {
  const point = (x, y) => `${(box.x + box.width + x) / frame.width},${1 - (box.y + y) / frame.height}`;
  return {
    type: "path",
    xref: "paper",
    yref: "paper",
    line: { color: end.line.colour, width: 1.3, dash: end.line.dash },
    path: `M${point(2, end.from)}L${point(8, end.to)}L${point(18, end.to)}`,
  };
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
function bandLabels(panel, places, toY, box, i, palette) {
  const toX = (k) => ((places[k] - places[0] + 0.03) / (places.at(-1) - places[0] + 0.06)) * box.width;
  const points = panel.lines.flatMap((line) => line.ys.map((value, k) => ({ x: toX(k), y: toY(value) })));
  const taken = [];
  return panel.bands.flatMap((band) => {
    const spots = bandSpots(band, places.length, toX, toY, box)
      .filter((spot) => taken.every((other) => !covers(other, spot)))
      .map((spot) => ({ ...spot, room: roomAround(spot, points) }));
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
        font: { size: smallFont(), color: palette.base["ink-2"] },
      },
    ];
  });
}

// Places where a band's name may stand: over its upper edge and under it, all along; that of control
// runs at its end.
function bandSpots(band, count, toX, toY, box) {
  const half = textWidth(band.label, smallFont()) / 2;
  const fits = (x) => x - half > 10 && x + half < box.width - 4;
  const known = range(count).filter((k) => Number.isFinite(band.upper[k]));
  const tried = known.filter((_, n) => n % Math.ceil(known.length / 24) === 0);
  const able = band.control ? tried.slice(Math.floor(tried.length * 0.7)) : tried.filter((k) => fits(toX(k)));
  const inside = (x) => Math.max(half + 10, Math.min(box.width - half - 4, x));
  return able.flatMap((k) => {
    const edge = toY(band.upper[k]);
    const under = edge + Math.min(9, (toY(band.lower[k]) - edge) / 2);
    return [edge - 9, under].map((y) => ({ x: inside(toX(k)), y, half, inside: y > edge }));
  });
}

function covers(one, other) {
  return Math.abs(one.y - other.y) <= 13 && Math.abs(one.x - other.x) <= one.half + other.half + 6;
}

// Pixels between a name and the nearest point of a line; inside a band is a little better.
function roomAround(spot, points) {
  let room = 40;
  for (const { x, y } of points) {
    if (Math.abs(x - spot.x) <= spot.half + 8 && Math.abs(y - spot.y) < room) room = Math.abs(y - spot.y);
  }
  return room + (spot.inside ? 2 : 0) - Math.max(0, 8 - spot.y);
}

const BAR = { gap: 12, thickness: 8, room: 62 };

function barLabels(names, width) {
  return names.map((name) => shortened(name, width < 500 ? 10 : 22));
}

function barTitleFits(title) {
  return textWidth(title, smallFont()) <= BAR.room - BAR.gap + 4;
}

// Room at the right for a colour bar and its names.
function barRoom(names, width) {
  return Math.max(BAR.room, BAR.gap + BAR.thickness + 8 + widest(barLabels(names, width)));
}

// A colour bar for more series than can be labelled.
function seriesBar(names, looks, frame, palette, title) {
  const count = names.length;
  const every = Math.ceil(count / 8);
  const ticks = range(count).filter((k) => k % every === 0 || k === count - 1);
  const labels = barLabels(names, frame.width);
  const bar = { title, tickvals: ticks, ticktext: ticks.map((k) => plotText(labels[k])) };
  const marker = {
    color: [0],
    cmin: -0.5,
    cmax: count - 0.5,
    colorscale: looks.flatMap((colour, k) => [k, k + 1].map((edge) => [edge / count, colour])),
    showscale: true,
    colorbar: colourBar(frame, palette, bar),
  };
  return {
    type: "scatter",
    mode: "markers",
    x: [null],
    y: [null],
    hoverinfo: "skip",
    meta: { part: "bar" },
    marker,
  };
}

function colourBar(frame, palette, more) {
  const box = frame.boxes[0];
  const { title, ...rest } = more;
  return {
    thickness: BAR.thickness,
    thicknessmode: "pixels",
    len: Math.max(box.height, 90),
    lenmode: "pixels",
    outlinewidth: 0,
    xpad: 0,
    ypad: 0,
    x: (frame.width - frame.right + BAR.gap) / frame.width,
    xanchor: "left",
    y: 1 - box.y / frame.height,
    yanchor: "top",
    ticks: "",
    tickfont: { size: smallFont(), color: palette.base["ink-2"] },
    title: { text: plotText(title), side: "top", font: { size: smallFont() } },
    ...rest,
  };
}
