// Below a card: how sharp its concept is; folded what it was measured against, what it writes and
// costs, and its neighbours.

import { readableAt, shownAtlas } from "./concepts.js";
import { CLOCK, POINT, findAll, make, range, token } from "./core.js";
import { formatNumber, formatStep, shortened } from "./format.js";
import { oneStop } from "./layers.js";

export function cardFoot(concept) {
  const foot = make("details", { className: "foot" }, make("summary", { textContent: "more" }));
  const line = (...parts) => foot.append(make("div", {}, ...parts));
  const earned = concept.sharp === null ? "" : sharpWords(concept);
  const sharp = earned ? [make("p", { className: "spark-value", textContent: earned })] : [];
  if (concept.sharp !== null && limitOf(concept) !== null) line(`Three tokens of the untrained model’s concepts carry at most ${percentWords(limitOf(concept))}, for 95 % of them`);
  if (concept.readable_from !== null) line(readableWords(shownAtlas, concept));
  if (concept.fires !== null) line(`Fires on ${percentWords(concept.fires)} of the tokens${explainedWords(concept)}`);
  const again = [[concept.half, "either half of the texts"], [concept.again, "another seed"]].filter(([found]) => found !== null);
  if (again.length) line(`Found again by a fit to ${again.map(([found, by]) => `${by} with a correlation of ${found.toFixed(2)}`).join(", from ")}${concept.kind === "not found again" ? ": it stands apart" : ""}`);
  if (concept.up.length) line(shownAtlas.step === null ? `Adds to the logits at the last ${POINT} ` : "Adds to the logits ", ...writtenParts(concept));
  if (concept.removed) line(removalWords(concept.removed));
  if (concept.near.length) {
    line("Nearest directions, with their cosine: ", ...concept.near.flatMap((near, k) => nearParts(concept, near, k)));
    oneStop(foot, findAll("a", foot));
  }
  return foot.childElementCount > 1 ? [...sharp, foot] : sharp;
}

// What was readable once may not be at the next step: from where on it stays so is said apart.
function readableWords(atlas, concept) {
  const { readable_from: first, born } = concept;
  const i = atlas.concepts.indexOf(concept);
  const lost = range(atlas.steps.length).findLast((t) => !readableAt(atlas, i, t)) ?? -1;
  if (lost === atlas.steps.length - 1) return `It can first be read at ${CLOCK} ${formatStep(first)}, but not at the last ${POINT}`;
  const stays = atlas.steps[lost + 1];
  const weak = born !== null && stays < born ? ", at first too weak to count as born" : "";
  if (stays === first) return `It can be read from ${CLOCK} ${formatStep(first)} on${weak}`;
  return `It can first be read at ${CLOCK} ${formatStep(first)}, and at every ${POINT} from ${formatStep(stays)} on${weak}`;
}

function limitOf(concept) {
  return shownAtlas.layers[concept.layer].limit;
}

// What its removal costs, beside equally strong removals; and whether that is more than both.
function removalWords({ step, removed, random, other, verdict }) {
  const beside = [
    [random, "random directions"],
    [other, "on the tokens of other concepts"],
  ].filter(([cost]) => cost !== null);
  const against = beside.map(([cost, words]) => `${words} at most ${formatNumber(cost, 0.01)}`).join("; ");
  const cost = `Its removal at ${CLOCK} ${formatStep(step)} costs ${formatNumber(removed, 0.01)} nats a token`;
  return `${cost}${against ? ` (${against})` : ""}: ${verdict === "matters" ? "it matters" : "not surely more than these"}`;
}

export function percentWords(share) {
  return share < 0.005 ? "under 1 %" : `${Math.round(100 * share)} %`;
}

function sharpWords(concept) {
  return `${percentWords(concept.sharp)} of its activation on three tokens`;
}

function explainedWords(concept) {
  if (!concept.answers.length || concept.answers[1] === null) return "";
  return `; the ${concept.answers[0]} explains ${percentWords(Math.max(0, concept.answers[1]))} of its code`;
}

// Each side beside what random directions add at most, and as likely take away.
function writtenParts({ up, down, random: most }) {
  const one = ([place, value]) => [token(shortened(shownAtlas.pieces[place], 20)), ` ${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)} `];
  const side = (tokens) => {
    const within = most !== null && tokens.every(([, value]) => Math.abs(value) <= most);
    return [...tokens.flatMap(one), ...(within ? ["(no more than chance) "] : [])];
  };
  const parts = side(up);
  if (down.length) parts.push("and takes from ", ...side(down));
  if (most !== null) parts.push(`(95 % of random directions: at most ${most.toFixed(2)} on either side)`);
  return parts;
}

function nearParts(concept, [number, cosine], k) {
  const { concepts } = shownAtlas;
  const other = concepts.find((each) => each.layer === concept.layer && each.number === number);
  const words = `${other?.name || `C${number}`} ${cosine < 0 ? "−" : "+"}${Math.abs(cosine).toFixed(2)}`;
  const comma = k ? [", "] : [];
  return other ? [...comma, make("a", { href: `#${other.id}`, textContent: words })] : [...comma, words];
}
