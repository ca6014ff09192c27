// The step slider: its track is the loss curve, its handle the current step.

import { chartAxis } from "./chart.js";
import { CLOCK, DATA, extent, find, findAll, makeSvg, press, standAt } from "./core.js";
import { formatNumber, formatStep } from "./format.js";
import { linePath } from "./paths.js";
import { tickLabels } from "./panels.js";
import {
  change,
  currentPlace,
  findingsByStep,
  goToPlace,
  listen,
  placeOfStep,
  placeOnAxis,
  setStep,
  shareOfAxis,
  state,
  stepNow,
} from "./state.js";

const PLAY_SECONDS = 8;

export function startSlider() {
  const slider = find("#slider");
  const bar = find("#bar");
  bar.classList.toggle("still", DATA.steps.length < 2);
  const svg = makeSvg("svg", { "aria-hidden": "true" });
  slider.append(svg);
  slider.setAttribute("aria-valuemin", DATA.steps[0]);
  slider.setAttribute("aria-valuemax", DATA.steps.at(-1));
  const redraw = () => {
    for (const button of findAll("#scale button"))
      press(button, button.dataset.scale === state.scale);
    layTrack(bar, slider);
    drawTrack(svg, slider.clientHeight);
    moveHandle(slider, svg);
  };
  slider.addEventListener("pointerdown", (event) => {
    slider.setPointerCapture(event.pointerId);
    slider.focus({ preventScroll: true });
    slideTo(slider, event);
  });
  slider.addEventListener("pointermove", (event) => {
    if (event.buttons) slideTo(slider, event);
  });
  document.addEventListener("keydown", moveByKey);
  listen((changed) => (changed.has("scale") ? redraw() : moveHandle(slider, svg)));
  const watcher = new ResizeObserver(redraw);
  for (const element of [bar, ...findAll("svg.chart")]) watcher.observe(element);
  for (const button of findAll("#scale button")) {
    button.addEventListener("click", () => change({ scale: button.dataset.scale }));
  }
  startPlay(find("#play"));
  startSteps();
  redraw();
}

// The slider's step axis in pixels: where it starts in the slider, and how long it is.
const track = { start: 10, length: 100 };
const HANDLE_ROOM = 10;

// The slider lies over the chart: both have the same step at the same place of the window.
function layTrack(bar, slider) {
  const axis = chartAxis();
  const origin = find(".bar-row", bar).getBoundingClientRect().left;
  if (axis) {
    bar.style.setProperty("--axis-left", `${axis[0] - origin}px`);
    bar.style.setProperty("--axis-width", `${axis[1] - axis[0]}px`);
  }
  const box = slider.getBoundingClientRect();
  const [left, right] = axis ?? [box.left + HANDLE_ROOM, box.right - HANDLE_ROOM];
  Object.assign(track, { start: left - box.left, length: right - left });
  if (right <= left) return; // of one model there is no slider
  const root = document.documentElement.style;
  root.setProperty("--track-left", `${left - origin}px`);
  root.setProperty("--track-width", `${right - left}px`);
}

// The ends of the step axis in the window, which chart and first picture share.
export function axisEnds() {
  const left = find("#slider").getBoundingClientRect().left + track.start;
  return [left, left + track.length];
}

function sliderX(place) {
  return track.start + shareOfAxis(place) * track.length;
}

function slideTo(slider, event) {
  const x = event.clientX - slider.getBoundingClientRect().left;
  goToPlace(placeOnAxis((x - track.start) / track.length));
}

function moveByKey(event) {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.target.matches("input, select, textarea, [role='region'], [role='group'][tabindex]")) return; // the keys are theirs
  const onSlider = event.target.id === "slider";
  const moves = { ArrowLeft: -1, ArrowRight: 1 };
  if (onSlider)
    Object.assign(moves, { ArrowDown: -1, ArrowUp: 1, PageDown: -5, PageUp: 5, Home: -1e9, End: 1e9 });
  if (!(event.key in moves)) return;
  event.preventDefault();
  setStep(state.step + moves[event.key]);
}

function drawTrack(svg, height) {
  const scale = DATA.scales[state.scale];
  const base = height - 20;
  svg.replaceChildren(makeSvg("line", { class: "rail-line", x1: sliderX(0), x2: sliderX(1), y1: base, y2: base }));
  for (const [place, label] of tickLabels(scale.ticks, track.length))
    svg.append(makeSvg("text", { x: sliderX(place), y: height - 3 }, label));
  for (const x of scale.at.map(sliderX))
    svg.append(makeSvg("line", { class: "mark", x1: x, x2: x, y1: base - 2, y2: base + 2 }));
  for (const step of findingsByStep.keys()) {
    const x = sliderX(placeOfStep(step));
    svg.append(makeSvg("path", { class: "mark-found", d: `M${x - 3.5} ${base + 6}h7l-3.5 -6z` }));
  }
  if (scale.broken) svg.append(makeSvg("path", { class: "mark", d: breakPath(sliderX(0.045), base) }));
  if (DATA.track)
    svg.append(makeSvg("path", { class: "loss", d: trackPath(DATA.track, base - 5) }));
  svg.append(
    makeSvg("line", { class: "handle", y1: 0, y2: base }),
    makeSvg("circle", { class: "knob", cy: base, r: 6.5 }),
  );
}

function breakPath(x, y) {
  return `M${x - 3} ${y + 4}l3 -8M${x + 1} ${y + 4}l3 -8`;
}

function trackPath(curve, height) {
  const [low, high] = DATA.first?.span ?? extent([curve.values]); // as in the first picture
  const yOf = (value) => 3 + (height - 3) * (high > low ? (high - value) / (high - low) : 0.5);
  return linePath(curve.steps.map((step) => sliderX(placeOfStep(step))), curve.values, yOf);
}

function moveHandle(slider, svg) {
  const x = sliderX(currentPlace());
  const step = stepNow();
  standAt(find(".handle", svg), x);
  find(".knob", svg).setAttribute("cx", x);
  const more = trackWords(step);
  find("#now-step").textContent = formatStep(step);
  find("#now-more").textContent =
    more || `checkpoint ${formatStep(state.step + 1)} of ${formatStep(DATA.steps.length)}`;
  slider.setAttribute("aria-valuenow", step);
  slider.setAttribute("aria-valuetext", [`${CLOCK} ${formatStep(step)}`, more].filter(Boolean).join(", "));
}

function trackWords(step) {
  if (!DATA.track) return "";
  const i = DATA.track.steps.indexOf(step);
  const value = i >= 0 ? DATA.track.values[i] : null;
  return value === null ? "" : `${formatNumber(value)} ${DATA.track.title}`;
}

function startSteps() {
  for (const button of findAll(".by-one"))
    button.addEventListener("click", () => setStep(state.step + Number(button.dataset.by)));
}

function startPlay(button) {
  let timer = null;
  const stop = () => {
    clearInterval(timer);
    timer = null;
    press(button, false);
  };
  button.addEventListener("click", () => {
    if (timer) return stop();
    if (state.step === DATA.steps.length - 1) setStep(0);
    press(button, true);
    const pause = Math.max(60, Math.min(400, (PLAY_SECONDS * 1000) / DATA.steps.length));
    timer = setInterval(() => {
      setStep(state.step + 1);
      if (state.step === DATA.steps.length - 1) stop();
    }, pause);
    return undefined;
  });
}
