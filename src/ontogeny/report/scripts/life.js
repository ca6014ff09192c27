// The picture of the first screen, which the library draws: its hairline, and what its lines tell.

import { followAxis } from "./chart.js";
import { conceptName, spokenBirth, strengthDoubt, strengthWords } from "./concepts.js";
import { CLOCK_HEAD, DATA, find, findAll, nearest } from "./core.js";
import { capital, formatNumber, formatStep } from "./format.js";
import { UP_AND_DOWN, oneStop } from "./layers.js";
import { layerShown, listen, placeOfStep } from "./state.js";
import { showTooltip, tellsAt } from "./tooltip.js";

export function startLife() {
  const figure = find("#life:not(.still)"); // one model's picture has no steps
  if (!figure) return;
  for (const svg of findAll("svg", figure)) {
    const placeOf = followAxis(svg, Number(svg.dataset.left), Number(svg.dataset.width));
    const loss = find(".loss", svg);
    if (loss) tellsAt(loss, (event) => tellLoss(event, placeOf(event)));
    const lines = findAll("a[data-line]", svg);
    for (const line of lines) tellsAt(line, (event) => tellLine(event, line.dataset.line, placeOf(event)));
    if (lines.length) oneStop(figure, lines, UP_AND_DOWN);
    listen(() => {
      for (const line of lines) line.classList.toggle("dim", !layerShown(Number(line.dataset.group)));
    }, "layers");
  }
}

function tellLoss(event, place) {
  const { track, first } = DATA;
  const { names, runs, control, control_name: controlName } = first;
  const i = nearest(track.steps.map(placeOfStep), place);
  const ends = control?.map((side) => side[i]) ?? [null];
  const ofControls = ends.includes(null) ? "" : `${controlName} ${ends.map((end) => formatNumber(end, 0.1)).join("–")}`;
  const each = names.map((name, k) => `${name} ${formatNumber(runs[k][i], 0.1)}`);
  const value = each.length ? track.units : `${formatNumber(track.values[i], 0.1)} ${track.units}`;
  showTooltip(event, `${CLOCK_HEAD} ${formatStep(track.steps[i])}`, value, [...each, ofControls]);
}

function tellLine(event, address, place) {
  const { atlas } = DATA;
  const i = atlas.concepts.findIndex((concept) => concept.id === address);
  if (i < 0) return;
  const concept = atlas.concepts[i];
  const t = nearest(atlas.steps.map(placeOfStep), place);
  const head = `${conceptName(concept)} · ${atlas.layers[concept.layer].short}`;
  const rest = [capital(spokenBirth(concept)), ...strengthDoubt(atlas, i, t)];
  showTooltip(event, head, `${CLOCK_HEAD} ${formatStep(atlas.steps[t])}: ${strengthWords(atlas, i, t)}`, rest);
}
