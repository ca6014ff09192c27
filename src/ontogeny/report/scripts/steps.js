// A click on a step sets it, in pictures and on their axes. Names in them lead on, and so do the keys.

import { axisEnds } from "./slider.js";
import { goToPlace, placeOnAxis } from "./state.js";

const LABEL = 9; // pixels that a number reaches beyond the end of its axis

// Ends of the step axis of the picture that is clicked on, in the window; null of anything else.
function axisUnder(element) {
  if (element.closest("text:not(.tick)")) return null;
  if (element.closest("svg.chart, #life svg")) return axisEnds();
  const box = element.closest(".example-curve, .dated-axis, .dated-track")?.getBoundingClientRect();
  return box ? [box.left, box.right] : null;
}

export function startStepClicks() {
  document.addEventListener(
    "click",
    (event) => {
      const [left, right] = (event.detail && axisUnder(event.target)) || [Infinity, -Infinity];
      if (event.clientX < left - LABEL || event.clientX > right + LABEL) return;
      event.preventDefault();
      event.stopPropagation();
      goToPlace(placeOnAxis((event.clientX - left) / (right - left)));
    },
    true,
  );
}
