// The atlas of concepts: which cards are shown, in which order, and where a link leads.

const CARDS_AT_ONCE = 24;
const CONTROL_PLACE = 4; // second to last of the first two rows of three

const atlasView = { named: null, rest: null };

function startAtlas() {
  const { atlas } = DATA;
  if (!atlas) return;
  atlasView.named = cardList(find("#cards"), find("#atlas-more"), true);
  const fold = find(".unnamed");
  atlasView.rest = cardList(find(".cards", fold), find(".more", fold), false);
  fold.addEventListener("toggle", () => fold.open && atlasView.rest.more(0));
  const form = find(".atlas-controls");
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const control of findAll("input, select", form)) control.addEventListener("input", showAtlas);
  find("#atlas-csv").addEventListener("click", () => save("concepts.csv", atlasCsv(), "text/csv"));
  listen((changed) => {
    if (changed.has("layers")) showAtlas();
    if (changed.has("step") || changed.has("scale")) for (const card of shownCards) card.update(changed);
  });
  addEventListener("hashchange", showLinkedConcept);
  showAtlas();
  showLinkedConcept();
}

// Without any name all concepts stand in the open; else those without are folded away.
function showAtlas() {
  const { atlas } = DATA;
  const found = atlasOrder(range(atlas.concepts.length).filter(wantedConcept));
  const open = atlas.naming === "absent" ? found : found.filter((i) => atlas.concepts[i].name);
  const folded = found.filter((i) => !open.includes(i));
  atlasView.named.show(open);
  atlasView.rest.show(folded);
  const fold = find(".unnamed");
  fold.hidden = !folded.length;
  find("summary", fold).textContent = foldWords(folded.length, open.length);
  const all = atlas.concepts.length;
  find(".atlas-count").textContent =
    found.length < all ? `${formatStep(found.length)} of ${formatStep(all)} concepts` : "";
}

function foldWords(count, open) {
  const verb = count === 1 ? "is" : "are";
  const more = open ? `${formatStep(count)} more ${verb}` : `${formatStep(count)} ${verb}`;
  return `${more} no sharper than in the untrained model`;
}

function wantedConcept(i) {
  const concept = DATA.atlas.concepts[i];
  const choice = (id) => document.getElementById(id)?.value ?? "";
  if (!layerShown(concept.group)) return false;
  if (choice("atlas-layer") !== "" && Number(choice("atlas-layer")) !== concept.layer) return false;
  if (choice("atlas-kind") && choice("atlas-kind") !== concept.kind) return false;
  const words = choice("atlas-search").trim().toLowerCase();
  return !words || conceptText(concept).includes(words);
}

function conceptText(concept) {
  const { layers, pieces } = DATA.atlas;
  const tokens = concept.chips.map(([place]) => pieces[place]);
  return [conceptName(concept), `c${concept.number}`, layers[concept.layer].short, ...tokens].join(" ").toLowerCase();
}

function atlasOrder(places) {
  if (document.getElementById("atlas-order").value !== "birth") return places;
  const moment = (i) => {
    const { kind, born } = DATA.atlas.concepts[i];
    return kind === "from the start" ? -Infinity : (born ?? Infinity);
  };
  return [...places].sort((a, b) => (moment(a) === moment(b) ? a - b : moment(a) - moment(b)));
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
      if (open && last) holder.append(...controlCard(DATA.atlas.concepts[places[0]].layer));
    });
    count += next.length;
    button.hidden = count >= places.length;
    button.textContent = `Show ${formatStep(Math.min(CARDS_AT_ONCE, places.length - count))} more of ${formatStep(places.length - count)}`;
  };
  button.addEventListener("click", () => add(count + CARDS_AT_ONCE));
  return {
    show(list) {
      for (const card of findAll(".card", holder)) forgetCard(card);
      holder.replaceChildren();
      [places, count] = [list, 0];
      if (open || holder.closest("details").open) add(CARDS_AT_ONCE / 2);
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
  const i = DATA.atlas.concepts.findIndex((concept) => concept.id === place);
  if (i < 0) return;
  if (!wantedConcept(i)) {
    find(".atlas-controls").reset();
    if (!layerShown(DATA.atlas.concepts[i].group)) change({ layers: null });
    showAtlas();
  }
  if (atlasView.named.reach(i)) return;
  find(".unnamed").open = true;
  atlasView.rest.reach(i);
}

function atlasCsv() {
  const { atlas } = DATA;
  const columns = ["name", "number", "kind", "born", "after", "before", "settled", "gone", "readable_from", "sharp", "fires"];
  const rows = atlas.concepts.flatMap((concept, i) =>
    atlas.steps.map((step, t) => {
      const strength = at(atlas.strength, { d0: i, d1: t });
      return [
        atlas.layers[concept.layer].path,
        ...columns.map((name) => concept[name] ?? ""),
        concept.chips.map(([place]) => atlas.pieces[place]).join(" | "),
        step,
        strength === LIFE.missing ? "" : (strength / LIFE.full).toFixed(3),
        at(atlas.readable, { d0: i, d1: t }) === 1,
      ];
    }),
  );
  return csv(["layer", ...columns, "tokens", "step", "share_of_peak", "readable"], rows);
}
