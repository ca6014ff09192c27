// The plotting library is text until the first figure is drawn: slider and chart need none of it.

import { find, make } from "./core.js";

export function plottingLibrary() {
  const source = find("#plotly");
  if (!window.Plotly) {
    const script = make("script", { textContent: source.textContent });
    document.head.append(script); // runs at once
    script.remove();
  }
  return window.Plotly;
}

// Figures that came into view are drawn one at a time, so that the page answers in between.
const drawQueue = new Set();

export function drawSoon(figure) {
  if (!drawQueue.size) setTimeout(drawNext);
  drawQueue.add(figure);
}

function drawNext() {
  const [figure] = drawQueue;
  drawQueue.delete(figure);
  if (figure.visible) figure.catchUp();
  if (drawQueue.size) setTimeout(drawNext);
}
