// What stands below the card of a concept beyond the token: how often each code occurs, and how its
// direction is read.

import { shownAtlas } from "./concepts.js";
import { make, makeSvg, say } from "./core.js";
import { formatStep } from "./format.js";
import { copyText } from "./links.js";

const HISTOGRAM = { width: 300, height: 44 };

// Counts on a scale of powers of ten: strong places are rare.
export function codeHistogram({ histogram }) {
  const { bins } = shownAtlas;
  const { width, height } = HISTOGRAM;
  const top = Math.log10(1 + Math.max(...histogram));
  const svg = makeSvg("svg", { class: "histogram", viewBox: `0 0 ${width} ${height + 12}`, role: "img" });
  svg.setAttribute("aria-label", say("histogram", { low: bins[0], high: bins.at(-1) }));
  const wide = width / histogram.length;
  histogram.forEach((count, i) => {
    const tall = top > 0 ? (height * Math.log10(1 + count)) / top : 0;
    const bar = makeSvg("rect", { x: i * wide, y: height - tall, width: wide - 0.6, height: tall });
    bar.append(makeSvg("title", {}, say("histogram bar", { count: formatStep(count), from: bins[i] })));
    svg.append(bar);
  });
  for (const at of [0, 5, 10]) {
    const i = bins.indexOf(at);
    if (i >= 0) svg.append(makeSvg("text", { x: i * wide, y: height + 11, "text-anchor": "middle" }, at ? `${at} sd` : "0"));
  }
  return svg;
}

// Two lines of Python, with a button that copies them.
export function directionPart({ direction }) {
  const button = make("button", { type: "button", textContent: "Copy" });
  button.addEventListener("click", () => copyText(button, direction, "Copied", () => "Select the text"));
  const code = make("pre", { className: "direction", textContent: direction });
  return [say("direction"), code, button];
}
