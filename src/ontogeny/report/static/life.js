// The picture of the first screen: the loss over the life lines of concepts, on the slider's axis.

const LIFE = { loss: 132, gap: 28, levels: 12, full: 250, missing: 255 };

function startLife() {
  const figure = document.getElementById("life");
  if (!figure) return;
  const holder = find(".life-picture", figure);
  const draw = () => {
    layFirst(figure);
    const old = document.activeElement?.closest?.("#life a")?.dataset.line;
    holder.replaceChildren(...lifePicture(holder));
    moveLife();
    dimLife();
    if (old !== undefined) find(`#life a[data-line="${old}"]`)?.focus({ preventScroll: true });
  };
  listen((changed) => {
    if (changed.has("scale")) draw();
    if (changed.has("step")) moveLife();
    if (changed.has("layers")) dimLife();
  });
  holder.addEventListener("keydown", moveAlongLines);
  holder.addEventListener("focusin", (event) => {
    const link = event.target.closest("a");
    for (const each of findAll("a", holder)) each.setAttribute("tabindex", each === link ? 0 : -1);
  });
  // Wherever the slider's axis goes, the picture follows.
  let drawn = "";
  const follow = () => {
    const now = axisEnds(holder).join();
    if (now !== drawn) draw();
    drawn = now;
  };
  new ResizeObserver(() => requestAnimationFrame(follow)).observe(document.getElementById("slider"));
  addEventListener("resize", () => requestAnimationFrame(follow));
  draw();
}

// Ends of the slider's step axis in the window; where there is no slider, of the picture itself.
function axisEnds(holder) {
  const box = document.getElementById("slider").getBoundingClientRect();
  const own = holder.getBoundingClientRect();
  if (!box.width) return [own.left + 8, own.right - 150];
  const left = box.left + track.start;
  return [Math.max(left, own.left), Math.min(left + track.length, own.right)];
}

// The words take what is left of the picture; where that is too little, they stand over it.
function layFirst(figure) {
  const first = figure.closest(".first");
  const slider = document.getElementById("slider").getBoundingClientRect();
  const style = getComputedStyle(first);
  const left = first.getBoundingClientRect().left + parseFloat(style.paddingLeft);
  const room = slider.width ? slider.left - left - 40 : Math.min(392, 0.4 * first.clientWidth);
  first.classList.toggle("stacked", room < 300);
  first.style.setProperty("--words", `${Math.min(room, 420)}px`);
}

function lifePicture(holder) {
  const width = holder.clientWidth;
  const left = holder.getBoundingClientRect().left;
  const [from, to] = axisEnds(holder).map((x) => x - left);
  const xOf = (place) => from + shareOfAxis(place) * (to - from);
  const view = { width, from, to, xOf, roomy: width - to >= 120 };
  const svg = makeSvg("svg", { role: "group", "aria-label": DATA.atlas?.lines.length ? "Loss and life lines of concepts" : "Loss" });
  svg.append(hatchPattern());
  const legend = [];
  let y = DATA.first ? drawLoss(svg, view, 0, legend) : 0;
  if (DATA.atlas?.lines.length) y = drawLines(svg, view, y);
  y = drawSteps(svg, view, y);
  svg.append(makeSvg("line", { class: "here", y1: 0, y2: y - 18 }));
  svg.setAttribute("viewBox", `0 0 ${width} ${y}`);
  svg.setAttribute("height", y);
  svg.dataset.from = from;
  svg.dataset.to = to;
  return legend.length ? [make("p", { className: "life-legend" }, ...legend), svg] : [svg];
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
  const x = from + shareOfAxis(currentPlace()) * (to - from);
  const here = find(".here", svg);
  here.setAttribute("x1", x);
  here.setAttribute("x2", x);
}

function dimLife() {
  for (const link of findAll("#life a"))
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
  const head = makeSvg("text", { class: "head", x: view.roomy ? view.from : 0, y: top + 12 }, `${capital(track.title)} `);
  head.append(makeSvg("tspan", {}, track.units));
  const [base, height] = [top + 24, LIFE.loss - 30];
  const levels = first.lines.map((line) => line.level);
  const [low, high] = extent([track.values, levels, ...(first.control ?? [])], (v) => v !== null);
  const yOf = (value) => base + height * (high > low ? (high - value) / (high - low) : 0.5);
  const places = track.steps.map((step) => view.xOf(DATA.scales[state.scale].at[indexOfStep.get(step)]));
  for (const line of first.lines)
    group.append(makeSvg("path", { class: "reference", d: `M${view.from} ${yOf(line.level)}H${view.to}` }));
  if (first.control) group.append(makeSvg("path", { class: "control", d: bandPath(places, first.control, yOf) }));
  group.append(makeSvg("path", { class: "run", d: linePath(places, track.values, yOf) }));
  const labels = [...first.lines.map((line) => [line.text, line.level]), ...endLabels(track, first)];
  if (view.roomy) labelEnds(group, labels, yOf, view.to + 8, top + 16);
  else legend.push(...labels.map(([text]) => make("span", { textContent: text })));
  svg.append(head, group);
  group.addEventListener("pointermove", (event) => tellLoss(event, view));
  group.addEventListener("pointerleave", hideTooltip);
  const cover = { class: "hit", x: view.from, y: base, width: Math.max(view.to - view.from, 1), height };
  group.append(makeSvg("rect", cover));
  return top + LIFE.loss;
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

// The last known value of the run, and of its controls.
function endLabels(track, first) {
  const last = track.values.findLast((value) => value !== null);
  const labels = [[`run ${formatNumber(last, 0.1)}`, last]];
  const ends = (first.control ?? []).map((side) => side.findLast((value) => value !== null));
  if (ends.length === 2 && ends.every(Number.isFinite)) {
    const [low, high] = ends.map((value) => formatNumber(value, 0.1));
    labels.push([`${first.control_name} ${low === high ? low : `${low}–${high}`}`, (ends[0] + ends[1]) / 2]);
  }
  return labels;
}

function lossWords() {
  const { track, first } = DATA;
  const known = track.values.filter((value) => value !== null);
  const [from, to] = [known[0], known.at(-1)].map((value) => formatNumber(value, 0.1));
  const beside = [...first.lines.map((line) => line.text), ...endLabels(track, first).slice(1).map(([t]) => t)];
  return `${capital(track.title)} from ${from} to ${to} ${track.units}${beside.length ? `; ${beside.join(", ")}` : ""}`;
}

// Labels at the ends of their lines, moved apart where they would overlap.
function labelEnds(group, labels, yOf, x, top) {
  let above = top - 13;
  for (const [text, value] of labels.sort((a, b) => b[1] - a[1])) {
    above = Math.max(yOf(value), above + 13);
    group.append(makeSvg("text", { class: text.startsWith("run ") ? "name" : "", x, y: above + 4 }, text));
  }
}

function linePath(xs, numbers, yOf) {
  let pen = "M";
  return xs
    .map((x, i) => {
      if (numbers[i] === null) {
        pen = "M";
        return "";
      }
      const move = `${pen}${x.toFixed(1)} ${yOf(numbers[i]).toFixed(1)}`;
      pen = "L";
      return move;
    })
    .join("");
}

function bandPath(xs, [lower, upper], yOf) {
  const known = range(xs.length).filter((i) => lower[i] !== null && upper[i] !== null);
  if (!known.length) return "";
  const point = (side) => (i) => `${xs[i].toFixed(1)} ${yOf(side[i]).toFixed(1)}`;
  return `M${known.map(point(upper)).join("L")}L${known.reverse().map(point(lower)).join("L")}Z`;
}

function tellLoss(event, view) {
  const x = event.clientX - find("#life svg").getBoundingClientRect().left;
  const place = placeOnAxis((x - view.from) / (view.to - view.from));
  const { track, first } = DATA;
  const at = track.steps.map((step) => DATA.scales[state.scale].at[indexOfStep.get(step)]);
  const i = nearest(at, place);
  const control = first.control?.map((side) => side[i]);
  const words = control?.every((v) => v !== null) && control.map((v) => formatNumber(v, 0.1)).join("–");
  const value = `${formatNumber(track.values[i], 0.1)} ${track.units}`;
  showTooltip(event, `Step ${formatStep(track.steps[i])}`, value, [words && `${first.control_name} ${words}`]);
}
