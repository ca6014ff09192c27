// Points in space, seen from a side that the reader turns: the axes share one unit length, and what is
// near is drawn last. A projection needs no WebGL, so pictures stay vectors and paper shows them too.

import { find, make } from "./core.js";

const FIRST_TURN = { azimuth: 0.6, elevation: 0.45 };

// How to place points of a span of x, y and z on the plane, for one side.
export function projection(spans, turn) {
  const middles = spans.map(([low, high]) => (low + high) / 2);
  const half = Math.max(...spans.map(([low, high]) => (high - low) / 2)) || 1;
  const [ca, sa] = [Math.cos(turn.azimuth), Math.sin(turn.azimuth)];
  const [ce, se] = [Math.cos(turn.elevation), Math.sin(turn.elevation)];
  return (point) => {
    const [x, y, z] = point.map((value, k) => (value - middles[k]) / half);
    const away = sa * x + ca * y;
    return { u: ca * x - sa * y, v: ce * z + se * away, depth: ce * away - se * z };
  };
}

// The three axes from the corner of the box around all points, with the places of their names.
export function spaceAxes(spans, place) {
  const corner = spans.map(([low]) => low);
  return spans.map(([, high], k) => {
    const end = corner.with(k, high);
    return { from: place(corner), to: place(end) };
  });
}

// Dragging turns the picture; so does the control beside it, by keys as well.
export function startTurning(figure) {
  figure.turn = { ...FIRST_TURN };
  figure.plot.classList.add("turns");
  const control = make("input", { type: "range", min: -180, max: 180, step: 2 });
  control.value = Math.round((figure.turn.azimuth * 180) / Math.PI);
  control.setAttribute("aria-label", "Turn the picture");
  let waiting = false;
  const redraw = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      figure.draw();
    });
  };
  control.addEventListener("input", () => {
    figure.turn.azimuth = (control.value * Math.PI) / 180;
    redraw();
  });
  find(".controls", figure.element).append(make("label", {}, "turn", control));
  figure.plot.addEventListener("pointermove", (event) => {
    if (!event.buttons) return;
    const whole = figure.turn.azimuth + event.movementX * 0.01;
    figure.turn.azimuth = Math.atan2(Math.sin(whole), Math.cos(whole));
    figure.turn.elevation = Math.max(-1.4, Math.min(1.4, figure.turn.elevation + event.movementY * 0.01));
    control.value = Math.round((figure.turn.azimuth * 180) / Math.PI);
    redraw();
  });
}
