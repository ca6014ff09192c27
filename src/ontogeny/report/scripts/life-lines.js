// The life lines: a row a concept, tinted by its strength, with a mark at its birth.

import { textWidth } from "./annotations.js";
import {
  bornWords,
  conceptName,
  pointedStep,
  readableAt,
  spokenConcept,
  strengthAt,
  tellConcept,
} from "./concepts.js";
import { DATA, find, makeSvg, say } from "./core.js";
import { formatStep, shortened } from "./format.js";
import { LIFE, PICTURE_NAMES } from "./life-shapes.js";
import { placeOfStep, state } from "./state.js";
import { tellsAt } from "./tooltip.js";

const PITCH = { close: 24, apart: 28 }; // pixels, of which a pointer needs 24

// The heading over lines or rows, with room for the choice between them.
export function drawLifeHead(svg, view, top) {
  const words = say(DATA.atlas.naming === "named" ? "life lines" : "life lines unnamed");
  svg.append(makeSvg("text", { class: "head halo", x: 0, y: top + 19 }, words));
  const choice = find("#life .life-choice");
  if (!choice) return top + 28;
  const beside = textWidth(words, 13) + 24 + choice.offsetWidth <= Math.max(view.to, choice.offsetWidth);
  Object.assign(view, { choice: beside ? top : top + 26 });
  return top + (beside ? 30 : 58);
}

export function drawLines(svg, view, top, lines) {
  // Names stand left of the cells where there is room, else over them; so do the numbers.
  const beside = view.from >= PICTURE_NAMES - 40;
  const written = (row) => (beside ? fittedName(row, view.from - 12) : row.name + row.where);
  const rows = withNumbers(lines.map((i) => lineWords(i)), written);
  const room = view.width - view.to - 10;
  const fits = (key) => longest(rows.map((row) => row[key])) <= room;
  const said = fits("number") ? "number" : "brief";
  const behind = fits(said);
  const pitch = beside && behind ? PITCH.close : PITCH.apart;
  let y = top;
  rows.forEach((row) => {
    svg.append(lineRow(row, view, y, { said, written, beside, behind, pitch }));
    y += pitch;
  });
  return y + 2;
}

function longest(texts) {
  return Math.max(0, ...texts.map((text) => textWidth(text, 12)));
}

function lineWords(i) {
  const { concepts, layers } = DATA.atlas;
  const concept = concepts[i];
  return {
    i,
    name: shortened(conceptName(concept), 22),
    where: ` · ${layers[concept.layer].depth}`,
    number: bornWords(concept),
    brief: briefBirth(concept),
  };
}

// Concepts whose names are written alike in one layer get their number as well.
function withNumbers(rows, written) {
  const times = new Map();
  for (const row of rows) times.set(written(row), (times.get(written(row)) ?? 0) + 1);
  const number = ({ i }) => DATA.atlas.concepts[i].number;
  return rows.map((row) => (times.get(written(row)) > 1 ? { ...row, where: `${row.where} · C${number(row)}` } : row));
}

// A name as long as there is room for it; layer and number stay.
function fittedName({ name, where }, room) {
  let length = name.length;
  while (length > 3 && textWidth(shortened(name, length) + where, 12) > room) length -= 1;
  return shortened(name, length) + where;
}

// What fits a phone; the interval stays on hover and in the cards.
function briefBirth({ kind, born }) {
  if (born !== null) return formatStep(born);
  return { "from the start": "start", grows: "grows" }[kind] ?? "–";
}

function lineRow(row, view, y, form) {
  const { atlas } = DATA;
  const concept = atlas.concepts[row.i];
  const link = makeSvg("a", {
    href: `#${concept.id}`,
    "data-line": row.i,
    "aria-label": spokenConcept(atlas, row.i),
  });
  const lifted = form.beside && form.behind;
  const [top, height] = lifted ? [y + 4, 16] : [y + 15, 10];
  const middle = lifted ? y + 16 : y + 11;
  link.append(makeSvg("rect", { class: "hit", x: 0, y, width: view.width, height: form.pitch }));
  const label = form.beside ? { class: "name end", x: view.from - 10 } : { class: "name", x: form.behind ? view.from : 0 };
  link.append(makeSvg("text", { ...label, y: form.beside ? top + height / 2 + 4 : middle }, form.written(row)));
  const number = form.behind ? { x: view.to + 10 } : { class: "end", x: view.width };
  link.append(makeSvg("text", { ...number, y: form.behind ? top + height / 2 + 4 : middle }, row[form.said]));
  link.append(...shades(row.i, view, top, height), ...birthMark(concept, view, top + height / 2));
  tellsAt(link, (event) => tellConcept(event, atlas, row.i, pointedStep(atlas, event, view)));
  return link;
}

// One path for each shade; cells that touch and look alike are one.
function shades(i, view, top, height) {
  const { atlas } = DATA;
  const edges = atlas.edges[state.scale];
  const paths = new Map();
  let open = null;
  const close = () => {
    if (!open) return;
    const shape = `M${open.from.toFixed(1)} ${top}H${open.to.toFixed(1)}v${height}H${open.from.toFixed(1)}z`;
    paths.set(open.key, (paths.get(open.key) ?? "") + shape);
  };
  for (let t = 0; t < atlas.steps.length; t += 1) {
    const key = shadeOf(atlas, i, t);
    const [from, to] = edges[t].map((place) => Math.max(view.xOf(place), view.from));
    if (open && open.key === key && from - open.to < 0.5) {
      open.to = to;
      continue;
    }
    close();
    open = key === null ? null : { key, from, to };
  }
  close();
  return [...paths].map(([key, d]) => {
    if (key === "hatched") return makeSvg("path", { class: "hatched", d, fill: "url(#life-hatch)" });
    return makeSvg("path", { class: "shade", d, "fill-opacity": (0.03 + (0.87 * key) / LIFE.levels).toFixed(3) });
  });
}

function shadeOf(atlas, i, t) {
  const share = strengthAt(atlas, i, t);
  if (share === null) return null;
  return readableAt(atlas, i, t) ? Math.round(share * LIFE.levels) : "hatched";
}

function birthMark(concept, view, y) {
  if (concept.born === null) return [];
  const [low, high] = [concept.after ?? concept.born, concept.before ?? concept.born];
  const ends = { x1: view.xOf(placeOfStep(low)), x2: view.xOf(placeOfStep(high)), y1: y, y2: y };
  const cx = view.xOf(placeOfStep(concept.born));
  return [
    makeSvg("line", { class: "whisker-halo", ...ends }),
    makeSvg("line", { class: "whisker", ...ends }),
    makeSvg("circle", { class: "dot", cx, cy: y, r: 3.2 }),
  ];
}
