// The life lines: a row a concept, tinted by its strength, with a mark at its birth.

function drawLines(svg, view, top) {
  const { atlas } = DATA;
  const heading = atlas.naming === "named" ? "Life lines of concepts" : "Life lines of concepts, not named";
  svg.append(makeSvg("text", { class: "head", x: view.roomy ? view.from : 0, y: top + 14 }, heading));
  const rows = toldApart(atlas.lines.map((i) => lineWords(i)));
  // Names stand left of the cells where they all fit there, else over them; so do the numbers.
  const left = longest(svg, rows.map((row) => row.name)) + 14;
  const room = view.width - view.to - 10;
  const fits = (key) => longest(svg, rows.map((row) => row[key])) <= room;
  const beside = view.from >= left;
  const said = fits("number") ? "number" : "brief";
  const behind = fits(said);
  const pitch = beside && behind ? 24 : LIFE.gap;
  let y = top + 22;
  rows.forEach((row, place) => {
    svg.append(lineRow(row, view, y, { said, beside, behind, pitch, first: place === 0 }));
    y += pitch;
  });
  return y + 2;
}

function longest(svg, texts) {
  const probe = makeSvg("text", { class: "name" });
  find("#life .life-picture").append(svg);
  svg.append(probe);
  const widths = texts.map((text) => {
    probe.textContent = text;
    return probe.getComputedTextLength();
  });
  probe.remove();
  svg.remove();
  return Math.max(0, ...widths);
}

function lineWords(i) {
  const { concepts, layers } = DATA.atlas;
  const concept = concepts[i];
  const where = layers[concept.layer].depth;
  return { i, name: `${shortened(conceptName(concept), 22)} · ${where}`, number: bornWords(concept), brief: briefBirth(concept) };
}

// Concepts with one name in one layer get their number as well.
function toldApart(rows) {
  const times = new Map();
  for (const { name } of rows) times.set(name, (times.get(name) ?? 0) + 1);
  const number = ({ i }) => DATA.atlas.concepts[i].number;
  return rows.map((row) => (times.get(row.name) > 1 ? { ...row, name: `${row.name} · C${number(row)}` } : row));
}

// What fits a phone; the interval stays on hover and in the cards.
function briefBirth({ kind, born }) {
  if (born !== null) return formatStep(born);
  return { "from the start": "start", grows: "grows" }[kind] ?? "–";
}

function conceptName(concept) {
  return concept.name || `C${concept.number}`;
}

// The step of its birth with its interval; else what kind of life it has.
function bornWords(concept) {
  if (concept.born === null) return concept.kind === "born" ? "not confirmed" : concept.kind;
  return formatStep(concept.born) + intervalWords(concept, " (", ")");
}

function intervalWords(concept, before = "", after = "") {
  const { after: low, before: high } = concept;
  return low === null || high === null || low === high ? "" : `${before}${formatStep(low)}–${formatStep(high)}${after}`;
}

function placeOfStep(step) {
  const scale = DATA.scales[state.scale];
  const known = indexOfStep.get(step);
  return scale.at[known ?? nearest(DATA.steps, step)];
}

function lineRow(row, view, y, form) {
  const { atlas } = DATA;
  const concept = atlas.concepts[row.i];
  const link = makeSvg("a", {
    href: `#${concept.id}`,
    tabindex: form.first ? 0 : -1,
    "data-line": row.i,
    "aria-label": `${conceptName(concept)}, ${atlas.layers[concept.layer].short}: ${spokenBirth(concept)}`,
  });
  const lifted = form.beside && form.behind;
  const [top, height] = lifted ? [y + 4, 16] : [y + 15, 10];
  const middle = lifted ? y + 16 : y + 11;
  link.append(makeSvg("rect", { class: "hit", x: 0, y, width: view.width, height: form.pitch }));
  const label = form.beside ? { class: "name end", x: view.from - 10 } : { class: "name", x: form.behind ? view.from : 0 };
  link.append(makeSvg("text", { ...label, y: form.beside ? top + height / 2 + 4 : middle }, row.name));
  const number = form.behind ? { x: view.to + 10 } : { class: "end", x: view.width };
  link.append(makeSvg("text", { ...number, y: form.behind ? top + height / 2 + 4 : middle }, row[form.said]));
  link.append(...lineCells(row.i, view, top, height), ...birthMark(concept, view, top + height / 2));
  link.addEventListener("pointermove", (event) => tellLine(event, row.i, view));
  link.addEventListener("pointerleave", hideTooltip);
  return link;
}

function spokenBirth(concept) {
  if (concept.born === null) return bornWords(concept);
  return `born by step ${formatStep(concept.born)}${intervalWords(concept, ", between ", "")}`;
}

// One path for each shade of a row: the square of its strength, so that little looks like little.
function lineCells(i, view, top, height) {
  const { atlas } = DATA;
  const edges = atlas.edges[state.scale];
  const paths = new Map();
  range(atlas.steps.length).forEach((t) => {
    const strength = at(atlas.strength, { d0: i, d1: t });
    if (strength === LIFE.missing) return;
    const readable = at(atlas.readable, { d0: i, d1: t });
    const share = strength / LIFE.full;
    const key = readable ? Math.round(share * share * LIFE.levels) : "hatched";
    const [a, b] = edges[t].map((place) => view.xOf(place));
    const from = Math.max(a, view.from);
    paths.set(key, `${paths.get(key) ?? ""}M${from.toFixed(1)} ${top}H${b.toFixed(1)}v${height}H${from.toFixed(1)}z`);
  });
  return [...paths].map(([key, d]) => {
    if (key === "hatched") return makeSvg("path", { class: "hatched", d, fill: "url(#life-hatch)" });
    return makeSvg("path", { class: "shade", d, "fill-opacity": (0.03 + (0.87 * key) / LIFE.levels).toFixed(3) });
  });
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

function tellLine(event, i, view) {
  const { atlas } = DATA;
  const concept = atlas.concepts[i];
  const x = event.clientX - find("#life svg").getBoundingClientRect().left;
  const place = placeOnAxis((x - view.from) / (view.to - view.from));
  const t = nearest(atlas.steps.map(placeOfStep), place);
  const head = `${conceptName(concept)} · ${atlas.layers[concept.layer].short}`;
  const rest = [capital(spokenBirth(concept)), ...strengthDoubt(i, t)];
  showTooltip(event, head, `Step ${formatStep(atlas.steps[t])}: ${strengthWords(i, t)}`, rest);
}

function strengthWords(i, t) {
  const strength = at(DATA.atlas.strength, { d0: i, d1: t });
  return strength === LIFE.missing ? "not measured" : `${Math.round((100 * strength) / LIFE.full)} % of its peak`;
}

function strengthDoubt(i, t) {
  return at(DATA.atlas.readable, { d0: i, d1: t }) ? [] : ["cannot be read from this checkpoint alone"];
}

// The lines are one stop of the tab key; up and down go from one to the next.
function moveAlongLines(event) {
  const turn = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const link = event.target.closest("a");
  if (!turn || !link) return;
  const links = findAll("#life a");
  const next = links[links.indexOf(link) + turn];
  if (!next) return;
  event.preventDefault();
  next.focus();
}
