// One card of the atlas: what a concept responds to at the slider's step, and its life.

import { contextPart } from "./card-contexts.js";
import { cardFoot, percentWords } from "./card-foot.js";
import {
  bornWords,
  conceptName,
  intervalWords,
  readableAt,
  shownAtlas,
  spokenBirth,
  strengthAt,
  strengthDoubt,
  strengthWords,
} from "./concepts.js";
import { CLOCK_HEAD, DATA, findAll, lastNotAbove, make, makeSvg, range, say, standAt, token, watch } from "./core.js";
import { formatStep, shortened } from "./format.js";
import { UP_AND_DOWN, oneStop } from "./layers.js";
import { codeHistogram } from "./learned-card.js";
import { linePath } from "./paths.js";
import { currentPlace, placeOfStep, shareOfAxis, stepNow } from "./state.js";

const SPARK = { width: 300, height: 40 };
export const shownCards = new Set();
const cardObjects = new WeakMap();

// Only cards in view follow the slider; others catch up when they come into view.
const cardWatcher = watch("200px", (element, visible) => {
  const card = cardObjects.get(element);
  if (!visible) shownCards.delete(card);
  else {
    shownCards.add(card);
    card.update(new Set(["step", "scale"]));
  }
});

export function forgetCard(element) {
  cardWatcher.unobserve(element);
  shownCards.delete(cardObjects.get(element));
}

export function conceptCard(i) {
  const atlas = shownAtlas;
  const concept = atlas.concepts[i];
  const weak = !concept.given && (atlas.naming !== "named" || !concept.name);
  const card = make("article", { className: weak ? "card weak" : "card", id: concept.id });
  card.dataset.concept = concept.id.replace(/^concept=/, "");
  card.append(cardHead(concept), cardFacts(concept));
  const parts = [atlas.strength && sparkPart(i), atlas.contexts && contextPart(i)].filter(Boolean);
  card.append(...concept.told.map((textContent) => make("p", { className: "spark-value", textContent })));
  for (const part of parts) card.append(...part.elements);
  card.append(...(concept.histogram ? [codeHistogram(concept)] : []), ...cardFoot(concept));
  oneStop(card, findAll(".where, summary", card), UP_AND_DOWN);
  cardObjects.set(card, { update: (changed) => parts.forEach((part) => part.update(changed)) });
  cardWatcher.observe(card);
  return card;
}

function cardHead(concept) {
  const { layers, pieces } = shownAtlas;
  const head = make("h3", {}, make("bdi", { className: "title", textContent: concept.name || unnamedWords(concept) }));
  if (concept.given) head.append(make("span", { className: "quiet", textContent: say("by a person") }));
  for (const word of concept.words.slice(0, 4)) head.append(token(shortened(word, 18), "token chip"));
  for (const [place, share] of concept.chips.slice(0, 3)) {
    const chip = token(shortened(pieces[place], 24), "token chip");
    chip.title = say("of squares", { percent: Math.round(100 * share) });
    head.append(chip);
  }
  const where = `${layers[concept.layer].short} · C${concept.number}`;
  head.append(make("a", { className: "where", href: `#${concept.id}`, textContent: where }));
  return head;
}

function unnamedWords(concept) {
  return shownAtlas.naming === "absent" ? `C${concept.number}` : say("not named");
}

function cardFacts(concept) {
  const list = make("dl", { className: "life-facts" });
  const fact = (term, value, more = "") => {
    const said = make("dd", { textContent: value });
    if (more) said.append(" ", make("small", { textContent: more }));
    list.append(make("div", {}, make("dt", { textContent: term }), said));
  };
  if (shownAtlas.step !== null) return stepFacts(concept, fact, list);
  if (concept.born === null) fact("life", bornWords(concept));
  else fact("born", formatStep(concept.born), intervalWords(concept, "(", ")"));
  if (concept.gone !== null) fact(say("gone"), formatStep(concept.gone));
  else if (shownAtlas.learned) {
    if (concept.refits !== null && concept.born !== null) fact(say("refits"), percentWords(concept.refits));
  }
  else if (concept.settled === null) fact("settled", DATA.refresh ? "not yet" : say("unsettled"));
  else fact(say("settled from"), formatStep(concept.settled));
  return list;
}

// Of a fit to one step: which, and how far neighbouring steps have the like of it.
function stepFacts(concept, fact, list) {
  if (DATA.steps.length === 1) return list;
  if (!shownAtlas.one_code) fact(say("fitted to"), formatStep(shownAtlas.step));
  else if (concept.kind) fact(say("since first"), concept.kind);
  if (concept.followed) {
    const [first, last] = concept.followed;
    fact(say("followed from"), formatStep(first));
    fact("to", formatStep(last));
  }
  return list;
}

// Its strength over the steps as a share of its peak; faint where it cannot be read.
function sparkPart(i) {
  const atlas = shownAtlas;
  const { width, height } = SPARK;
  const svg = makeSvg("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img" });
  const here = makeSvg("line", { class: "here", y1: 0, y2: height });
  const value = make("span", { className: "now" });
  const yOf = (share) => height - 4 - (height - 8) * share;
  const steps = range(atlas.steps.length);
  const shares = steps.map((t) => strengthAt(atlas, i, t));
  const readable = steps.map((t) => (readableAt(atlas, i, t) ? shares[t] : null));
  const draw = () => {
    const xs = atlas.steps.map((step) => sparkX(placeOfStep(step)));
    svg.replaceChildren(
      makeSvg("line", { class: "base", x1: 0, x2: width, y1: height - 4, y2: height - 4 }),
      makeSvg("path", { class: "curve faint", d: linePath(xs, shares, yOf) }),
      makeSvg("path", { class: "curve", d: linePath(xs, readable, yOf) }),
      here,
    );
    svg.setAttribute("aria-label", sparkWords(atlas, i));
  };
  const update = (changed) => {
    if (changed.has("scale")) draw();
    standAt(here, sparkX(currentPlace()));
    const t = lastNotAbove(atlas.steps, stepNow());
    const doubt = strengthDoubt(atlas, i, t).length ? say("not readable") : "";
    value.textContent = `${CLOCK_HEAD} ${formatStep(atlas.steps[t])}: ${strengthWords(atlas, i, t)}${doubt}`;
  };
  update(new Set(["scale"]));
  return { elements: [svg, make("p", { className: "spark-value" }, value)], update };
}

function sparkX(place) {
  return shareOfAxis(place) * SPARK.width;
}

function sparkWords(atlas, i) {
  const concept = atlas.concepts[i];
  const strength = strengthWords(atlas, i, atlas.steps.length - 1);
  return say("spark", { name: conceptName(concept), birth: spokenBirth(concept), strength });
}
