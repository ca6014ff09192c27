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
  const left =
    event.clientX + 14 + box.width > innerWidth ? event.clientX - box.width - 14 : event.clientX + 14;
  const top =
    event.clientY + 14 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 14;
  tooltip.style.left = `${Math.max(4, left)}px`;
  tooltip.style.top = `${Math.max(4, top)}px`;
}

export function hideTooltip() {
  tooltip.hidden = true;
}

// What a tap has told goes with the next touch anywhere, and does not stay behind where the page moves.
addEventListener("pointerdown", hideTooltip, { capture: true });
addEventListener("scroll", hideTooltip, { passive: true });
