// What names are measured against: how sharp the untrained model's concepts are, in the same layer.

import { percentWords } from "./card-foot.js";
import { shownAtlas } from "./concepts.js";
import { make, makeSvg, say } from "./core.js";
import { formatStep } from "./format.js";

export function controlCard(layer) {
  const { untrained, limit, controls, short, control_words: sentences } = shownAtlas.layers[layer];
  if (sentences.length) {
    const told = sentences.map((textContent) => make("p", { textContent }));
    return [make("article", { className: "card control-card" }, make("h3", { textContent: say("controls", { layer: short }) }), ...told)];
  }
  if (!untrained.length && !controls.length) return [];
  const card = make("article", { className: "card control-card" });
  const own = shownAtlas.concepts.filter((each) => each.layer === layer && (each.given ? each.token_name : each.name)).length;
  card.append(
    make("h3", {}, make("span", { textContent: say("untrained") }), make("span", { className: "where", textContent: short })),
  );
  if (untrained.length) {
    const most = limit === null ? "" : say("untrained most", { percent: percentWords(limit) });
    const words = say("untrained finds", { count: formatStep(untrained.length), most });
    card.append(make("p", { className: "spark-value", textContent: words }), sharpStrip(layer));
  }
  if (controls.length) {
    const counts = controls.map(([, count]) => count).join(", ");
    card.append(make("p", { className: "spark-value", textContent: say("named", { own, counts }) }));
  }
  return [card];
}

// Two rows of marks on one axis from 0 to 100 %: concepts of the run over those of the untrained model.
function sharpStrip(layer) {
  const { concepts, layers } = shownAtlas;
  const { untrained, limit } = layers[layer];
  const own = concepts.filter((each) => each.layer === layer && each.sharp !== null).map((each) => each.sharp);
  const svg = makeSvg("svg", { class: "strip", viewBox: "0 0 300 74", role: "img" });
  svg.setAttribute("aria-label", say("strip", { own: own.length, untrained: untrained.length }));
  const xOf = (share) => 4 + 292 * Math.min(1, share);
  svg.append(makeSvg("text", { x: 0, y: 10 }, "this run"), makeSvg("text", { x: 0, y: 42 }, "untrained"));
  for (const share of own) svg.append(makeSvg("circle", { class: "own", cx: xOf(share), cy: 19, r: 3 }));
  for (const share of untrained) svg.append(makeSvg("circle", { class: "null", cx: xOf(share), cy: 51, r: 3 }));
  if (limit !== null) svg.append(makeSvg("line", { class: "limit", x1: xOf(limit), x2: xOf(limit), y1: 12, y2: 58 }));
  for (const share of [0, 0.5, 1])
    svg.append(makeSvg("text", { x: xOf(share), y: 72, "text-anchor": share === 0 ? "start" : share === 1 ? "end" : "middle" }, `${100 * share} %`));
  return svg;
}
