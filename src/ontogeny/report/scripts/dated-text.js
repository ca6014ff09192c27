// Dated text: at the slider's step only what was predicted by then is left; a token sets the step.
// Of one model tokens tell by how much they are likelier than by bigrams.

import { DATA, find, findAll, make, say } from "./core.js";
import { formatStep } from "./format.js";
import { UP_AND_DOWN, oneStop, oneStopAlong } from "./layers.js";
import { tickLabels } from "./panels.js";
import { checkpointOf, currentPlace, listen, placeOfStep, setStep, shareOfAxis, state, stepNow } from "./state.js";
import { hideTooltip, showTooltip } from "./tooltip.js";

const DATED_STATES = ["given", "never", "lost", "late", "good"];

export function startDated() {
  const figure = find(".dated");
  if (!figure) return;
  for (const line of findAll(".dated-line", figure)) startDatedLine(line, figure.dataset.guess);
  const lines = findAll(".dated-line[role]", figure);
  const rows = findAll(".dated-rows > a", figure);
  if (rows.length) oneStop(find(".dated-rows", figure), rows, UP_AND_DOWN);
  if (figure.matches(".beyond")) return;
  const axis = find(".dated-axis", figure);
  find(".dated-here", axis).hidden = false;
  const lay = () => layDatedAxis(axis, figure);
  const show = () => showDated(figure, lines);
  listen(lay, "scale");
  listen(show, "step", "scale");
  new ResizeObserver(lay).observe(axis);
  lay();
  show();
}

function startDatedLine(line, guess) {
  const tokens = findAll(".d", line);
  if (line.role) oneStopAlong(line, tokens);
  const set = (token) => token?.dataset.step && setStep(checkpointOf(Number(token.dataset.step)));
  line.addEventListener("click", (event) => set(event.target.closest(".d")));
  line.addEventListener("keydown", (event) => {
    if (event.key === "Enter") set(event.target.closest(".d"));
  });
  line.addEventListener("pointerover", (event) => tellDated(event.target.closest(".d"), event.clientX, event.clientY, guess));
  line.addEventListener("focusin", (event) => {
    const token = event.target.closest(".d");
    const box = token.getBoundingClientRect();
    tellDated(token, box.left, box.bottom, guess);
  });
  for (const kind of ["pointerleave", "focusout"]) line.addEventListener(kind, hideTooltip);
}

function tellDated(token, clientX, clientY, guess) {
  if (!token) return;
  const { loss, cost } = token.dataset;
  const kind = DATED_STATES.find((each) => token.classList.contains(each));
  const first = token.classList.contains("leads") ? say("leads") : "";
  const name = token.getAttribute("aria-label") || token.textContent;
  const told = loss
    ? say("beyond", { loss: Number(loss).toFixed(2), cost: Number(cost).toFixed(2), guess })
    : say(kind, { at: formatStep(Number(token.dataset.step)) });
  showTooltip({ clientX, clientY }, name, told, [first]);
}

function shareOfStep(step) {
  return shareOfAxis(placeOfStep(Number(step)));
}

// Births and squares of concepts stand on the same axis.
function layTracks(figure) {
  for (const mark of findAll(".dated-track [data-step]", figure)) mark.style.left = `${100 * shareOfStep(mark.dataset.step)}%`;
  for (const bar of findAll(".birth-bar", figure)) {
    const [from, to] = [bar.dataset.from, bar.dataset.to].map(shareOfStep);
    bar.style.left = `${100 * from}%`;
    bar.style.width = `${100 * (to - from)}%`;
  }
}

// The key is the step axis of the slider: cells meet half-way, and labels have room.
function layDatedAxis(axis, figure) {
  layTracks(figure);
  const scale = DATA.scales[state.scale];
  const cells = findAll("i", axis);
  const centres = cells.map((cell) => shareOfStep(cell.dataset.step));
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
  const now = stepNow();
  const early = now < Number(figure.dataset.last); // what was not read later is not known
  figure.classList.toggle("early", early);
  for (const each of findAll(".dated-line[role] .d, .dated-rows i", figure))
    each.classList.toggle("later", Number(each.dataset.step) > now);
  const words = find(".dated-now", figure);
  words.textContent = datedWords(figure, lines, formatStep(now));
  words.hidden = !early;
  find(".dated-end", figure).hidden = early;
  find(".dated-here", figure).style.left = `${100 * shareOfAxis(currentPlace())}%`;
}

// How many tokens are predicted for good by then; of several runs, in each.
function datedWords(figure, lines, at) {
  const { tokens } = figure.dataset;
  const runs = [...new Set(lines.map((line) => line.dataset.of))];
  const counts = runs.map((run) => {
    const every = lines.filter((line) => line.dataset.of === run).flatMap((line) => findAll(".d:not(.given)", line));
    return { run, total: every.length, count: every.filter((token) => token.matches(".good:not(.later)")).length };
  });
  const [{ total, count }] = counts;
  if (runs.length < 2) return say("dated", { count, total, tokens, at });
  const ofRuns = new Intl.ListFormat("en-GB").format(counts.map((each) => `${each.count} (${each.run})`));
  return say("dated runs", { total, tokens, at, counts: ofRuns });
}
