// What it writes at the slider's step; between steps that were read, what it wrote last.

import { DATA, find, findAll, lastNotAbove, make } from "./core.js";
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
  // Each has room for the longest that is written there: a step moves nothing.
  const reserve = () =>
    places.forEach((place, i) => {
      const every = texts.map((each) => make("dd", { textContent: each.flat()[i] }));
      const trial = make("div", { className: "trial" }, ...every);
      trial.style.width = `${place.clientWidth}px`;
      figure.append(trial);
      place.style.minHeight = `${Math.max(...every.map((each) => each.offsetHeight))}px`;
      trial.remove();
    });
  listen(show, "step");
  addEventListener("resize", reserve);
  reserve();
  show();
}
