// What it writes at the slider's step; between steps that were read, what it wrote last.

import { DATA, find, findAll, lastNotAbove } from "./core.js";
import { formatStep } from "./format.js";
import { listen, stepNow } from "./state.js";

export function startWritten() {
  const figure = find(".written");
  if (!figure) return;
  const { steps, texts } = DATA.written;
  const step = find(".written-step", figure);
  const places = findAll(".now", figure);
  const show = () => {
    const now = lastNotAbove(steps, stepNow());
    step.textContent = formatStep(steps[now]);
    const written = texts[now].flat();
    places.forEach((place, i) => (place.textContent = written[i]));
  };
  listen(show, "step");
  show();
}
