// Example text: tokens tinted by loss, concept or attention entropy at the slider's step.

import { DATA, find, findAll, press } from "./core.js";
import { drawCourse, showValue } from "./example-course.js";
import { startExamplePrint } from "./example-print.js";
import { example, exampleStep, hasValue, meanWords, measureNow, tintOf, valueOf } from "./example.js";
import { formatStep } from "./format.js";
import { listen } from "./state.js";

export function startExample() {
  const section = find("#example-text");
  if (!section || !DATA.example) return;
  const lines = findAll(".example-line", section);
  example.text = DATA.example.first;
  example.tokens = lines.map((line) => findAll(".t", line));
  example.chosen = example.tokens.map((tokens) => Math.max(0, tokens.findIndex((t) => !t.matches(".special"))));
  lines.forEach(startLine);
  startSegments("#example-choice", (text) => {
    example.text = text;
    lines.forEach((line, i) => (line.hidden = i !== text));
  });
  startSegments("#example-measure", (measure) => {
    example.measure = measure;
    for (const each of findAll("[data-measure]", section)) each.hidden = Number(each.dataset.measure) !== measure;
  });
  for (const menu of findAll(".example-menu select", section)) {
    menu.addEventListener("change", () => {
      measureNow().option = Number(menu.value);
      chooseAgain();
    });
  }
  listen((changed) => {
    if (changed.has("scale")) drawCourse();
    if (changed.has("step")) showExample();
  });
  startExamplePrint(find(".example-print", section));
  chooseAgain();
}

function startSegments(group, chosen) {
  const buttons = findAll(`${group} button`);
  buttons.forEach((button, place) => {
    button.addEventListener("click", () => {
      buttons.forEach((each, i) => press(each, i === place));
      chosen(place);
      chooseAgain();
    });
  });
}

function chooseAgain() {
  const { text } = example;
  example.tokens[text].forEach((token, place) => token.classList.toggle("special", !hasValue(text, place)));
  choose(example.chosen[text]);
  showExample();
}

// A text is one stop of the tab key; arrow keys go along it, in the direction in which it runs.
function startLine(line, text) {
  const placeOf = (event) => example.tokens[text].indexOf(event.target.closest(".t"));
  for (const kind of ["pointerover", "focusin", "click"])
    line.addEventListener(kind, (event) => placeOf(event) >= 0 && choose(placeOf(event)));
  const ahead = line.dir === "rtl" ? "ArrowLeft" : "ArrowRight";
  const back = line.dir === "rtl" ? "ArrowRight" : "ArrowLeft";
  line.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const last = example.tokens[text].length - 1;
    const now = example.chosen[text];
    const next = { [ahead]: now + 1, [back]: now - 1, Home: 0, End: last }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    event.stopPropagation(); // these keys move the slider elsewhere
    const place = Math.max(0, Math.min(last, next));
    choose(place);
    example.tokens[text][place].focus();
  });
}

function choose(place) {
  const tokens = example.tokens[example.text];
  const old = tokens[example.chosen[example.text]];
  old.setAttribute("tabindex", -1);
  old.removeAttribute("aria-selected");
  old.removeAttribute("aria-describedby");
  example.chosen[example.text] = place;
  tokens[place].setAttribute("tabindex", 0);
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

