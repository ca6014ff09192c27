// One tooltip for the chart and all figures; it shows text only.

import { find, make } from "./core.js";

const tooltip = find("#tooltip");

export function showTooltip(event, head, value, rest) {
  tooltip.replaceChildren(
    make("div", { className: "tip-head", textContent: head }),
    make("div", { className: "tip-value", textContent: value }),
    ...rest.filter(Boolean).map((line) => make("div", { textContent: line })),
  );
  tooltip.hidden = false;
  const box = tooltip.getBoundingClientRect();
  const beside = (place, size, room) => Math.max(4, place + 14 + size > room ? place - size - 14 : place + 14);
  tooltip.style.left = `${beside(event.clientX, box.width, innerWidth)}px`;
  tooltip.style.top = `${beside(event.clientY, box.height, innerHeight)}px`;
}

export function hideTooltip() {
  tooltip.hidden = true;
}

// An element tells something of itself where the pointer is.
export function tellsAt(element, tell) {
  element.addEventListener("pointermove", tell);
  element.addEventListener("pointerleave", hideTooltip);
}

// What a tap has told goes with the next touch, and where the page moves.
addEventListener("pointerdown", hideTooltip, { capture: true });
addEventListener("scroll", hideTooltip, { passive: true });
