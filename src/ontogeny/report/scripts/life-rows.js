// All concepts at once: a row of four pixels each, by layer and birth, over the mean of the layer.

import {
  byBirth,
  meanAt,
  pointedStep,
  spokenConcept,
  tellConcept,
} from "./concepts.js";
import { DATA, lastNotAbove, makeSvg, range, say } from "./core.js";
import { formatStep, shortened } from "./format.js";
import { Shades } from "./life-lines.js";
import { PICTURE_NAMES, bandPath, linePath } from "./life-shapes.js";
import { placeOfStep, stepNow } from "./state.js";
import { hideTooltip } from "./tooltip.js";

const ROW = { height: 4, mean: 26, gap: 12, label: 16 };
const rowCursor = { place: 0 };

// Concepts by layer, and within a layer by birth; the sharpest first of those born together.
function conceptGroups(atlas) {
  const groups = atlas.layers.map(() => []);
  atlas.concepts.forEach((concept, i) => groups[concept.layer].push(i));
  return groups.map((group) => byBirth(atlas, group));
}

export function drawRows(svg, view, top) {
  const { atlas } = DATA;
  const rows = [];
  let y = top;
  conceptGroups(atlas).forEach((members, layer) => {
    if (!members.length) return;
    const group = makeSvg("g", { "data-group": atlas.layers[layer].group });
    svg.append(group);
    y = layerLabel(group, view, y, layer, members);
    const first = y;
    const cells = new Shades();
    members.forEach((i) => {
      cells.add(atlas, i, view, y, ROW.height);
      rows.push({ i, y });
      y += ROW.height;
    });
    group.append(...cells.paths(), birthTicks(atlas, members, view, first));
    y = layerMean(group, view, Math.max(y, first + (view.from >= PICTURE_NAMES - 40 ? 49 : 0)) + 4, layer) + ROW.gap;
  });
  svg.append(rowLink(svg, view, rows, { from: top, to: y - ROW.gap }));
  return y;
}

// Latents that half of the texts does not find are no concepts: they are counted apart.
function layerLabel(group, view, y, layer, members) {
  const { short } = DATA.atlas.layers[layer];
  const apart = members.filter((i) => DATA.atlas.concepts[i].kind === "not found again").length;
  const count = members.length - apart;
  const parts = [`${formatStep(count)} ${count === 1 ? "concept" : "concepts"}`];
  if (apart) parts.push(`+ ${formatStep(apart)} not found again`);
  if (view.from < PICTURE_NAMES - 40) {
    group.append(makeSvg("text", { class: "name", x: 0, y: y + 11 }, [short, parts.join(" ")].join(" · ")));
    return y + ROW.label;
  }
  const x = view.from - 10;
  group.append(makeSvg("text", { class: "name end", x, y: y + 11 }, shortened(short, 22)));
  parts.forEach((part, k) => group.append(makeSvg("text", { class: "end", x, y: y + 26 + 15 * k }, part)));
  return y;
}

function birthTicks(atlas, members, view, top) {
  const shape = members.map((i, k) => {
    const { born } = atlas.concepts[i];
    return born === null ? "" : `M${view.xOf(placeOfStep(born)).toFixed(1)} ${top + k * ROW.height}v${ROW.height}`;
  });
  return makeSvg("path", { class: "birth", d: shape.join("") });
}

// The mean strength of the layer's concepts, and grey that of the control runs' own concepts.
function layerMean(group, view, top, layer) {
  const { atlas } = DATA;
  const xs = atlas.steps.map((step) => view.xOf(placeOfStep(step)));
  const line = (k) => range(xs.length).map((t) => meanAt(atlas, layer, k, t));
  const [run, low, high] = [0, 1, 2].map(line);
  const yOf = (share) => top + 3 + (ROW.mean - 6) * (1 - share);
  const mean = makeSvg("g", { class: "layer-mean", role: "img", "aria-label": layerMeanWords(layer, run, low, high) });
  mean.append(makeSvg("path", { class: "axis", d: `M${view.from} ${yOf(0)}H${view.to}` }));
  const known = range(xs.length).filter((t) => low[t] !== null);
  if (known.length) {
    const pick = (list) => known.map((t) => list[t]);
    mean.append(makeSvg("path", { class: "control", d: bandPath(pick(xs), [pick(low), pick(high)], yOf) }));
  }
  mean.append(makeSvg("path", { class: "run", d: linePath(xs, run, yOf) }));
  if (view.roomy) {
    const x = view.to + 10;
    mean.append(makeSvg("text", { class: "name", x, y: top + (known.length ? 22 : 16) }, `mean ${lastPercent(run)}`));
    if (known.length) mean.append(makeSvg("text", { x, y: top + 9 }, `control ${rangeWords(low, high)}`));
  }
  group.append(mean);
  return top + ROW.mean;
}

function lastPercent(list) {
  const last = list.findLast((value) => value !== null);
  return last === undefined ? say("not measured") : `${Math.round(100 * last)} %`;
}

function rangeWords(low, high) {
  const [a, b] = [lastPercent(low), lastPercent(high)];
  return a === b ? a : `${a.replace(" %", "")}–${b}`;
}

function layerMeanWords(layer, run, low, high) {
  const beside = low.some((value) => value !== null) ? say("control means", { range: rangeWords(low, high) }) : "";
  return say("layer mean", { layer: DATA.atlas.layers[layer].short, percent: lastPercent(run), beside });
}

// One link that stands on the row that is pointed at, or that the keys chose.
function rowLink(svg, view, rows, { from, to }) {
  const { atlas } = DATA;
  const link = makeSvg("a", { class: "row-link", tabindex: 0 });
  const box = makeSvg("rect", { class: "hit", x: view.from - 2, width: view.to - view.from + 4, height: ROW.height });
  const cover = makeSvg("rect", { class: "cover", x: 0, y: from, width: view.width, height: to - from });
  const go = (place) => {
    rowCursor.place = Math.max(0, Math.min(rows.length - 1, place));
    const { i, y } = rows[rowCursor.place];
    link.setAttribute("href", `#${atlas.concepts[i].id}`);
    link.setAttribute("aria-label", spokenConcept(atlas, i));
    link.dataset.row = i;
    box.setAttribute("y", y);
  };
  const tell = (event, t) => tellConcept(event, atlas, rows[rowCursor.place].i, t);
  const tellHere = () => {
    const { left, bottom } = box.getBoundingClientRect();
    tell({ clientX: left, clientY: bottom }, lastNotAbove(atlas.steps, stepNow()));
  };
  const point = (event) => {
    const y = event.clientY - svg.getBoundingClientRect().top;
    const place = rows.findLastIndex((row) => row.y <= y);
    const inside = place >= 0 && y < rows[place].y + ROW.height;
    link.classList.toggle("pointed", inside);
    if (!inside) return hideTooltip();
    go(place);
    return tell(event, pointedStep(atlas, event, view));
  };
  link.append(cover, box);
  link.addEventListener("pointermove", point);
  link.addEventListener("pointerdown", point);
  link.addEventListener("pointerleave", () => {
    link.classList.remove("pointed");
    hideTooltip();
  });
  link.addEventListener("click", (event) => {
    if (event.detail && !link.classList.contains("pointed")) event.preventDefault(); // beside the rows
  });
  link.addEventListener("focus", () => link.matches(":focus-visible") && tellHere());
  link.addEventListener("blur", hideTooltip);
  link.addEventListener("keydown", (event) => {
    const turn = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -rows.length, End: rows.length }[event.key];
    if (!turn) return;
    event.preventDefault();
    go(rowCursor.place + turn);
    box.scrollIntoView({ block: "nearest" });
    tellHere();
  });
  go(rowCursor.place);
  return link;
}
