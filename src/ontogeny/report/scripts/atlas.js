// The atlas of concepts: which cards are shown, in which order, and where a link leads.

import { conceptCard, forgetCard, shownCards } from "./cards.js";
import {
  ATLASES,
  byBirth,
  chooseShown,
  conceptName,
  readableAt,
  shownAtlas,
  strengthAt,
} from "./concepts.js";
import { controlCard } from "./control-card.js";
import { find, findAll, make, range, say } from "./core.js";
import { csv } from "./csv.js";
import { save } from "./download.js";
import { formatStep } from "./format.js";
import { readHash } from "./links.js";
import { change, layerShown, listen, state } from "./state.js";

const FIRST_CARDS = 6;
const CARDS_AT_ONCE = 24;
const CONTROL_PLACE = 4; // second to last of the first two rows of three

const atlasView = { named: null, rest: null };

export function startAtlas() {
  if (!shownAtlas) return;
  atlasView.named = cardList(find("#cards"), find("#atlas-more"), true);
  const fold = find(".unnamed");
  atlasView.rest = cardList(find(".cards", fold), find(".more", fold), false);
  fold.addEventListener("toggle", () => fold.open && atlasView.rest.more(0));
  const form = find(".atlas-controls");
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const control of findAll("input, select:not(#atlas-node)", form)) control.addEventListener("input", showAtlas);
  find("#atlas-node")?.addEventListener("input", (event) => chooseAtlas(Number(event.target.value)));
  find("#atlas-all").addEventListener("click", showWholeAtlas);
  find("#atlas-csv").addEventListener("click", () => save("concepts.csv", atlasCsv(), "text/csv"));
  listen(showAtlas, "layers");
  listen((changed) => shownCards.forEach((card) => card.update(changed)), "step", "scale");
  addEventListener("hashchange", showLinkedConcept);
  showAtlas();
  showLinkedConcept();
}

// Another dictionary: its words, its layers and kinds of life, and its cards.
function chooseAtlas(k) {
  chooseShown(k);
  const { about, notices, layers, concepts, naming } = shownAtlas;
  const notes = notices.flatMap((notice) => [" ", make("span", { className: "notice", textContent: notice })]);
  find(".atlas-about").replaceChildren(about, ...notes);
  const used = [...new Set(concepts.map((concept) => concept.layer))].sort((a, b) => a - b);
  fillChoice("atlas-layer", used.map((layer) => [layer, layers[layer].short]));
  const kinds = [...new Set(concepts.map((concept) => concept.kind))].filter(Boolean).sort();
  fillChoice("atlas-kind", kinds.map((kind) => [kind, kind]));
  const order = find("#atlas-order");
  order.options[0].textContent = say(shownAtlas.learned ? "best first" : naming === "absent" ? "strongest first" : "sharpest first");
  order.closest("label").hidden = shownAtlas.step !== null;
  if (shownAtlas.step !== null) order.value = "sharp";
  showAtlas();
}

function fillChoice(id, options) {
  const select = document.getElementById(id);
  const made = options.map(([value, textContent]) => make("option", { value, textContent }));
  select.replaceChildren(make("option", { value: "", textContent: "all" }), ...made);
  select.closest("label").hidden = options.length < 2;
}

function clearForm() {
  for (const field of findAll("#atlas-search, #atlas-layer, #atlas-kind")) field.value = "";
}

// All that the form and the layers of the page leave out.
function showWholeAtlas() {
  clearForm();
  change({ layers: null });
  showAtlas();
  find("#atlas-search").focus();
}

// Without any name all concepts stand in the open; else those without are folded away.
function showAtlas() {
  const atlas = shownAtlas;
  const found = atlasOrder(range(atlas.concepts.length).filter(wantedConcept));
  const open = atlas.naming === "absent" ? found : found.filter((i) => atlas.concepts[i].name);
  const folded = found.filter((i) => !open.includes(i));
  atlasView.named.show(open);
  atlasView.rest.show(folded);
  const fold = find(".unnamed");
  fold.hidden = !folded.length;
  if (folded.length && !open.length) fold.open = true; // all that was found is there
  find("summary", fold).textContent = foldWords(folded.length, open.length);
  const all = atlas.concepts.length;
  find(".atlas-count [role=status]").textContent = found.length < all ? countWords(found.length, all) : "";
  find("#atlas-all").hidden = found.length === all;
}

function countWords(found, all) {
  const layers = state.layers === null ? "" : say("of layers");
  return say(found ? "concepts found" : "no concept found", { found: formatStep(found), all: formatStep(all), layers });
}

function foldWords(count, open) {
  const key = `${open ? "more folded" : "folded"}${count === 1 ? " one" : ""}`;
  return say(key, { count: formatStep(count), without: shownAtlas.without });
}

function wantedConcept(i) {
  const concept = shownAtlas.concepts[i];
  const choice = (id) => document.getElementById(id)?.value ?? "";
  if (!layerShown(concept.group)) return false;
  if (choice("atlas-layer") !== "" && Number(choice("atlas-layer")) !== concept.layer) return false;
  if (choice("atlas-kind") && choice("atlas-kind") !== concept.kind) return false;
  const words = choice("atlas-search").trim().toLowerCase();
  return !words || conceptText(concept).includes(words);
}

function conceptText(concept) {
  const { layers, pieces } = shownAtlas;
  const tokens = [...concept.words, ...concept.chips.map(([place]) => pieces[place])];
  return [conceptName(concept), `c${concept.number}`, layers[concept.layer].short, ...tokens].join(" ").toLowerCase();
}

function atlasOrder(places) {
  if (find("#atlas-order").value !== "birth") return places;
  return byBirth(shownAtlas, places);
}

// Cards of one list, some at a time; the first list has the card of the controls among them.
function cardList(holder, button, open) {
  let places = [];
  let count = 0;
  const add = (wanted) => {
    const next = places.slice(count, wanted);
    next.forEach((i, k) => {
      holder.append(conceptCard(i));
      const last = count + k + 1 === Math.min(CONTROL_PLACE, places.length);
      if (open && last) holder.append(...controlCard(shownAtlas.concepts[places[0]].layer));
    });
    count += next.length;
    button.hidden = count >= places.length;
    const left = places.length - count;
    button.textContent = say(left > CARDS_AT_ONCE ? "show some" : "show more", { some: CARDS_AT_ONCE, left: formatStep(left) });
  };
  button.addEventListener("click", () => add(count + CARDS_AT_ONCE));
  return {
    show(list) {
      for (const card of findAll(".card", holder)) forgetCard(card);
      holder.replaceChildren();
      [places, count] = [list, 0];
      // With the card of the controls, two rows of three are full.
      const beside = open && places.length && controlCard(shownAtlas.concepts[places[0]].layer).length;
      if (open || holder.closest("details").open) add(FIRST_CARDS - beside);
    },
    more: (least) => add(Math.max(least, count || CARDS_AT_ONCE)),
    reach(i) {
      const place = places.indexOf(i);
      if (place >= count) add(place + 1);
      return place >= 0;
    },
  };
}

// A link to a concept makes its card, whatever is filtered away.
function showLinkedConcept() {
  const { place } = readHash();
  const placeIn = (atlas) => atlas.concepts.findIndex((concept) => concept.id === place);
  const k = ATLASES.findIndex((atlas) => placeIn(atlas) >= 0);
  if (k < 0) return;
  if (ATLASES[k] !== shownAtlas) {
    find("#atlas-node").value = k;
    chooseAtlas(k);
  }
  const i = placeIn(shownAtlas);
  if (!wantedConcept(i)) {
    clearForm();
    if (!layerShown(shownAtlas.concepts[i].group)) change({ layers: null });
    showAtlas();
  }
  if (atlasView.named.reach(i)) return;
  find(".unnamed").open = true;
  atlasView.rest.reach(i);
}

// A row for each concept, and for each step where it has a life.
function atlasCsv() {
  const atlas = shownAtlas;
  const columns = ["number", "kind", "born", "after", "before", "settled", "gone", "readable_from", "sharp", "fires"];
  const rows = atlas.concepts.flatMap((concept, i) => {
    const known = [
      atlas.layers[concept.layer].path,
      concept.given ? concept.token_name : concept.name,
      concept.given ? concept.name : "",
      ...columns.map((name) => concept[name] ?? ""),
      [...concept.words, ...concept.chips.map(([place]) => atlas.pieces[place])].join(" | "),
    ];
    if (atlas.step !== null) return [[...known, atlas.step, "", ""]];
    return atlas.steps.map((step, t) => [...known, step, strengthAt(atlas, i, t)?.toFixed(3) ?? "", readableAt(atlas, i, t)]);
  });
  return csv(["layer", "name", "name_given", ...columns, "tokens", "step", "share_of_peak", "readable"], rows);
}
