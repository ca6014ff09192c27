// What names are measured against: how sharp the untrained model's concepts are, in the same layer.

import { percentWords } from "./card-foot.js";
import { shownAtlas } from "./concepts.js";
import { make, say } from "./core.js";
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
    card.append(make("p", { className: "spark-value", textContent: words }));
  }
  if (controls.length) {
    const counts = controls.map(([, count]) => count).join(", ");
    card.append(make("p", { className: "spark-value", textContent: say("named", { own, counts }) }));
  }
  return [card];
}

