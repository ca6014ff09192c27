// Dated text: at the slider's step only what was predicted by then is left; a token sets the step.

import { DATA, find, findAll, make, nearest, say } from "./core.js";
import { formatStep } from "./format.js";
import { oneStop } from "./layers.js";
import { tickLabels } from "./panels.js";
import { currentPlace, indexOfStep, listen, setStep, shareOfAxis, state } from "./state.js";
import { hideTooltip, showTooltip } from "./tooltip.js";

const DATED_STATES = ["given", "never", "lost", "late", "good"];

export function startDated() {
  const figure = find(".dated");
  if (!figure) return;
  const lines = findAll(".dated-line[role]", figure);
  for (const line of lines) startDatedLine(line);
  const axis = find(".dated-axis", figure);
  find(".dated-here", axis).hidden = false;
  listen((changed) => {
    if (changed.has("scale")) layDatedAxis(axis);
    if (changed.has("step") || changed.has("scale")) showDated(figure, lines);
  });
  new ResizeObserver(() => layDatedAxis(axis)).observe(axis);
  layDatedAxis(axis);
  showDated(figure, lines);
}

// A text is one stop of the tab key; arrow keys go along it, in the direction in which it runs.
function startDatedLine(line) {
  const tokens = findAll(".d", line);
  const along = line.dir === "rtl" ? ["ArrowLeft", "ArrowRight"] : ["ArrowRight", "ArrowLeft"];
  if (tokens.length) oneStop(line, tokens, along);
  const set = (token) => token?.dataset.step && setStep(nearest(DATA.steps, Number(token.dataset.step)));
  line.addEventListener("click", (event) => set(event.target.closest(".d")));
  line.addEventListener("keydown", (event) => {
    if (event.key === "Enter") set(event.target.closest(".d"));
  });
  line.addEventListener("pointerover", (event) => tellDated(event.target.closest(".d"), event.clientX, event.clientY));
  line.addEventListener("focusin", (event) => {
    const token = event.target.closest(".d");
    const box = token.getBoundingClientRect();
    tellDated(token, box.left, box.bottom);
  });
  for (const kind of ["pointerleave", "focusout"]) line.addEventListener(kind, hideTooltip);
}

function tellDated(token, clientX, clientY) {
  if (!token) return;
  const kind = DATED_STATES.find((each) => token.classList.contains(each));
  const first = token.classList.contains("leads") ? say("leads") : "";
  const name = token.getAttribute("aria-label") || token.textContent;
  showTooltip({ clientX, clientY }, name, say(kind, { at: formatStep(Number(token.dataset.step)) }), [first]);
}

// The key is the step axis of the slider: cells meet half-way, and labels have room.
function layDatedAxis(axis) {
  const scale = DATA.scales[state.scale];
  const cells = findAll("i", axis);
  const centres = cells.map((cell) => shareOfAxis(scale.at[indexOfStep.get(Number(cell.dataset.step))]));
  const halves = centres.slice(1).map((centre, i) => (centre + centres[i]) / 2);
  cells.forEach((cell, i) => {
    const left = halves[i - 1] ?? 2 * centres[i] - (halves[i] ?? 1);
    const right = halves[i] ?? Math.min(1, 2 * centres[i] - left);
    cell.style.left = `${100 * left}%`;
    cell.style.width = `${100 * (right - left)}%`;
  });
  const ticks = [...tickLabels(scale.ticks, axis.clientWidth)].filter(([place]) => shareOfAxis(place) >= centres[0] - 0.001);
  const labels = ticks.map(([place, label]) => {
    const tick = make("span", { textContent: label });
    tick.style.left = `${100 * shareOfAxis(place)}%`;
    return tick;
  });
  find(".dated-ticks", axis).replaceChildren(...labels);
}

function showDated(figure, lines) {
  const now = DATA.steps[state.step];
  const early = state.step < DATA.steps.length - 1;
  figure.classList.toggle("early", early);
  const tokens = lines.flatMap((line) => findAll(".d", line));
  for (const each of [...tokens, ...findAll(".dated-axis i", figure)])
    each.classList.toggle("later", Number(each.dataset.step) > now);
  const asked = tokens.filter((token) => !token.matches(".given"));
  const count = asked.filter((token) => token.matches(".good:not(.later)")).length;
  const words = find(".dated-now", figure);
  words.textContent = say("dated", { count, total: asked.length, tokens: figure.dataset.tokens, at: formatStep(now) });
  words.hidden = !early;
  find(".dated-end", figure).hidden = early;
  find(".dated-here", figure).style.left = `${100 * shareOfAxis(currentPlace())}%`;
}
