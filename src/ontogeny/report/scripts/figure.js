// A figure's life: controls, drawing when it comes into view, hover, and the hairline of the step.

import { CLOCK_HEAD, DATA, find, findAll, make, press, say, watch } from "./core.js";
import { figureCsv } from "./csv.js";
import { formatLabel, formatNumber, formatStep } from "./format.js";
import { choice, oneStop } from "./layers.js";
import { drawSoon, plottingLibrary } from "./library.js";
import { RUN, hasControls, nodeOf } from "./nodes.js";
import { axisRoom } from "./panels.js";
import { FIGURES, PICTURES } from "./picture.js";
import { RunsView, arranged, runsCsv } from "./runs.js";
import { checkpointOf, currentPlace, listen, setStep, stepNow } from "./state.js";
import { darkQuery, paper } from "./theme.js";
import { hideTooltip, showTooltip } from "./tooltip.js";
import { View, halfWidth } from "./view.js";

export const figures = new Map();

export class Figure {
  constructor(element, data) {
    this.element = element;
    this.data = data;
    this.plot = find(".plot", element);
    this.choices = {};
    this.relative = data.relative !== null;
    this.seen = data.runs ? Object.keys(data.runs.views)[0] : null;
    this.drawn = arranged(data, this.seen);
    this.visible = false;
    this.stale = true;
    this.buildControls();
    this.plot.addEventListener("pointermove", (event) => this.hover(event));
    this.plot.addEventListener("pointerleave", (event) => this.hover({ ...event, buttons: 1 }));
    this.plot.addEventListener("click", (event) => this.pick(event));
  }

  buildControls() {
    const controls = find(".controls", this.element);
    const { runs, relative } = this.data;
    if (runs) controls.append(segments("Runs", Object.keys(runs.views), this.seen, (name) => this.arrange(name)));
    this.menus = make("span", { className: "menus" });
    controls.append(this.menus);
    this.buildMenus();
    if (relative === null) return;
    controls.append(
      segments("Values", ["relative", "absolute"], "relative", (name) => {
        this.relative = name === "relative";
        this.draw();
      }),
    );
  }

  // One menu for each dimension that is left over, and one for the run of a view that shows one apart.
  buildMenus() {
    const { runs } = this.data;
    const apart = runs && !hasControls(this.data) && this.seen !== "side by side";
    const dimensions = [...this.drawn.choose, ...(apart ? [RUN] : [])];
    const { axes } = nodeOf(this.data);
    this.menus.replaceChildren(...dimensions.flatMap((dimension) => this.menu(dimension, axes[dimension])));
  }

  menu(dimension, axis) {
    if (axis.kind === "step" || axis.values.length < 2) return [];
    const options = axis.values.map((v, i) => make("option", { value: i, textContent: formatLabel(axis, i) }));
    const menu = make("select", {}, ...options);
    menu.value = this.choices[dimension] ?? 0;
    menu.addEventListener("change", () => this.choose(dimension, Number(menu.value)));
    menu.dataset.dimension = dimension;
    return [make("label", {}, dimension, menu)];
  }

  choose(dimension, i) {
    this.choices[dimension] = i;
    for (const menu of findAll("select", this.menus)) {
      if (menu.dataset.dimension === dimension) menu.value = i;
    }
    this.draw();
  }

  arrange(view) {
    this.seen = view;
    this.drawn = arranged(this.data, view);
    this.buildMenus();
    this.draw();
  }

  get file() {
    const { runs, file } = this.data;
    const first = !runs || this.seen === Object.keys(runs.views)[0];
    return first ? file : `${file}-${this.seen.replaceAll(" ", "-")}`;
  }

  csv() {
    const own = this.data.runs && (this.seen === "difference" || (this.seen === "side by side" && hasControls(this.data)));
    if (!own) return figureCsv(this.data);
    if (this.stale) this.layOut();
    return runsCsv(this);
  }

  tell() {
    const { runs, id } = this.data;
    if (!runs) return;
    document.getElementById(`${id}/caption`).textContent = this.view.fill(runs.captions[this.seen]);
    const code = find("pre code", this.element);
    this.code ??= code.textContent;
    code.textContent = runs.code[this.seen] ? this.view.fill(runs.code[this.seen], JSON.stringify) : this.code;
  }

  get followsStep() {
    const { axes } = nodeOf(this.data);
    const used = [...this.drawn.choose, ...this.drawn.points];
    return used.some((d) => axes[d].kind === "step");
  }

  // Draw soon if in view, else when it comes into view.
  refresh() {
    this.stale = true;
    delete this.element.dataset.drawn;
    if (this.visible) drawSoon(this);
  }

  // The step has changed: follow it now if in view, else when it comes into view.
  follow() {
    if (this.followsStep) this.refresh();
    else {
      this.behind = true;
      if (this.visible && !this.stale) this.catchUp();
    }
  }

  catchUp() {
    if (this.stale) this.draw();
    else if (this.behind) this.moveHairlines();
    this.behind = false;
  }

  // Pixels from side to side; on paper two figures share a line, if few panels are enough.
  get room() {
    return !paper.printing ? this.plot.clientWidth : this.broad ? paper.width : paper.column;
  }

  get broad() {
    const { kind, panels, axes } = this.drawn;
    const count = axes.facet ? (panels ?? nodeOf(this.data).axes[axes.facet].values).length : 1;
    return kind in FIGURES || count > 4;
  }

  // What is to be drawn, at the width that there is; the place for it is made at once.
  layOut() {
    const width = this.room;
    if (!width) return false;
    const { data, drawn, choices, relative } = this;
    this.view = data.runs
      ? new RunsView(drawn, data, width, choices, relative)
      : new View(drawn, width, choices, relative);
    this.picture = new PICTURES[data.kind](drawn, this.view);
    this.plot.style.height = `${this.picture.frame.height}px`;
    return true;
  }

  draw() {
    if (!this.layOut()) return;
    const { traces, layout } = this.picture;
    this.stale = false;
    const Plotly = plottingLibrary();
    Plotly.react(this.plot, traces, layout, {
      displayModeBar: false,
      responsive: false,
      doubleClick: "reset",
    });
    if (stepZoom && this.onSteps) Plotly.relayout(this.plot, { "xaxis.range": stepZoom });
    this.drawHairlines();
    this.tell();
    if (!this.listening) {
      this.plot.on("plotly_relayout", (event) => {
        this.moveHairlines();
        if (event["xaxis.range[0]"] !== undefined) zoomSteps(this);
      });
      this.plot.on("plotly_clickannotation", ({ annotation }) => this.choose(RUN, Number(annotation.name)));
      this.listening = true;
    }
    this.element.dataset.drawn = "true";
  }

  get onSteps() {
    return this.picture?.xAxis?.kind === "step";
  }

  drawHairlines() {
    for (const line of findAll(".hairline", this.plot)) line.remove();
    const upright = ({ y, height }) => ({ top: `${y}px`, height: `${height}px` });
    const across = ({ x, width }) => ({ left: `${x}px`, width: `${width}px` });
    this.lines = this.hairlinesAlong("xAxis", "", upright);
    this.across = this.hairlinesAlong("yAxis", " across", across);
    this.moveHairlines();
  }

  // One hairline in each panel, if the axis counts steps.
  hairlinesAlong(axis, more, place) {
    if (this.picture[axis]?.kind !== "step") return [];
    return this.picture.frame.boxes.map((box) => {
      const line = make("div", { className: `hairline${more}` });
      Object.assign(line.style, place(box));
      this.plot.append(line);
      return line;
    });
  }

  // The visible part of the x axis, which zooming changes.
  get span() {
    return this.plot.layout?.xaxis?.range ?? [0, 1];
  }

  moveHairlines() {
    if (!this.picture || !this.lines) return;
    const [low, high] = this.span;
    const share = (currentPlace() - low) / (high - low);
    this.lines.forEach((line, i) => {
      const box = this.picture.frame.boxes[i];
      line.hidden = share < 0 || share > 1;
      line.style.transform = `translateX(${box.x + share * box.width - 0.75}px)`;
    });
    const [bottom, top] = this.plot.layout?.yaxis?.range ?? [0, 1];
    this.across.forEach((line, i) => {
      const box = this.picture.frame.boxes[i];
      const up = (currentPlace() - bottom) / (top - bottom);
      line.style.transform = `translateY(${box.y + (1 - up) * box.height - 0.75}px)`;
    });
    find(".readout", this.element).replaceChildren(...this.readout());
  }

  // The values at the current step: each where they are few, else their range, with the same decimals.
  readout() {
    const { picture, data } = this;
    if (data.kind !== "curves" || !this.onSteps) return this.stepWords();
    const i = picture.currentPlace;
    const [step, now] = [picture.xAxis.values[i], stepNow()];
    const before = step < now ? say("measured before", { at: formatStep(now) }) : "";
    const head = make("b", { textContent: `${CLOCK_HEAD} ${formatStep(step)}${before}` });
    const all = picture.panels.flatMap((panel) => panel.lines);
    const digit = this.digitOf(all, i);
    const value = (line) => (Number.isFinite(line.ys[i]) ? this.sayValue(line.ys[i], digit) : this.view.absence(line.point(i)));
    const sayLine = (line) => `${line.label} ${value(line)}`.trim();
    const sayPanel = (panel) => `${panel.title ? `${panel.title}: ` : ""}${panel.lines.map(sayLine).join(", ")}`;
    if (all.length <= 6) return [head, `  ${picture.panels.map(sayPanel).join("  ·  ")}`];
    return [head, `  ${this.sayRange(all.map((line) => line.ys[i]).filter(Number.isFinite), digit)}`];
  }

  // The uncertainty by which all values of a place are written: none of counts, else the smallest
  // known, else that of four digits of the largest.
  digitOf(lines, i) {
    const known = lines.filter((line) => Number.isFinite(line.ys[i]));
    if (known.every((line) => line.ys.every((y) => !Number.isFinite(y) || Number.isInteger(y)))) return 10;
    const halves = known.map((line) => halfWidth(line.ends?.[i])).filter((half) => half > 0);
    if (halves.length) return Math.min(...halves);
    const most = Math.max(...known.map((line) => Math.abs(line.ys[i])));
    return most ? 10 ** (Math.floor(Math.log10(most)) - 2) : NaN;
  }

  stepWords() {
    return this.followsStep
      ? [make("b", { textContent: `${CLOCK_HEAD} ${formatStep(stepNow())}` })]
      : [];
  }

  sayRange(known, digit) {
    if (!known.length) return say("not measured");
    known.sort((a, b) => a - b);
    const half = (known.length - 1) / 2;
    const median = (known[Math.floor(half)] + known[Math.ceil(half)]) / 2;
    const [low, middle, high] = [known[0], median, known.at(-1)].map((value) => this.sayValue(value, digit));
    if (low === high) return say("in all lines", { value: low, count: known.length });
    return `${low} to ${high}, median ${middle} over ${known.length} lines`;
  }

  // What is left of a distance to itself after rounding is no number to read.
  sayValue(value, uncertainty) {
    const [low, high] = this.picture.layout.yaxis.range;
    const tiny = this.data.y_scale === "linear" && Math.abs(value) < 1e-9 * (high - low);
    return tiny && value !== 0 ? "≈ 0" : formatNumber(value, uncertainty);
  }

  locate(event, below = 0) {
    if (!this.picture) return null;
    const origin = this.plot.getBoundingClientRect();
    const x = event.clientX - origin.left;
    const y = event.clientY - origin.top;
    const panel = this.picture.frame.boxes.findIndex(
      (b) => x >= b.x - 4 && x <= b.x + b.width + 4 && y >= b.y && y <= b.y + b.height + below,
    );
    if (panel < 0) return null;
    const box = this.picture.frame.boxes[panel];
    const [low, high] = this.span;
    return {
      panel,
      place: low + ((x - box.x) / box.width) * (high - low),
      span: [low, high],
      y: y - box.y,
    };
  }

  told(event, below) {
    const spot = this.locate(event, below);
    return spot && this.picture.hover(spot.panel, spot);
  }

  hover(event) {
    const told = event.buttons ? null : (this.told(event) ?? this.toldByBar(event));
    this.tellAt(event, told);
    if (this.lifted !== (told?.lifted || "")) liftLine(this.plot, (this.lifted = told?.lifted || ""));
  }

  tellAt(event, told) {
    if (told) showTooltip(event, told.head, told.value, told.rest);
    else hideTooltip();
  }

  // The whole name of the series under the pointer on a colour bar or on its labels.
  toldByBar(event) {
    const full = this.picture?.barFull;
    const bar = full && find(".cbfills", this.plot)?.getBoundingClientRect();
    if (!bar || event.clientX < bar.left - 4) return null;
    const share = (bar.bottom - event.clientY) / bar.height;
    const k = Math.floor(share * full.length);
    return full[k] === undefined ? null : { head: this.picture.barTitle, value: full[k], rest: [] };
  }

  // A click sets the step, on the axis too; one beside it opens the definition. A tap also tells.
  pick(event) {
    const told = this.told(event, axisRoom());
    if (event.pointerType === "touch" && told) showTooltip(event, told.head, told.value, told.rest);
    const { axes } = nodeOf(this.data);
    const { x, facet } = this.drawn.axes;
    const dimension = [x, facet, ...this.drawn.points].find((d) => axes[d]?.kind === "step");
    if (!told) find(".actions details", this.element).open ^= true;
    if (!told || !dimension) return;
    const step = axes[dimension].values[told.index[dimension]];
    setStep(checkpointOf(step));
  }
}

// A stretch of steps that is brushed in one figure is shown in all.
let stepZoom = null;

function zoomSteps(source) {
  stepZoom = source.onSteps ? [...source.span] : stepZoom;
  for (const figure of figures.values())
    if (figure !== source && source.onSteps && figure.onSteps && figure.listening && !figure.stale)
      plottingLibrary().relayout(figure.plot, { "xaxis.range": stepZoom });
}

function segments(label, names, pressed, pick) {
  const group = make("div", { className: "segments" });
  group.setAttribute("role", "group");
  group.setAttribute("aria-label", label);
  const buttons = names.map((name) => make("button", { type: "button", textContent: name }));
  for (const button of buttons) press(button, button.textContent === pressed);
  choice(buttons, (place) => pick(names[place]));
  group.append(...buttons);
  oneStop(group, buttons);
  return group;
}

// Pointing at a line lifts it in all panels and fades the rest.
function liftLine(plot, label) {
  for (const trace of findAll(".scatterlayer .trace", plot)) {
    const meta = trace.__data__?.[0]?.trace?.meta;
    if (meta?.label) trace.style.opacity = !label || meta.label === label ? "" : 0.18;
  }
}

// Room for figures that nobody has scrolled to yet, so that nothing moves when they are drawn.
function makeRoom(deadline) {
  const waiting = [...figures.values()].filter((figure) => !figure.picture && !(figure.data.kind in FIGURES));
  while (waiting.length && deadline.timeRemaining() > 8) waiting.shift().layOut();
  if (waiting.length) whenIdle(makeRoom);
  else document.documentElement.dataset.room = "true";
}

// Show a place with room for all figures; those in view are drawn then, which may move it again.
export function showAndAgain(show) {
  makeRoom({ timeRemaining: () => Infinity });
  show();
  requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(show)));
}

function whenIdle(callback) {
  if (window.requestIdleCallback) requestIdleCallback(callback);
}

export function refreshAll() {
  for (const figure of figures.values()) figure.refresh();
}

export function startFigures() {
  for (const data of DATA.figures) {
    const element = document.getElementById(data.id);
    figures.set(data.id, new (FIGURES[data.kind] ?? Figure)(element, data));
  }
  const watcher = watch("300px 0px", ({ id }, visible) => {
    const figure = figures.get(id);
    figure.visible = visible;
    if (visible) drawSoon(figure);
  });
  for (const figure of figures.values()) watcher.observe(figure.element);
  whenIdle(makeRoom);
  listen((changed) => {
    if (changed.has("scale")) stepZoom = null;
    for (const figure of figures.values()) {
      if (changed.has("scale") || changed.has("layers")) figure.refresh();
      else figure.follow();
    }
  });
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) refreshAll();
    width = innerWidth;
  });
  darkQuery.addEventListener("change", refreshAll);
}
