// Below a card: how sharp its concept is; folded what it was measured against, what it writes and
// costs, and its neighbours.

import { readableAt, shownAtlas } from "./concepts.js";
import { findAll, make, range, say, token } from "./core.js";
import { formatNumber, formatStep, shortened } from "./format.js";
import { oneStop } from "./layers.js";
import { directionPart } from "./learned-card.js";

export function cardFoot(concept) {
  const hasBands = Boolean(shownAtlas.contexts?.bands.length);
  const foot = make("details", { className: "foot numbers-of-it" }, make("summary", { textContent: say(hasBands ? "more of it" : "more") }));
  const line = (...parts) => foot.append(make("div", {}, ...parts));
  const earned = concept.sharp === null ? "" : sharpWords(concept);
  const sharp = earned ? [make("p", { className: "spark-value", textContent: earned })] : [];
  if (concept.sharp !== null && limitOf(concept) !== null) line(say("three untrained", { percent: percentWords(limitOf(concept)) }));
  if (concept.readable_from !== null) line(readableWords(shownAtlas, concept));
  if (concept.fires !== null) line(say("fires", { percent: percentWords(concept.fires), explained: explainedWords(concept) }));
  const again = [[concept.half, "by half"], [concept.again, "by seed"]].filter(([found]) => found !== null);
  const by = again.map(([found, key]) => say(key, { value: found.toFixed(2) })).join(", from ");
  if (by) line(say("found again", { by, apart: concept.kind === "not found again" ? say("apart") : "" }));
  if (concept.of_learned) line(concept.of_learned);
  if (concept.up.length) line(say(shownAtlas.step === null ? "adds at end" : "adds"), ...writtenParts(concept));
  if (concept.direction) line(...directionPart(concept));
  if (concept.removed) line(removalWords(concept.removed));
  if (concept.near.length) {
    line(say("nearest"), ...concept.near.flatMap((near, k) => nearParts(concept, near, k)));
    oneStop(foot, findAll("a", foot));
  }
  return foot.childElementCount > 1 || hasBands ? [...sharp, foot] : sharp;
}

// What was readable once may not be at the next step: since when it stays so is said apart.
function readableWords(atlas, concept) {
  const { readable_from: first, born } = concept;
  const i = atlas.concepts.indexOf(concept);
  const lost = range(atlas.steps.length).findLast((t) => !readableAt(atlas, i, t)) ?? -1;
  if (lost === atlas.steps.length - 1) return say("read lost", { at: formatStep(first) });
  const stays = atlas.steps[lost + 1];
  const weak = born !== null && stays < born ? say("weak") : "";
  const numbers = { at: formatStep(first), stays: formatStep(stays), weak };
  return say(stays === first ? "read from" : "read twice", numbers);
}

function limitOf(concept) {
  return shownAtlas.layers[concept.layer].limit;
}

// What its removal costs, beside equally strong removals; and whether that is more than both.
function removalWords({ step, removed, random, other, verdict }) {
  const beside = [[random, "random removal"], [other, "other removal"]].filter(([cost]) => cost !== null);
  const words = beside.map(([cost, key]) => say(key, { cost: formatNumber(cost, 0.01) })).join("; ");
  const numbers = { at: formatStep(step), cost: formatNumber(removed, 0.01), against: words && ` (${words})` };
  return say("removal", { ...numbers, verdict: say(verdict === "matters" ? "matters" : "not surely") });
}

export function percentWords(share) {
  return share < 0.005 ? "under 1 %" : `${Math.round(100 * share)} %`;
}

function sharpWords(concept) {
  return say("three tokens", { percent: percentWords(concept.sharp) });
}

function explainedWords(concept) {
  if (!concept.answers.length || concept.answers[1] === null) return "";
  return say("explains", { what: concept.answers[0], percent: percentWords(Math.max(0, concept.answers[1])) });
}

// Each side beside what random directions add at most, and as likely take away.
function writtenParts({ up, down, random: most }) {
  const one = ([place, value]) => [token(shortened(shownAtlas.pieces[place], 20)), ` ${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)} `];
  const side = (tokens) => {
    const within = most !== null && tokens.every(([, value]) => Math.abs(value) <= most);
    return [...tokens.flatMap(one), ...(within ? [say("by chance")] : [])];
  };
  const parts = side(up);
  if (down.length) parts.push(say("takes"), ...side(down));
  if (most !== null) parts.push(say("random logits", { most: most.toFixed(2) }));
  return parts;
}

function nearParts(concept, [number, cosine], k) {
  const { concepts } = shownAtlas;
  const other = concepts.find((each) => each.layer === concept.layer && each.number === number);
  const words = `${other?.name || `C${number}`} ${cosine < 0 ? "−" : "+"}${Math.abs(cosine).toFixed(2)}`;
  const comma = k ? [", "] : [];
  return other ? [...comma, make("a", { href: `#${other.id}`, textContent: words })] : [...comma, words];
}
