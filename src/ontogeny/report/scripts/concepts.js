// Concepts as the data has them, and the words that lines and cards have in common.

import { DATA, at, say } from "./core.js";
import { formatStep } from "./format.js";

const NO_FACTS = {
  name: "", token_name: "", given: false, kind: "", course: "", sharp: null,
  born: null, after: null, before: null, settled: null, gone: null, readable_from: null,
  fires: null, random: null, again: null, half: null, removed: null, followed: null,
  chips: [], up: [], down: [], near: [], answers: [],
  words: [], told: [], refits: null, of_learned: "", histogram: null,
};
// The first one has the life lines of the first screen; a menu leads to the others.
export const ATLASES = [DATA.atlas, ...DATA.further].filter(Boolean);
export const LEVELS = { full: 250, missing: 255, code: 15 };

// What a concept has nothing of is left out of the data.
for (const atlas of ATLASES) {
  atlas.concepts = atlas.concepts.map((concept) => {
    const { address, group, direction = "" } = atlas.layers[concept.layer];
    const own = direction.replace("{number}", concept.number);
    return { ...NO_FACTS, ...concept, id: address + concept.number, group, direction: own };
  });
}

// The one that the menu of dictionaries has chosen.
export let shownAtlas = ATLASES[0] ?? null;

export function chooseShown(k) {
  shownAtlas = ATLASES[k];
}

export function conceptName(concept) {
  return concept.name || `C${concept.number}`;
}

// Places by birth, those from the start first; the sharpest of those born together.
export function byBirth(atlas, places) {
  const moment = (i) => (atlas.concepts[i].kind === "from the start" ? -Infinity : (atlas.concepts[i].born ?? Infinity));
  return [...places].sort((a, b) => (moment(a) === moment(b) ? a - b : moment(a) - moment(b)));
}

// The step of its birth with its interval; else what kind of life it has.
export function bornWords(concept) {
  if (concept.born === null) return concept.course || concept.kind;
  return formatStep(concept.born) + intervalWords(concept, " (", ")");
}

export function spokenBirth(concept) {
  if (concept.born === null) return bornWords(concept);
  return say("born by", { at: formatStep(concept.born), between: intervalWords(concept, ", between ", "") });
}

export function intervalWords(concept, before = "", after = "") {
  const { after: low, before: high } = concept;
  return low === null || high === null || low === high ? "" : `${before}${formatStep(low)}–${formatStep(high)}${after}`;
}

// As a share of its peak; null where it was not measured.
export function strengthAt(atlas, i, t) {
  const strength = at(atlas.strength, { d0: i, d1: t });
  return strength === LEVELS.missing ? null : strength / LEVELS.full;
}

// Eight steps in a byte, the first one high.
export function readableAt(atlas, i, t) {
  return ((at(atlas.readable, { d0: i, d1: t >> 3 }) >> (7 - (t & 7))) & 1) === 1;
}

export function strengthWords(atlas, i, t) {
  const share = strengthAt(atlas, i, t);
  return share === null ? say("not measured") : say("of peak", { percent: Math.round(100 * share) });
}

export function strengthDoubt(atlas, i, t) {
  return readableAt(atlas, i, t) ? [] : [say("unreadable")];
}
