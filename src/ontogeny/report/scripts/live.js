// The page of a run that is still training reads itself again; the reader stays where they are.

import { DATA, find, findAll } from "./core.js";
import { showAndAgain } from "./figure.js";
import { formatStep } from "./format.js";

const PLACE = `ontogeny:${location.pathname}`;

// What the reader sees first: a part of the page by its name, and how far it is from the top.
function placeOnPage() {
  const parts = findAll("body > [id], main > [id], main figure[id]").filter((e) => e.getClientRects().length);
  const above = parts.filter((e) => e.getBoundingClientRect().top <= 1);
  const part = above.at(-1);
  return scrollY && part ? { id: part.id, top: part.getBoundingClientRect().top } : null;
}

// Folds by the part that they are in and their number there: the next page may have more parts.
function foldsOnPage() {
  const count = new Map();
  return findAll("details").map((fold) => {
    const part = fold.closest("[id]")?.id ?? "";
    count.set(part, (count.get(part) ?? 0) + 1);
    return { fold, name: `${part}/${count.get(part)}` };
  });
}

// What has the focus: by the part that it is in and its number there, -1 for the part itself.
const FOCUSABLE = "a, button, input, select, summary, [tabindex]";
function focusOnPage() {
  const part = document.activeElement.closest("[id]");
  return part && { id: part.id, number: findAll(FOCUSABLE, part).indexOf(document.activeElement) };
}

// Browsers may refuse to store anything: the page then starts at its top.
function storePlace() {
  const open = foldsOnPage().map(({ fold, name }) => [name, fold.open]);
  try {
    sessionStorage.setItem(PLACE, JSON.stringify({ open, at: placeOnPage(), focus: focusOnPage(), last: DATA.steps.at(-1) }));
  } catch {
    return;
  }
}

function storedPlace() {
  try {
    const stored = JSON.parse(sessionStorage.getItem(PLACE));
    sessionStorage.removeItem(PLACE);
    return stored;
  } catch {
    return null;
  }
}

function restorePlace({ open, at, focus, last }) {
  const fresh = DATA.steps.filter((step) => step > last).map(formatStep).join(", ");
  if (fresh) find("#live p")?.append(` New since it was last read here: ${fresh}.`);
  const known = new Map(open);
  for (const { fold, name } of foldsOnPage()) fold.open = known.get(name) ?? fold.open;
  const focused = focus && document.getElementById(focus.id);
  if (focused) (findAll(FOCUSABLE, focused)[focus.number] ?? focused).focus({ preventScroll: true });
  const part = at && document.getElementById(at.id);
  if (!part) return;
  history.scrollRestoration = "manual";
  showAndAgain(() => scrollBy({ top: part.getBoundingClientRect().top - at.top, behavior: "instant" }));
}

function readAgain() {
  const typing = document.activeElement?.matches("input, textarea, select");
  if (document.hidden || typing) {
    setTimeout(readAgain, 1000);
    return;
  }
  storePlace();
  location.reload();
}

export function startRefresh() {
  const stored = storedPlace();
  if (stored) restorePlace(stored);
  if (DATA.refresh) setTimeout(readAgain, 1000 * DATA.refresh);
}
