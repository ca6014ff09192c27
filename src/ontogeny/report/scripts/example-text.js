// Example text: tokens tinted by loss, concept or attention entropy at the slider's step.

import { DATA, find, findAll } from "./core.js";
import { drawCourse, showValue } from "./example-course.js";
import { example, exampleStep, hasValue, meanWords, measureNow, tintOf, valueOf } from "./example.js";
import { formatStep } from "./format.js";
import { choice, oneStopAlong } from "./layers.js";
import { listen } from "./state.js";

export function startExample() {
  const section = find("#example-text");
  if (!section || !DATA.example) return;
  const lines = findAll(".example-line", section);
  example.text = DATA.example.first;
  example.tokens = lines.map((line) => findAll(".t", line));
  example.chosen = example.tokens.map((tokens) => Math.max(0, tokens.findIndex((t) => !t.matches(".special"))));
  lines.forEach(startLine);
  choice(findAll("#example-choice button"), (text) => {
    example.text = text;
    lines.forEach((line, i) => (line.hidden = i !== text));
    chooseAgain();
  });
  choice(findAll("#example-measure button"), (measure) => {
    example.measure = measure;
    for (const each of findAll("[data-measure]", section)) each.hidden = Number(each.dataset.measure) !== measure;
    chooseAgain();
  });
  for (const menu of findAll(".example-menu select", section)) {
    menu.addEventListener("change", () => {
      measureNow().option = Number(menu.value);
      chooseAgain();
    });
  }
  listen(drawCourse, "scale");
  listen(showExample, "step");
  chooseAgain();
}

function chooseAgain() {
  const { text } = example;
  example.tokens[text].forEach((token, place) => token.classList.toggle("special", !hasValue(text, place)));
  choose(example.chosen[text]);
  showExample();
}

function startLine(line, text) {
  const tokens = example.tokens[text];
  oneStopAlong(line, tokens, tokens[example.chosen[text]]);
  for (const kind of ["pointerover", "focusin", "click"])
    line.addEventListener(kind, (event) => {
      const place = tokens.indexOf(event.target.closest(".t"));
      if (place >= 0) choose(place);
    });
}

function choose(place) {
  const tokens = example.tokens[example.text];
  const old = tokens[example.chosen[example.text]];
  old.removeAttribute("aria-selected");
  old.removeAttribute("aria-describedby");
  example.chosen[example.text] = place;
  tokens[place].setAttribute("aria-selected", "true");
  tokens[place].setAttribute("aria-describedby", "example-value example-lead");
  drawCourse();
}

// A step changes tints and a few words, and moves nothing.
function showExample() {
  const t = exampleStep();
  const { text } = example;
  example.tokens[text].forEach((token, place) => token.style.setProperty("--a", tintOf(valueOf(t, text, place))));
  for (const step of findAll("#example-text .example-step")) step.textContent = formatStep(measureNow().steps[t]);
  find("#example-mean").textContent = meanWords(t, text);
  showValue();
}
