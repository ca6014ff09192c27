// One card of the atlas: what a concept responds to at the slider's step, and its life.

const SPARK = { width: 300, height: 54 };
const shownCards = new Set();
const cardObjects = new WeakMap();

// Only cards in view follow the slider; others catch up when they come into view.
const cardWatcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    const card = cardObjects.get(entry.target);
    if (!card) continue;
    if (!entry.isIntersecting) shownCards.delete(card);
    else {
      shownCards.add(card);
      card.update(new Set(["step", "scale"]));
    }
  }
}, { rootMargin: "200px" });

function forgetCard(element) {
  cardWatcher.unobserve(element);
  shownCards.delete(cardObjects.get(element));
}

function conceptCard(i) {
  const { atlas } = DATA;
  const concept = atlas.concepts[i];
  const weak = !concept.given && (atlas.naming !== "named" || !concept.name);
  const card = make("article", { className: weak ? "card weak" : "card", id: concept.id });
  card.dataset.concept = concept.id.replace(/^concept=/, "");
  card.append(cardHead(concept), cardFacts(concept));
  const parts = [sparkPart(i), atlas.contexts ? contextPart(i) : null].filter(Boolean);
  for (const part of parts) card.append(...part.elements);
  if (!atlas.contexts) card.append(make("p", { className: "quiet spark-value", textContent: "The result holds no contexts." }));
  card.append(cardFoot(concept));
  cardObjects.set(card, { update: (changed) => parts.forEach((part) => part.update(changed)) });
  cardWatcher.observe(card);
  return card;
}

function token(text, className = "token") {
  return make("bdi", { className, textContent: text });
}

function cardHead(concept) {
  const { layers, pieces } = DATA.atlas;
  const head = make("h3", {}, make("bdi", { className: "title", textContent: concept.name || unnamedWords(concept) }));
  if (concept.given) head.append(make("span", { className: "quiet", textContent: "named by a person" }));
  for (const [place, share] of concept.chips.slice(0, 3)) {
    const chip = token(shortened(pieces[place], 24), "token chip");
    chip.title = `${Math.round(100 * share)} % of its squared activation`;
    head.append(chip);
  }
  const where = `${layers[concept.layer].short} · C${concept.number}`;
  head.append(make("a", { className: "where", href: `#${concept.id}`, textContent: where }));
  return head;
}

function unnamedWords(concept) {
  return DATA.atlas.naming === "absent" ? `C${concept.number}` : "not named";
}

function cardFacts(concept) {
  const list = make("dl", { className: "life-facts" });
  const fact = (term, value, more = "") => {
    const said = make("dd", { textContent: value });
    if (more) said.append(" ", make("small", { textContent: more }));
    list.append(make("div", {}, make("dt", { textContent: term }), said));
  };
  if (concept.born === null) fact("life", bornWords(concept));
  else fact("born", formatStep(concept.born), intervalWords(concept, "(", ")"));
  if (concept.gone !== null) fact("gone from", formatStep(concept.gone));
  else fact("settled from", concept.settled === null ? "not yet" : formatStep(concept.settled));
  fact("readable from", concept.readable_from === null ? "nowhere" : formatStep(concept.readable_from));
  return list;
}

// Its strength over the steps as a share of its peak; faint where it cannot be read.
function sparkPart(i) {
  const { atlas } = DATA;
  const { width, height } = SPARK;
  const svg = makeSvg("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img" });
  const here = makeSvg("line", { class: "here", y1: 0, y2: height });
  const value = make("span");
  const yOf = (t) => height - 4 - (height - 8) * (at(atlas.strength, { d0: i, d1: t }) / LIFE.full);
  const draw = () => {
    const xs = atlas.steps.map((step) => sparkX(placeOfStep(step)));
    const known = range(xs.length).map((t) => (at(atlas.strength, { d0: i, d1: t }) === LIFE.missing ? null : t));
    const readable = known.map((t) => (t !== null && at(atlas.readable, { d0: i, d1: t }) ? t : null));
    svg.replaceChildren(
      makeSvg("line", { class: "base", x1: 0, x2: width, y1: height - 4, y2: height - 4 }),
      makeSvg("path", { class: "curve faint", d: linePath(xs, known, yOf) }),
      makeSvg("path", { class: "curve", d: linePath(xs, readable, yOf) }),
      here,
    );
    svg.setAttribute("aria-label", sparkWords(i));
  };
  const update = (changed) => {
    if (changed.has("scale")) draw();
    const x = sparkX(currentPlace());
    here.setAttribute("x1", x);
    here.setAttribute("x2", x);
    const t = lastNotAbove(atlas.steps, DATA.steps[state.step]);
    const doubt = strengthDoubt(i, t).length ? ", not readable" : "";
    value.textContent = `Strength at step ${formatStep(atlas.steps[t])}: ${strengthWords(i, t)}${doubt}`;
  };
  draw();
  return { elements: [svg, make("p", { className: "spark-value" }, value)], update };
}

function sparkX(place) {
  return shareOfAxis(place) * SPARK.width;
}

function sparkWords(i) {
  const { atlas } = DATA;
  const concept = atlas.concepts[i];
  return `Strength of ${conceptName(concept)} over the steps; ${spokenBirth(concept)}; ${strengthWords(i, atlas.steps.length - 1)} at the last step`;
}

// The strongest tokens in their contexts; a step changes texts and tints, and no element.
function contextPart(i) {
  const { atlas } = DATA;
  const { tokens, codes, middle, follow } = atlas.contexts;
  const [, , examples, places] = tokens.shape;
  const label = make("p", { className: "spark-value" });
  const lines = range(examples).map(() => range(places).map(() => make("bdi")));
  const items = lines.map((line) => {
    line[middle].className = "peak";
    const before = make("span", { className: "before" }, ...line.slice(0, middle));
    const after = make("span", { className: "after" }, ...line.slice(middle + 1));
    return make("li", {}, before, line[middle], after);
  });
  let shown = -1;
  const update = () => {
    const key = follow ? nearestKey(i) : 0;
    label.textContent = contextWords(i, key);
    if (key === shown) return;
    shown = key;
    lines.forEach((line, e) => {
      line.forEach((element, p) => {
        const index = { d0: i, d1: key, d2: e, d3: p };
        const piece = at(tokens, index) - 1;
        element.textContent = piece < 0 ? "" : atlas.pieces[piece];
        element.style.setProperty("--a", ((0.62 * at(codes, index)) / LIFE.full).toFixed(3));
      });
      items[e].hidden = !line[middle].textContent;
    });
  };
  update();
  return { elements: [label, make("ul", { className: "contexts" }, ...items)], update };
}

function nearestKey(i) {
  const { atlas } = DATA;
  const keys = range(atlas.keys.shape[1]).map((k) => atlas.steps[at(atlas.keys, { d0: i, d1: k })]);
  return nearest(keys, DATA.steps[state.step]);
}

function contextWords(i, key) {
  const { atlas } = DATA;
  if (!atlas.contexts.follow) return "Strongest in the code that all steps share";
  const step = atlas.steps[at(atlas.keys, { d0: i, d1: key })];
  const now = DATA.steps[state.step];
  const words = `Strongest at step ${formatStep(step)}`;
  return step === now ? words : `${words}, the nearest that is kept`;
}

function cardFoot(concept) {
  const foot = make("div", { className: "foot" });
  const line = (...parts) => foot.append(make("div", {}, ...parts));
  if (concept.sharp !== null) line(sharpWords(concept));
  if (concept.fires !== null) line(`Fires on ${percentWords(concept.fires)} of the tokens${explainedWords(concept)}`);
  if (concept.up.length) line("Adds to the logits at the last step ", ...writtenParts(concept));
  if (concept.removed) line(removalWords(concept.removed));
  if (concept.near.length) line("Nearest directions, with their cosine: ", ...concept.near.flatMap((near, k) => nearParts(concept, near, k)));
  return foot;
}

// What its removal costs, beside equally strong removals; and whether that is more than both.
function removalWords({ step, removed, random, other, verdict }) {
  const beside = [
    [random, "random directions"],
    [other, "on the tokens of other concepts"],
  ].filter(([cost]) => cost !== null);
  const against = beside.map(([cost, words]) => `${words} at most ${formatNumber(cost, 0.01)}`).join("; ");
  const cost = `Its removal at step ${formatStep(step)} costs ${formatNumber(removed, 0.01)} nats a token`;
  return `${cost}${against ? ` (${against})` : ""}: ${verdict === "matters" ? "it matters" : "not surely more than these"}`;
}

function percentWords(share) {
  return share < 0.005 ? "under 1 %" : `${Math.round(100 * share)} %`;
}

function sharpWords(concept) {
  const { limit } = DATA.atlas.layers[concept.layer];
  const against = limit === null ? "" : ` (95 % of the untrained model’s: at most ${percentWords(limit)})`;
  return `${percentWords(concept.sharp)} of its activation on three tokens${against}`;
}

function explainedWords(concept) {
  if (!concept.answers.length || concept.answers[1] === null) return "";
  return `; the ${concept.answers[0]} explains ${percentWords(Math.max(0, concept.answers[1]))} of its code`;
}

function writtenParts(concept) {
  const { pieces } = DATA.atlas;
  const one = ([place, value], sign) => [token(shortened(pieces[place], 20)), ` ${sign}${Math.abs(value).toFixed(2)} `];
  const parts = [...concept.up.flatMap((each) => one(each, each[1] < 0 ? "−" : "+"))];
  if (concept.down.length) parts.push("and takes from ", ...concept.down.flatMap((each) => one(each, each[1] < 0 ? "−" : "+")));
  if (concept.random === null) return parts;
  const most = concept.random;
  const above = Math.max(...concept.up.map((each) => each[1])) > most ? "" : ": no more than chance";
  parts.push(`(95 % of random directions: at most ${most.toFixed(2)})${above}`);
  return parts;
}

function nearParts(concept, [number, cosine], k) {
  const { concepts } = DATA.atlas;
  const other = concepts.find((each) => each.layer === concept.layer && each.number === number);
  const words = `${other?.name || `C${number}`} ${cosine < 0 ? "−" : "+"}${Math.abs(cosine).toFixed(2)}`;
  const comma = k ? [", "] : [];
  return other ? [...comma, make("a", { href: `#${other.id}`, textContent: words })] : [...comma, words];
}

// What names are measured against: how sharp the untrained model's concepts are, in the same layer.
function controlCard(layer) {
  const { atlas } = DATA;
  const { untrained, limit, controls, short } = atlas.layers[layer];
  if (!untrained.length && !controls.length) return [];
  const card = make("article", { className: "card control-card" });
  card.append(
    make("h3", {}, make("span", { textContent: "Control: the untrained model" }), make("span", { className: "where", textContent: short })),
  );
  if (untrained.length) {
    const words =
      `The same fit on the untrained model finds “concepts” too: ${formatStep(untrained.length)} of them. ` +
      (limit === null ? "" : `95 % put at most ${percentWords(limit)} of their activation on three tokens. `) +
      "A concept that is no sharper gets no name.";
    card.append(make("p", { className: "spark-value", textContent: words }), sharpStrip(layer));
  }
  for (const [name, count] of controls)
    card.append(make("p", { className: "spark-value", textContent: `${name}: ${count} named in this layer` }));
  return [card];
}

// Two rows of marks on one axis from 0 to 100 %: concepts of the run over those of the untrained model.
function sharpStrip(layer) {
  const { concepts, layers } = DATA.atlas;
  const { untrained, limit } = layers[layer];
  const own = concepts.filter((each) => each.layer === layer && each.sharp !== null).map((each) => each.sharp);
  const svg = makeSvg("svg", { class: "strip", viewBox: "0 0 300 74", role: "img" });
  svg.setAttribute("aria-label", `Share on three tokens: ${own.length} concepts of this run, ${untrained.length} of the untrained model`);
  const xOf = (share) => 4 + 292 * Math.min(1, share);
  svg.append(makeSvg("text", { x: 0, y: 10 }, "this run"), makeSvg("text", { x: 0, y: 42 }, "untrained"));
  for (const share of own) svg.append(makeSvg("circle", { class: "own", cx: xOf(share), cy: 19, r: 3 }));
  for (const share of untrained) svg.append(makeSvg("circle", { class: "null", cx: xOf(share), cy: 51, r: 3 }));
  if (limit !== null) svg.append(makeSvg("line", { class: "limit", x1: xOf(limit), x2: xOf(limit), y1: 12, y2: 58 }));
  for (const share of [0, 0.5, 1])
    svg.append(makeSvg("text", { x: xOf(share), y: 72, "text-anchor": share === 0 ? "start" : share === 1 ? "end" : "middle" }, `${100 * share} %`));
  return svg;
}
