// The example text on paper: once for each of a few steps, tinted by what the reader chose.

import { CLOCK, findAll, make } from "./core.js";
import { example, meanWords, measureNow, tintOf, valueOf } from "./example.js";
import { formatStep } from "./format.js";

export function startExamplePrint(place) {
  addEventListener("beforeprint", () => place.replaceChildren(...printedTexts()));
  addEventListener("afterprint", () => place.replaceChildren());
}

function printedTexts() {
  const { steps, print, options, option } = measureNow();
  const { text } = example;
  const [first, ...rest] = findAll("#example-text .example-line")[text].cloneNode(true).childNodes;
  const name = options[option] ? `${options[option][0].toUpperCase()}${options[option].slice(1)}. ` : "";
  const why = make("p", { textContent: `${name}${printWords(print.length)}` });
  const rows = print.map((t) => {
    const line = make("p", { className: "example-line", dir: first.parentNode.dir });
    line.append(...[first, ...rest].map((node) => node.cloneNode(true)));
    findAll(".t", line).forEach((token, place) => {
      for (const each of ["role", "tabindex", "aria-selected", "aria-describedby"]) token.removeAttribute(each);
      token.style.setProperty("--a", tintOf(valueOf(t, text, place)));
    });
    const head = `${steps.length > 1 ? `${CLOCK} ${formatStep(steps[t])}: ` : ""}${meanWords(t, text)}`;
    return make("div", {}, make("p", { className: "example-when", textContent: head[0].toUpperCase() + head.slice(1) }), line);
  });
  return [why, ...rows];
}

function printWords(count) {
  if (count < 2) return "";
  if (count < 3) return "The first and the last checkpoint.";
  return "The first and the last checkpoint, and between them those at which the first and the last row of the chart are half-way.";
}
