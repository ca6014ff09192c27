// A click on a step sets it: in the chart, the picture of the loss and its life lines, and the course of a token.
// Names in them lead on, and so do the keys.

import { axisEnds } from "./slider.js";
import { goToPlace, placeOnAxis } from "./state.js";

// Ends of the step axis of the picture that is clicked on, in the window; null of anything else.
function axisUnder(element) {
  if (element.closest("text")) return null;
  if (element.closest("svg.chart, #life svg")) return axisEnds();
  const box = element.closest(".example-curve, .dated-axis, .dated-track")?.getBoundingClientRect();
  return box ? [box.left, box.right] : null;
}

export function startStepClicks() {
  document.addEventListener(
    "click",
    (event) => {
      const [left, right] = (event.detail && axisUnder(event.target)) || [Infinity, -Infinity];
      if (event.clientX < left || event.clientX > right) return;
      event.preventDefault();
      event.stopPropagation();
      goToPlace(placeOnAxis((event.clientX - left) / (right - left)));
    },
    true,
  );
}
