// The layer selector: one chip for each depth. The first click shows one layer, further ones add.

import { DATA, find, make, press } from "./core.js";
import { change, layerShown, listen, state } from "./state.js";
import { colours, darkQuery } from "./theme.js";

export const UP_AND_DOWN = ["ArrowDown", "ArrowUp"];

export function startLayers() {
  const holder = find("#layers");
  if (DATA.layers.length < 2) return;
  holder.hidden = false;
  holder.classList.toggle("many", DATA.layers.length > 16);
  const all = make("button", { type: "button", className: "all", textContent: "all" });
  all.addEventListener("click", () => change({ layers: null }));
  const chips = DATA.layers.map((label, i) => {
    const chip = make(
      "button",
      { type: "button", title: `Layer ${label}` },
      make("span", { textContent: label }),
    );
    chip.addEventListener("click", () => toggleLayer(i));
    return chip;
  });
  holder.append(make("span", { className: "chips-name", textContent: "Layers" }), all, ...chips);
  oneStop(holder, [all, ...chips]);
  const show = () => {
    const palette = colours();
    press(all, state.layers === null);
    chips.forEach((chip, i) => {
      press(chip, layerShown(i));
      chip.style.setProperty("--chip", palette.layers[i]);
    });
  };
  listen(show, "layers");
  darkQuery.addEventListener("change", show);
  show();
}

function toggleLayer(i) {
  const layers = state.layers === null ? new Set() : new Set(state.layers);
  if (layers.has(i)) layers.delete(i);
  else layers.add(i);
  change({ layers: layers.size === 0 || layers.size === DATA.layers.length ? null : layers });
}

// Buttons in a line, or links of rows, are one stop of the tab key; arrow keys go along them as they stand.
export function oneStop(holder, buttons, [next, before] = ["ArrowRight", "ArrowLeft"], first = buttons[0]) {
  const pages = next === UP_AND_DOWN[0] ? { PageDown: 10, PageUp: -10 } : {};
  const turn = { [next]: 1, [before]: -1, Home: -1e9, End: 1e9, ...pages };
  const stopAt = (chosen) => {
    for (const button of buttons) button.setAttribute("tabindex", button === chosen ? 0 : -1);
  };
  stopAt(first);
  holder.addEventListener("focusin", (event) => buttons.includes(event.target) && stopAt(event.target));
  holder.addEventListener("keydown", (event) => {
    if (!(event.key in turn) || !buttons.includes(event.target) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    const seen = buttons.filter((button) => button.getClientRects().length);
    const sorted = seen.sort((one, other) => (one.compareDocumentPosition(other) & 4 ? -1 : 1));
    const i = sorted.indexOf(event.target) + turn[event.key];
    sorted[Math.max(0, Math.min(sorted.length - 1, i))].focus();
  });
}

// A text is one stop too; arrow keys go along it, in the direction in which it runs.
export function oneStopAlong(line, tokens, first) {
  const along = line.dir === "rtl" ? ["ArrowLeft", "ArrowRight"] : ["ArrowRight", "ArrowLeft"];
  if (tokens.length) oneStop(line, tokens, along, first);
}

// Buttons of which one is pressed: a click on one is told by its place.
export function choice(buttons, chosen) {
  buttons.forEach((button, place) =>
    button.addEventListener("click", () => {
      buttons.forEach((each) => press(each, each === button));
      chosen(place);
    }),
  );
}
