// Deep links: the hash names a place and the view, as in #concepts-ica/distance?step=100&layers=0,3.

import { DATA, find, findAll } from "./core.js";
import { showAndAgain } from "./figure.js";
import { change, checkpointOf, listen, state, stepNow } from "./state.js";

const HASH_PAUSE = 200; // milliseconds; browsers allow few changes of the address
const FIRST_VIEW = { step: DATA.start, scale: "log", layers: null, chart: DATA.views[0] };

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function readHash() {
  const [place, query = ""] = location.hash.slice(1).split("?");
  const view = new Map(query.split("&").filter(Boolean).map((part) => part.split("=")));
  return { place: decoded(place), view };
}

// Other choices that an address holds: of the menus, the fields, and the buttons of which one is
// pressed, each while it is not what the page opens with.
const CHOICES = { q: "#atlas-search", of: "#atlas-node", at: "#atlas-layer", life: "#atlas-kind", order: "#atlas-order", tint: "#example-measure", text: "#example-choice", run: "#chart-run" };

function choices() {
  const named = Object.entries(CHOICES).map(([key, selector]) => [key, find(selector)]);
  const inFigures = findAll(".figure .controls .segments").map((group) => [`view:${group.closest(".figure").id}:${group.getAttribute("aria-label")}`, group]);
  return [...named, ...inFigures].filter(([, element]) => element);
}

function choiceOf(element) {
  if (element.value !== undefined) return String(element.value);
  return String(findAll("button", element).findIndex((button) => button.getAttribute("aria-pressed") === "true"));
}

function setChoice(element, value) {
  if (element.value === undefined) findAll("button", element)[value]?.click();
  else {
    element.value = value;
    for (const kind of ["input", "change"]) element.dispatchEvent(new Event(kind, { bubbles: true }));
  }
}

let firstChoices = new Map();

// A link with a view restores all of it; one without leaves the reader's own.
function showLinkedView(view) {
  if (!view.size) return;
  const wanted = Number(view.get("step"));
  const layers = (view.get("layers") ?? "").split(",").map((label) => DATA.layers.indexOf(decoded(label)));
  const known = new Set(layers.filter((i) => i >= 0));
  for (const [key, element] of choices()) {
    const value = view.has(key) ? decoded(view.get(key)) : firstChoices.get(key);
    if (choiceOf(element) !== value) setChoice(element, value);
  }
  change({
    step: view.has("step") && Number.isFinite(wanted) ? checkpointOf(wanted) : FIRST_VIEW.step,
    scale: view.get("axis") === "linear" ? "linear" : FIRST_VIEW.scale,
    layers: known.size ? known : FIRST_VIEW.layers,
    chart: DATA.views.includes(view.get("chart")) ? view.get("chart") : FIRST_VIEW.chart,
  });
}

function linkTo(place) {
  const parts = [];
  if (state.step !== FIRST_VIEW.step) parts.push(`step=${stepNow()}`);
  if (state.layers !== null) {
    const chosen = [...state.layers].sort((a, b) => a - b);
    parts.push(`layers=${chosen.map((i) => encodeURIComponent(DATA.layers[i])).join(",")}`);
  }
  if (state.scale !== FIRST_VIEW.scale) parts.push(`axis=${state.scale}`);
  if (state.chart !== FIRST_VIEW.chart) parts.push(`chart=${state.chart}`);
  for (const [key, element] of choices()) {
    const value = choiceOf(element);
    if (value !== firstChoices.get(key)) parts.push(`${key}=${encodeURIComponent(value)}`);
  }
  const opened = contextsOf(place).findIndex((context) => context.open);
  if (opened >= 0) parts.push(`context=${opened}`);
  const hash = place + (parts.length ? `?${parts.join("&")}` : "");
  return location.href.split("#")[0] + (hash && `#${hash}`);
}

// The contexts of a concept's card, of which an address names the first that is open.
function contextsOf(place) {
  const card = place && document.getElementById(place);
  return card ? findAll("details.context", card) : [];
}

function clearLinked() {
  for (const element of findAll(".linked")) element.classList.remove("linked");
}

// Open, highlight and show what a link names: a section, a figure, or a row of the chart.
function showPlace(place) {
  clearLinked();
  const named = place && document.getElementById(place);
  if (!named) return;
  named.classList.add("linked");
  const row = DATA.rows.findIndex((each) => each.id === place);
  const drawn = findAll(`.chart .row[data-row="${row}"]`);
  for (const element of drawn) element.classList.add("linked");
  const target = drawn.find((element) => element.getClientRects().length) ?? named;
  for (const whole of findAll(":scope > details.whole", named)) whole.open = true;
  for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details"))
    fold.open = true;
  showAndAgain(() => target.scrollIntoView({ block: drawn.length ? "center" : "start" }));
}

// From a row of the chart to the figure that draws it, with its layer alone.
export function followRow(row) {
  if (row.group >= 0) change({ layers: new Set([row.group]) });
  goTo(row.figure);
}

export function goTo(place) {
  history.pushState(null, "", linkTo(place));
  followHash();
}

function copyLink(button) {
  const link = linkTo(button.dataset.link);
  copyText(button, link, "Link copied", () => {
    history.replaceState(null, "", link);
    return "Link is in the address bar";
  });
}

// Copy a text, and say on the button for a while that it is copied, or what to do.
export async function copyText(button, text, done, otherwise) {
  try {
    await navigator.clipboard.writeText(text);
    answer(button, done);
  } catch {
    answer(button, otherwise());
  }
}

export function answer(button, words) {
  const label = (button.dataset.label ??= button.textContent);
  button.textContent = words;
  setTimeout(() => (button.textContent = label), 2000);
}

let linkedPlace = "";

function followHash() {
  const hash = readHash();
  linkedPlace = hash.place;
  showLinkedView(hash.view);
  const context = contextsOf(linkedPlace)[hash.view.get("context")];
  if (context) context.open = true;
  showPlace(linkedPlace);
  history.replaceState(null, "", linkTo(linkedPlace));
}

export function startLinks() {
  let timer = 0;
  firstChoices = new Map(choices().map(([key, element]) => [key, choiceOf(element)]));
  const keep = () => {
    clearTimeout(timer);
    timer = setTimeout(() => history.replaceState(null, "", linkTo(linkedPlace)), HASH_PAUSE);
  };
  listen(keep);
  for (const kind of ["input", "change", "click"]) document.addEventListener(kind, keep);
  addEventListener("hashchange", followHash);
  document.addEventListener("pointerdown", clearLinked);
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-link]");
    if (button) copyLink(button);
    linkedPlace = event.target.closest(".context")?.closest(".card").id ?? linkedPlace;
    // A second click on a link changes no address, and leads there all the same.
    const again = event.target.closest("a")?.getAttribute("href") === location.hash;
    if (again && !event.defaultPrevented) followHash();
  });
  if (location.hash) followHash();
}
