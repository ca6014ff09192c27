// The contexts of a card, at the slider's step and on paper.

import { LEVELS, shownAtlas } from "./concepts.js";
import { DATA, at, find, make, nearest, range, say } from "./core.js";
import { formatStep } from "./format.js";
import { stepNow } from "./state.js";

const LETTER_AT_START = /^[\p{L}\p{N}]/u;
const LETTER_AT_END = /[\p{L}\p{N}]$/u;

// The strongest tokens in their contexts; a step changes texts and tints, and no element.
export function contextPart(i) {
  const atlas = shownAtlas;
  const { label, list, show } = contextList(atlas, i);
  const update = () => {
    const key = atlas.contexts.follow ? nearestKey(atlas, i, stepNow()) : 0;
    label.textContent = contextWords(atlas, i, key);
    show(key);
  };
  update();
  return { elements: [label, list], update };
}

// A list of contexts whose elements stay: `show` puts those of a keyframe in.
function contextList(atlas, i) {
  const { lines, line, middle, bands } = atlas.contexts;
  const [examples, places] = [line.shape[2], lines.shape[1]];
  const label = make("p", { className: "spark-value" });
  const tokens = range(examples).map(() => range(places).map(() => make("bdi")));
  const items = tokens.map((own) => {
    own[middle].className = "peak";
    const before = make("span", { className: "before" }, ...own.slice(0, middle));
    const after = make("span", { className: "after" }, ...own.slice(middle + 1));
    const whole = make("summary", {}, before, own[middle], after);
    return make("li", {}, make("details", { className: "context" }, whole, make("p")));
  });
  // An open context is its whole text, with the strength at its mark.
  const tell = (e) => {
    const fold = find("details", items[e]);
    const strength = codeAt(atlas, { d0: i, d1: shown, d2: e }, middle) / LEVELS.code;
    const numbers = { percent: Math.round(100 * strength), before: middle, after: places - 1 - middle };
    find("p", fold).textContent = fold.open ? say("context", numbers) : "";
  };
  items.forEach((item, e) => find("details", item).addEventListener("toggle", () => tell(e)));
  // Examples of each band stand under its heading, all where the card's foot is open.
  const heads = bands.map((words) => make("li", { className: "band", textContent: words }));
  const each = examples / Math.max(bands.length, 1);
  if (bands.length) items.forEach((item, e) => item.classList.toggle("further", e % each >= (e < each ? 2 : 1)));
  const listed = bands.length ? heads.flatMap((head, b) => [head, ...items.slice(b * each, (b + 1) * each)]) : items;
  let shown = -1;
  const show = (key) => {
    if (key === shown) return;
    shown = key;
    tokens.forEach((own, e) => {
      const index = { d0: i, d1: key, d2: e };
      const which = at(line, index);
      const pieces = own.map((_, p) => atlas.pieces[at(lines, { d0: which, d1: p }) - 1] ?? "");
      const [first, last] = wordAround(pieces, middle);
      own.forEach((element, p) => {
        element.textContent = pieces[p];
        element.classList.toggle("word", p >= first && p <= last);
        element.style.setProperty("--a", ((0.62 * codeAt(atlas, index, p)) / LEVELS.code).toFixed(3));
      });
      items[e].hidden = !own[middle].textContent;
      tell(e);
    });
    heads.forEach((head, b) => (head.hidden = items.slice(b * each, (b + 1) * each).every((item) => item.hidden)));
  };
  return { label, list: make("ul", { className: atlas.numbers ? "contexts by-number" : "contexts" }, ...listed), show };
}

// The strength at a place of a context, two of which are held in a byte.
function codeAt(atlas, index, p) {
  return (at(atlas.contexts.codes, { ...index, d3: p >> 1 }) >> (p % 2 ? 0 : 4)) & 15;
}

// From which piece to which the word of one of them goes, as far as the context does.
function wordAround(pieces, middle) {
  const goesOn = (p) => LETTER_AT_END.test(pieces[p - 1] ?? "") && LETTER_AT_START.test(pieces[p] ?? "");
  let [first, last] = [middle, middle];
  while (goesOn(first)) first -= 1;
  while (goesOn(last + 1)) last += 1;
  return [first, last];
}

function keyStep(atlas, i, key) {
  return atlas.steps[at(atlas.keys, { d0: i, d1: key })];
}

function nearestKey(atlas, i, step) {
  return nearest(range(atlas.keys.shape[1]).map((k) => keyStep(atlas, i, k)), step);
}

function contextWords(atlas, i, key) {
  if (atlas.contexts.shared) return say("strongest shared");
  if (atlas.contexts.bands.length) return "";
  if (DATA.steps.length === 1) return say("strongest");
  if (!atlas.contexts.follow) return say(atlas.one_code ? "strongest at" : "strongest fitted", { at: formatStep(atlas.step) });
  const step = keyStep(atlas, i, key);
  return say(step === stepNow() ? "strongest at" : "strongest nearest", { at: formatStep(step) });
}
