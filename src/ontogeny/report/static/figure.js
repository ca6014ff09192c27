// A figure's life: controls, drawing when it comes into view, hover, and the hairline of the step.

const DRAW = { curves: drawCurves, heatmap: drawHeatmap, null: drawNulls };
const figures = new Map();

// What a drawing function reads: the arrays under the reader's choices.
class View {
  constructor(figure, width, choices, relative) {
    this.figure = figure;
    this.node = DATA.nodes[figure.node];
    this.width = width;
    this.relative = relative;
    this.palette = colours();
    this.choices = choices;
    this.main = this.node.arrays[relative ? figure.relative : figure.value];
    this.absolute = this.node.arrays[figure.value];
  }

  // Indices that are the same for the whole figure; a step that is not an axis follows the slider.
  get fixed() {
    return Object.fromEntries(this.figure.choose.map((d) => {
      const axis = this.node.axes[d];
      return [d, axis.kind === "step" ? stepIndex(axis) : this.choices[d] ?? 0];
    }));
  }

  facets() {
    const dimension = this.figure.axes.facet;
    if (!dimension) return [{ title: "", index: this.fixed }];
    const axis = this.node.axes[dimension];
    return this.shown(dimension).map((i) => ({ title: formatLabel(axis, i), index: { ...this.fixed, [dimension]: i } }));
  }

  // Indices along a dimension that the layer selector leaves; all, if it would leave none.
  shown(dimension) {
    if (!dimension) return [0];
    const axis = this.node.axes[dimension];
    const all = range(axis.values.length);
    const kept = axis.group ? all.filter((i) => layerShown(axis.group[i])) : all;
    return kept.length ? kept : all;
  }

  value(index) { return at(this.main, index); }

  // A band or interval in the form that is shown: its own relative variable, else in proportion.
  paired([absolute, relative], index) {
    const value = at(this.node.arrays[absolute], index);
    if (!this.relative) return value;
    if (relative !== null) return at(this.node.arrays[relative], index);
    return (value * at(this.main, index)) / at(this.absolute, index);
  }

  unitWords() {
    const { units, relativeLabel } = this.figure;
    return this.relative ? relativeLabel : units === "1" ? "" : units;
  }

  axisWords() {
    const unit = this.unitWords();
    return unit ? `${this.figure.label} (${unit})` : this.figure.label;
  }

  // The words of the tooltip for one point.
  describe(index, names, value, ends) {
    const { figure, node } = this;
    const step = figure.choose.concat(Object.values(figure.axes)).find((d) => node.axes[d]?.kind === "step");
    const head = [step && `Step ${formatStep(node.axes[step].values[index[step]])}`, ...names].filter(Boolean).join(" · ");
    const half = ends ? (ends[1] - ends[0]) / 2 : NaN;
    const unit = this.unitWords();
    const rest = [];
    if (ends && ends.every(Number.isFinite)) rest.push(`interval ${formatNumber(ends[0], half)} to ${formatNumber(ends[1], half)}`);
    if (this.relative) rest.push(`absolute ${formatNumber(at(this.absolute, index))} ${figure.units === "1" ? "" : figure.units}`.trim());
    const reason = Number.isFinite(value) ? null : this.reason(index);
    return { head, value: Number.isFinite(value) ? `${formatNumber(value, half)} ${unit}`.trim() : reason ?? "not measured", rest, index };
  }

  reason(index) {
    const { status } = this.node;
    if (!status) return null;
    return status.cells[status.dims.map((d) => index[d] ?? 0).join(",")] ?? null;
  }
}

class Figure {
  constructor(element, data) {
    this.element = element;
    this.data = data;
    this.plot = find(".plot", element);
    this.choices = {};
    this.relative = data.relative !== null;
    this.visible = false;
    this.stale = true;
    this.buildControls();
    this.plot.addEventListener("pointermove", (event) => this.hover(event));
    this.plot.addEventListener("pointerleave", hideTooltip);
    this.plot.addEventListener("click", (event) => this.pick(event));
  }

  buildControls() {
    const controls = find(".controls", this.element);
    const node = DATA.nodes[this.data.node];
    for (const dimension of this.data.choose) {
      const axis = node.axes[dimension];
      if (axis.kind === "step" || axis.values.length < 2) continue;
      const menu = make("select", {}, ...axis.values.map((v, i) => make("option", { value: i, textContent: formatLabel(axis, i) })));
      menu.addEventListener("change", () => { this.choices[dimension] = Number(menu.value); this.draw(); });
      controls.append(make("label", {}, dimension, menu));
    }
    if (this.data.relative === null) return;
    const group = make("div", { className: "segments" });
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", "Values");
    for (const relative of [true, false]) {
      const button = make("button", { type: "button", textContent: relative ? "relative" : "absolute" });
      button.setAttribute("aria-pressed", String(relative === this.relative));
      button.addEventListener("click", () => {
        this.relative = relative;
        for (const b of group.children) b.setAttribute("aria-pressed", String(b === button));
        this.draw();
      });
      group.append(button);
    }
    controls.append(group);
  }

  get followsStep() {
    const node = DATA.nodes[this.data.node];
    return this.data.choose.some((d) => node.axes[d].kind === "step");
  }

  // Draw now if in view, else when it comes into view.
  refresh() {
    this.stale = true;
    if (this.visible) this.draw();
  }

  draw() {
    const width = paper.printing ? paper.width : this.plot.clientWidth;
    if (!width) return;
    this.view = new View(this.data, width, this.choices, this.relative);
    this.picture = DRAW[this.data.kind](this.data, this.view);
    const { traces, layout, frame } = this.picture;
    this.plot.style.height = `${frame.height}px`;
    this.stale = false;
    Plotly.react(this.plot, traces, layout, { displayModeBar: false, responsive: false, doubleClick: "reset" });
    this.drawHairlines();
    if (!this.listening) {
      this.plot.on("plotly_relayout", () => this.moveHairlines());
      this.listening = true;
    }
    this.element.dataset.drawn = "true";
  }

  drawHairlines() {
    for (const line of findAll(".hairline", this.plot)) line.remove();
    this.lines = this.picture.xAxis?.kind === "step" ? this.picture.frame.boxes.map((box) => {
      const line = make("div", { className: "hairline" });
      line.style.top = `${box.y}px`;
      line.style.height = `${box.height}px`;
      this.plot.append(line);
      return line;
    }) : [];
    this.moveHairlines();
  }

  // The visible part of the x axis, which zooming changes.
  get span() { return this.plot.layout?.xaxis?.range ?? [0, 1]; }

  moveHairlines() {
    if (!this.picture) return;
    const [low, high] = this.span;
    const share = (currentPlace() - low) / (high - low);
    this.lines.forEach((line, i) => {
      const box = this.picture.frame.boxes[i];
      line.hidden = share < 0 || share > 1;
      line.style.transform = `translateX(${box.x + share * box.width - 0.75}px)`;
    });
    find(".readout", this.element).replaceChildren(...this.readout());
  }

  // The values at the current step: each where they are few, else their range.
  readout() {
    const { picture, data, view } = this;
    if (data.kind !== "curves" || picture.xAxis.kind !== "step") {
      return this.followsStep ? [make("b", { textContent: `Step ${formatStep(DATA.steps[state.step])}` })] : [];
    }
    const i = stepIndex(picture.xAxis);
    const head = make("b", { textContent: `Step ${formatStep(picture.xAxis.values[i])}` });
    const all = picture.panels.flatMap((panel) => panel.lines);
    const say = (line) => `${line.label} ${formatNumber(line.ys[i], line.ends ? (line.ends[i][1] - line.ends[i][0]) / 2 : NaN)}`.trim();
    const sayPanel = (panel) => `${panel.title ? `${panel.title}: ` : ""}${panel.lines.map(say).join(", ")}`;
    if (all.length <= 6) return [head, `  ${picture.panels.map(sayPanel).join("  ·  ")}`];
    const known = all.map((line) => line.ys[i]).filter(Number.isFinite).sort((a, b) => a - b);
    if (!known.length) return [head, "  not measured"];
    if (known[0] === known.at(-1)) return [head, `  ${formatNumber(known[0])} in all ${known.length} lines`];
    return [head, `  ${formatNumber(known[0])} to ${formatNumber(known.at(-1))}, median ${formatNumber(known[Math.floor(known.length / 2)])} over ${known.length} lines`];
  }

  // The panel under the pointer and the place in it.
  locate(event) {
    if (!this.picture) return null;
    const origin = this.plot.getBoundingClientRect();
    const x = event.clientX - origin.left;
    const y = event.clientY - origin.top;
    const panel = this.picture.frame.boxes.findIndex((b) => x >= b.x - 4 && x <= b.x + b.width + 4 && y >= b.y && y <= b.y + b.height);
    if (panel < 0) return null;
    const box = this.picture.frame.boxes[panel];
    const [low, high] = this.span;
    return { panel, place: low + ((x - box.x) / box.width) * (high - low), x: x - box.x, y: y - box.y, height: box.height };
  }

  told(event) {
    const spot = this.locate(event);
    return spot && this.picture.hover(spot.panel, spot.place, spot.x, spot.y, spot.height);
  }

  hover(event) {
    const told = event.buttons ? null : this.told(event);
    if (told) showTooltip(event, told.head, told.value, told.rest);
    else hideTooltip();
  }

  // A click sets the current step.
  pick(event) {
    const told = this.told(event);
    const dimension = Object.values(this.data.axes).find((d) => this.picture.xAxis?.kind === "step" && d === this.data.axes.x);
    if (!told || !dimension) return;
    const step = DATA.nodes[this.data.node].axes[dimension].values[told.index[dimension]];
    setStep(DATA.steps.indexOf(step));
  }
}

function startFigures() {
  for (const data of DATA.figures) {
    const element = document.getElementById(data.id);
    figures.set(data.id, new Figure(element, data));
  }
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const figure = figures.get(entry.target.id);
      figure.visible = entry.isIntersecting;
      if (figure.visible && figure.stale) figure.draw();
    }
  }, { rootMargin: "300px 0px" });
  for (const figure of figures.values()) watcher.observe(figure.element);
  listen((changed) => {
    for (const figure of figures.values()) {
      if (changed.has("scale") || changed.has("layers") || (changed.has("step") && figure.followsStep)) figure.refresh();
      else if (changed.has("step") && figure.picture) figure.moveHairlines();
    }
  });
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    for (const figure of figures.values()) figure.refresh();
  });
  darkQuery.addEventListener("change", () => { for (const figure of figures.values()) if (figure.picture) figure.draw(); });
}
