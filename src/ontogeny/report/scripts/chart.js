// The developmental chart: hover, the hairline of the current step, and the layer selector.

import { CLOCK_HEAD, DATA, find, findAll, nearest, press, say, standAt, values } from "./core.js";
import { formatStep } from "./format.js";
import { UP_AND_DOWN, oneStop } from "./layers.js";
import { followRow, goTo } from "./links.js";
import {
  change,
  currentPlace,
  layerShown,
  listen,
  placeOfStep,
  placeOnAxis,
  shareOfAxis,
  state,
} from "./state.js";
import { hideTooltip, showTooltip, tellsAt } from "./tooltip.js";

function visibleChart() {
  return findAll("svg.chart").find((svg) => svg.clientWidth > 0) ?? null;
}

function chartPlot(svg) {
  return DATA.charts[svg.classList.contains("chart-wide") ? "wide" : "narrow"].plot;
}

// Ends of the chart's step axis in the window, in pixels; the slider lies over it.
export function chartAxis() {
  const svg = visibleChart();
  if (!svg) return null;
  const box = svg.getBoundingClientRect();
  const unit = box.width / svg.viewBox.baseVal.width;
  const [left, width] = chartPlot(svg);
  return [box.left + left * unit, box.left + (left + width) * unit];
}

export function startChart() {
  const section = find("#chart");
  for (const button of findAll("#chart-view button"))
    button.addEventListener("click", () => change({ chart: button.dataset.view }));
  const chosen = find("#chart-run");
  chosen?.addEventListener("change", () => change({ run: Number(chosen.value) }));
  listen(() => showChartView(section), "chart");
  listen(() => chooseRun(section, chosen), "run");
  for (const svg of findAll("svg.chart")) {
    const [left, width] = chartPlot(svg);
    const rows = findAll(".row", svg);
    const placeOf = followAxis(svg, left, width);
    const dim = () => {
      for (const row of rows) row.classList.toggle("dim", !layerShown(DATA.rows[row.dataset.row].group));
    };
    listen(dim, "layers");
    tellsAt(svg, (event) => chartHover(event, placeOf(event)));
    startRowKeys(svg, rows);
    for (const link of findAll("a[data-folded]", svg)) startFolded(link);
  }
}

// The hairline of a drawing follows the step, and its marks the kind of axis. Returns where on the
// axis an event of the pointer lies; lengths are those of the drawing.
export function followAxis(svg, left, width) {
  const now = find(".now", svg);
  const move = () => standAt(now, left + width * shareOfAxis(currentPlace()));
  listen(() => svg.classList.toggle("linear", state.scale === "linear"), "scale");
  listen(move, "step", "scale");
  move();
  return (event) => {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    return placeOnAxis((point.x - left) / width);
  };
}

// What stands for folded rows opens the table at the first of them, and marks all.
function startFolded(link) {
  link.addEventListener("click", (event) => {
    const places = link.dataset.folded.split(" ");
    event.preventDefault();
    goTo(places[0]);
    for (const place of places) document.getElementById(place).classList.add("linked");
  });
}

function showChartView(section) {
  section?.classList.toggle("intervals", state.chart === "intervals");
  for (const button of findAll("#chart-view button")) press(button, button.dataset.view === state.chart);
}

// The chosen run is drawn over the others, in ink.
function chooseRun(section, chosen) {
  if (chosen) chosen.value = state.run;
  for (const mark of section ? findAll(".of-run", section) : []) {
    const own = Number(mark.dataset.run) === state.run;
    mark.classList.toggle("chosen", own);
    if (own) mark.parentElement.append(mark);
  }
}

// The chart is one stop of the tab key; arrow keys go from row to row, and tell the current step.
function startRowKeys(svg, rows) {
  if (!rows.length) return;
  const links = findAll(".row a", svg);
  const rowOf = (link) => DATA.rows[link.closest(".row").dataset.row];
  const tell = () => {
    const link = document.activeElement;
    if (!link?.matches(".row a") || !svg.contains(link)) return;
    const row = rowOf(link);
    const box = find(".hit", link).getBoundingClientRect();
    const spot = { clientX: (chartAxis() ?? [box.left])[0], clientY: box.bottom };
    if (state.chart === "intervals") tellHalves(spot, row);
    else tellRow(spot, row, currentPlace());
  };
  // Listened for around the picture: Chromium makes an svg that listens for focus a tab stop.
  const around = svg.parentElement;
  oneStop(around, links, UP_AND_DOWN);
  around.addEventListener("focusin", (event) => event.target.matches(":focus-visible") && tell());
  around.addEventListener("focusout", hideTooltip);
  listen(tell, "step");
  for (const link of links) {
    link.setAttribute("href", `#${rowOf(link).figure}`);
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      followRow(rowOf(link));
    });
  }
}

// The tooltip of a row: left of the cells all that is known, over a cell its share at that step.
function chartHover(event, place) {
  const element = event.target.closest(".row");
  if (!element) {
    hideTooltip();
    return;
  }
  const row = DATA.rows[element.dataset.row];
  if (state.chart === "intervals") tellHalves(event, row);
  else if (place < DATA.scales[state.scale].span[0] - 0.01) showTooltip(event, row.label, row.state, row.facts);
  else tellRow(event, row, place);
}

// `told` is null of a row that was not judged, of which its state says so.
function tellRow(event, row, place) {
  const places = row.steps.map(placeOfStep);
  const i = nearest(places, place);
  const share = values(row.progress)[i];
  const told = row.told !== false && row.distinct[i] === "1";
  const doubt = row.told !== null && !Number.isNaN(share) && !told && say("no larger");
  const head = `${CLOCK_HEAD} ${formatStep(row.steps[i])} · ${row.label}`;
  showTooltip(event, head, shareWords(share), [doubt, row.state, ...row.facts]);
}

// When the run or runs of a row were half-way, and when its control runs were.
function tellHalves(event, row) {
  const [first, ...rest] = row.halves;
  showTooltip(event, row.label, row.marks.length ? row.state : first, row.marks.length ? row.halves : [row.state, ...rest]);
}

// How far a row has gone from its first value to its last, or past one of them.
function shareWords(share) {
  if (Number.isNaN(share)) return say("not measured");
  const percent = Math.round(share * 100);
  if (percent < 0) return say("other way", { percent: -percent });
  if (percent > 100) return say("overshoot", { percent: percent - 100 });
  return say("on the way", { percent });
}
