// The picture of the first screen: the loss over the life lines of concepts, on the slider's axis.

import { spread, textWidth } from "./annotations.js";
import { capital } from "./concepts.js";
import { CLOCK, CLOCK_HEAD, DATA, extent, find, findAll, make, makeSvg, nearest, range, standAt } from "./core.js";
import { formatNumber, formatStep } from "./format.js";
import { UP_AND_DOWN, choice as chooseOne, oneStop } from "./layers.js";
import { drawLifeHead, drawLines } from "./life-lines.js";
import { LIFE, PICTURE_NAMES, bandPath, linePath } from "./life-shapes.js";
import { tickLabels } from "./panels.js";
import { track as sliderTrack } from "./slider.js";
import { currentPlace, layerShown, listen, placeOfStep, placeOnAxis, shareOfAxis, state } from "./state.js";
import { showTooltip, tellsAt } from "./tooltip.js";

const MOST_NAMED = 6; // runs at whose lines there is room for a name
const LONGEST_NAME = 18;
const lifeView = { shown: 0 };

export function startLife() {
  const figure = find("#life");
  if (!figure || figure.classList.contains("still")) return; // one model's picture stands
  const holder = find(".life-picture", figure);
  const draw = () => {
    layFirst(figure);
    const focused = document.activeElement?.closest?.("#life a")?.dataset.line;
    const { parts, choice } = lifePicture(holder);
    holder.replaceChildren(...parts);
    const links = findAll("a[data-line]", holder);
    if (links.length) oneStop(parts.at(-1), links, UP_AND_DOWN);
    if (choice !== undefined) placeChoice(figure, choice);
    moveLife();
    dimLife();
    if (focused) find(`#life a[data-line="${focused}"]`)?.focus({ preventScroll: true });
  };
  startChoice(figure, draw);
  listen(draw, "scale");
  listen(moveLife, "step");
  listen(dimLife, "layers");
  // Wherever the slider's axis goes, the picture follows.
  let drawn = "";
  const follow = () => {
    const now = axisEnds(holder).join();
    if (now !== drawn) draw();
    drawn = now;
  };
  new ResizeObserver(() => requestAnimationFrame(follow)).observe(find("#slider"));
  addEventListener("resize", () => requestAnimationFrame(follow));
  draw();
}

// Ends of the slider's step axis in the window; where there is no slider, of the picture itself.
function axisEnds(holder) {
  const box = find("#slider").getBoundingClientRect();
  const own = holder.getBoundingClientRect();
  if (!box.width) return [own.left + 8, own.right - 150];
  const left = box.left + sliderTrack.start;
  return [Math.max(left, own.left), Math.min(left + sliderTrack.length, own.right)];
}

// How many life lines are drawn; the caption says which.
function startChoice(figure, draw) {
  chooseOne(findAll(".life-choice button", figure), (k) => {
    lifeView.shown = k;
    find(".life-chosen", figure).textContent = DATA.atlas.views[k].words;
    draw();
  });
}

// The choice stands in the heading of the lines, which is part of the picture.
function placeChoice(figure, y) {
  const choice = find(".life-choice", figure);
  const svg = find(".life-picture svg", figure);
  const top = svg.getBoundingClientRect().top - figure.getBoundingClientRect().top;
  const right = svg.clientWidth - Number(svg.dataset.to);
  choice.style.top = `${top + y}px`;
  choice.style.right = `${Math.max(0, Math.min(right, svg.clientWidth - choice.offsetWidth))}px`;
}

// The words take what is left of the picture and its names; where that is too little, the names
// stand over their lines, and at last the words over the picture.
function layFirst(figure) {
  const first = figure.closest(".first");
  const slider = find("#slider").getBoundingClientRect();
  const style = getComputedStyle(first);
  const left = first.getBoundingClientRect().left + parseFloat(style.paddingLeft);
  const room = slider.width ? slider.left + sliderTrack.start - left - 32 : Math.min(392 + PICTURE_NAMES, 0.45 * first.clientWidth);
  const names = lifeLines() && room - PICTURE_NAMES >= 310 ? PICTURE_NAMES : 0;
  first.classList.toggle("stacked", room < 300);
  first.style.setProperty("--words", `${Math.min(room - names, 420)}px`);
}

function lifeLines() {
  return DATA.atlas?.views?.length ? DATA.atlas.views[lifeView.shown] : null;
}

function isAlone() {
  const shown = lifeLines();
  return !shown || !shown.lines.length;
}

function lifePicture(holder) {
  const width = holder.clientWidth;
  const left = holder.getBoundingClientRect().left;
  const [from, to] = axisEnds(holder).map((x) => x - left);
  const xOf = (place) => from + shareOfAxis(place) * (to - from);
  const lines = lifeLines();
  const svg = makeSvg("svg", { role: "group", "aria-label": lines ? "Loss and life lines of concepts" : "Loss" });
  const view = { width, from, to, xOf, roomy: width - to >= 120 };
  svg.append(hatchPattern());
  const legend = [];
  let y = DATA.first ? drawLoss(svg, view, 0, legend) : 0;
  if (lines) {
    y = drawLifeHead(svg, view, y);
    y = drawLines(svg, view, y, lines.lines);
  }
  y = drawSteps(svg, view, y);
  // The line of the step begins under the first heading, which it crossed, and passes behind the second.
  svg.append(makeSvg("line", { class: "here", y1: 18, y2: y - 18 }), ...findAll(".head", svg));
  svg.setAttribute("viewBox", `0 0 ${width} ${y}`);
  svg.setAttribute("height", y);
  svg.dataset.from = from;
  svg.dataset.to = to;
  const parts = legend.length ? [make("p", { className: "life-legend" }, ...legend), svg] : [svg];
  return { parts, choice: view.choice };
}

function hatchPattern() {
  const defs = makeSvg("defs");
  const pattern = makeSvg("pattern", {
    id: "life-hatch",
    width: 5,
    height: 5,
    patternUnits: "userSpaceOnUse",
    patternTransform: "rotate(45)",
  });
  pattern.append(makeSvg("path", { class: "hatch-line", d: "M0 0V5" }));
  defs.append(pattern);
  return defs;
}

function moveLife() {
  const svg = find("#life svg");
  if (!svg) return;
  const [from, to] = [Number(svg.dataset.from), Number(svg.dataset.to)];
  standAt(find(".here", svg), from + shareOfAxis(currentPlace()) * (to - from));
}

function dimLife() {
  for (const link of findAll("#life a[data-line]"))
    link.classList.toggle("dim", !layerShown(DATA.atlas.concepts[link.dataset.line].group));
}

function drawSteps(svg, view, top) {
  const scale = DATA.scales[state.scale];
  const y = top + 6;
  svg.append(makeSvg("line", { class: "axis", x1: view.from, x2: view.to, y1: y, y2: y }));
  for (const [place, label] of tickLabels(scale.ticks, view.to - view.from))
    svg.append(makeSvg("text", { class: "middle", x: view.xOf(place), y: y + 14, "aria-hidden": true }, label));
  return y + 20;
}

// The loss with its lines and the range of its controls.
function drawLoss(svg, view, top, legend) {
  const { track, first } = DATA;
  if (!track) return top;
  const group = makeSvg("g", { role: "img", "aria-label": lossWords() });
  const head = makeSvg("text", { class: "head", x: 0, y: top + 12 }, `${capital(first.title)} `);
  head.append(makeSvg("tspan", {}, track.units));
  const [base, height] = [top + 24, (isAlone() ? LIFE.alone : LIFE.loss) - 30];
  const [low, high] = lossSpan(track, first);
  const inside = (value) => Math.max(low, Math.min(high, value));
  const yOf = (value) => base + height * (high > low ? (high - inside(value)) / (high - low) : 0.5);
  const places = track.steps.map((step) => view.xOf(placeOfStep(step)));
  const arrow = (value) => (value > high ? "↑ " : value < low ? "↓ " : "");
  const labels = [...first.lines.map((line) => [line.text, line.level]), ...endLabels(track, first)].map(
    ([text, value, name]) => [arrow(value) + text, value, name],
  );
  const wide = Math.max(...labels.map(([text]) => textWidth(text, 12)));
  const end = Math.max(places.at(-1) + 4, Math.min(view.to, view.width - wide - 9));
  for (const line of first.lines.filter(({ level }) => !arrow(level)))
    group.append(makeSvg("path", { class: "reference", d: `M${view.from} ${yOf(line.level)}H${end}` }));
  if (first.control) group.append(makeSvg("path", { class: "control", d: bandPath(places, first.control, yOf) }));
  // Of recipes that differ a mean says nothing: each run has its line and name.
  const named = first.names?.length > 0;
  for (const curve of first.runs) {
    const known = range(curve.length).filter((i) => curve[i] !== null); // runs may have steps of their own
    const d = linePath(known.map((i) => places[i]), known.map((i) => curve[i]), yOf);
    group.append(makeSvg("path", { class: named ? "run" : "each", d }));
  }
  if (!named) group.append(makeSvg("path", { class: "run", d: linePath(places, track.values, yOf) }));
  if (view.roomy && end + 8 + wide <= view.width) labelEnds(group, labels, yOf, end + 8, [top + 16, base + height - 4]);
  else legend.push(...labels.map(([text]) => make("span", { textContent: text })));
  svg.append(head, group);
  tellsAt(group, (event) => tellLoss(event, view));
  const cover = { class: "hit", x: view.from, y: base, width: Math.max(view.to - view.from, 1), height };
  group.append(makeSvg("rect", cover));
  return base + height + 6;
}

// The span of the picture: that of the runs, and of guesses and controls as far as a fifth is left to the runs.
function lossSpan(track, first) {
  let [low, high] = extent([track.values, ...first.runs], (v) => v !== null);
  const most = 5 * Math.max(high - low, Math.abs(high) / 10);
  const beside = [first.lines.map((line) => line.level), ...(first.control ?? [])].flat().filter((v) => v !== null);
  const away = (value) => Math.max(low - value, value - high);
  for (const value of beside.sort((a, b) => away(a) - away(b))) {
    const [least, largest] = [Math.min(low, value), Math.max(high, value)];
    if (largest - least <= most) [low, high] = [least, largest];
  }
  return [low, high];
}

// The last known value of each run, and of controls. The mean of several runs ends with the shortest of them.
function endLabels(track, first) {
  const curves = first.names?.length ? first.names.map((name, i) => [name, first.runs[i]]) : [[first.of, track.values]];
  const labels = curves.length > MOST_NAMED ? [rangeLabel(curves)] : curves.map((one) => endLabel(track, ...one));
  const ends = (first.control ?? []).map((side) => side.findLast((value) => value !== null));
  if (ends.length === 2 && ends.every(Number.isFinite)) {
    const [low, high] = ends.map((value) => formatNumber(value, 0.1));
    labels.push([`${first.control_name} ${low === high ? low : `${low}–${high}`}`, (ends[0] + ends[1]) / 2]);
  }
  return labels;
}

function endLabel(track, name, values) {
  const at = values.findLastIndex((value) => value !== null);
  const early = at < track.steps.length - 1 ? ` at ${CLOCK} ${formatStep(track.steps[at])}` : "";
  const words = name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME - 1)}…` : name;
  return [`${words} ${formatNumber(values[at], 0.1)}${early}`, values[at], "name"];
}

function rangeLabel(curves) {
  const ends = curves.map(([, values]) => values.findLast((value) => value !== null));
  const [low, high] = extent([ends], () => true);
  return [`${curves.length} runs ${formatNumber(low, 0.1)}–${formatNumber(high, 0.1)}`, (low + high) / 2, "name"];
}

function lossWords() {
  const { track, first } = DATA;
  const named = first.names?.length > 0; // their mean is the loss of no model
  const known = track.values.filter((value) => value !== null);
  const [from, to] = [known[0], known.at(-1)].map((value) => formatNumber(value, 0.1));
  const course = named ? `in ${track.units}` : `from ${from} to ${to} ${track.units}`;
  const ends = endLabels(track, first).slice(named ? 0 : 1);
  const beside = [...first.lines.map((line) => line.text), ...ends.map(([text]) => text)];
  return `${capital(first.title)} ${course}${beside.length ? `; ${beside.join(", ")}` : ""}`;
}

// Labels at the ends of their lines, moved apart where they would overlap.
function labelEnds(group, labels, yOf, x, [top, bottom]) {
  labels.sort((a, b) => b[1] - a[1]);
  const heights = spread(labels.map(([, value]) => Math.max(top, yOf(value))), 13, bottom);
  labels.forEach(([text, , name = ""], i) => group.append(makeSvg("text", { class: name, x, y: heights[i] + 4 }, text)));
}

function tellLoss(event, view) {
  const x = event.clientX - find("#life svg").getBoundingClientRect().left;
  const place = placeOnAxis((x - view.from) / (view.to - view.from));
  const { track, first } = DATA;
  const i = nearest(track.steps.map(placeOfStep), place);
  const control = first.control?.map((side) => side[i]);
  const words = control?.every((v) => v !== null) && control.map((v) => formatNumber(v, 0.1)).join("–");
  const own = first.names?.length ? first.names.map((name, k) => `${name} ${formatNumber(first.runs[k][i], 0.1)}`) : [];
  const value = own.length ? track.units : `${formatNumber(track.values[i], 0.1)} ${track.units}`;
  const beside = [...own, words && `${first.control_name} ${words}`];
  showTooltip(event, `${CLOCK_HEAD} ${formatStep(track.steps[i])}`, value, beside);
}
