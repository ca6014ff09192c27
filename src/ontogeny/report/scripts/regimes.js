// Boundaries between regimes: a hairline with its interval, the noisier side shaded.

import { CLOCK, DATA, at } from "./core.js";
import { formatStep } from "./format.js";
import { axisName, panelNote, upright } from "./panels.js";
import { state } from "./state.js";
import { smallFont, withAlpha } from "./theme.js";

// The boundaries of one panel: one for all lines, or one for each line that is shown.
export function readRegimes(picture, panel) {
  const { figure, view, shown } = picture;
  return figure.boundaries.flatMap((regime) => {
    const apart = view.array(regime.step).dims.includes(figure.axes.series) && shown.length > 1;
    return (apart ? shown : shown.slice(0, 1)).map((s, k) => {
      const index = picture.index(panel, s);
      const read = (name) => (name ? at(view.array(name), index) : NaN);
      const place = (name) => (name ? at(view.node.arrays[figure.placed[name][state.scale]], index) : NaN);
      return {
        label: regime.label,
        line: apart ? panel.lines[k] : null,
        row: k,
        rows: apart ? shown.length : 1,
        ratio: read(regime.noise_ratio),
        ...Object.fromEntries(["step", "low", "high"].map((end) => [end, read(regime[end])])),
        at: place(regime.step),
        from: place(regime.low),
        to: place(regime.high),
      };
    });
  }).filter((regime) => Number.isFinite(regime.at));
}

export function regimeShapes(regime, i, box, palette) {
  const colour = regime.line?.colour ?? palette.base["ink-2"];
  const shade = (from, to, alpha) =>
    upright(i, "rect", [from, to], { width: 0 }, { layer: "below", fillcolor: withAlpha(palette.base.null, alpha) });
  const interval = Number.isFinite(regime.from) && Number.isFinite(regime.to);
  const { span } = DATA.scales[state.scale];
  const shapes = [];
  if (!regime.line) {
    if (regime.ratio > 1) shapes.push(shade(regime.at, span[1], 0.14));
    if (regime.ratio < 1) shapes.push(shade(span[0], regime.at, 0.14));
    if (interval) shapes.push(shade(regime.from, regime.to, 0.3));
  } else if (interval) {
    // Intervals of several lines lie above one another under the upper edge.
    const pitch = Math.min(5, (0.4 * box.height) / regime.rows);
    const y0 = -2 - pitch * regime.row;
    const more = { ysizemode: "pixel", yanchor: 1, y0, y1: y0 - 0.6 * pitch, fillcolor: colour };
    shapes.push(upright(i, "rect", [regime.from, regime.to], { width: 0 }, more));
  }
  const line = { color: colour, width: 1 };
  return [...shapes, upright(i, "line", [regime.at, regime.at], line, { opacity: regime.line ? 0.75 : 1 })];
}

// The name of a boundary that all lines share, beside its upper end.
export function regimeWords(regime, i, palette) {
  if (regime.line || !regime.label) return [];
  const right = regime.at > 0.6;
  const place = right ? { xanchor: "right", xshift: -3 } : { xshift: 3 };
  const font = { size: smallFont(), color: palette.base["ink-2"] };
  const yref = `${axisName("y", i)} domain`;
  return [panelNote(i, regime.label, regime.at, 1, { ...place, yref, yanchor: "top", font })];
}

export function regimeFact(regime) {
  const ends = [regime.low, regime.high];
  const spread = ends.every(Number.isFinite) ? ` (${ends.map(formatStep).join("–")})` : "";
  const whose = regime.line?.label ? `${regime.line.label}: ` : "";
  return `${whose}${regime.label} at ${CLOCK} ${formatStep(regime.step)}${spread}`;
}
