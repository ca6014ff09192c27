// The course of one token of the example text over the steps, with its numbers.

import { CLOCK, DATA, find, makeSvg, say, standAt, values } from "./core.js";
import { example, exampleStep, measureNow, orNull, referenceOf, valueOf } from "./example.js";
import { formatStep } from "./format.js";
import { linePath } from "./paths.js";
import { currentPlace, placeOfStep, shareOfAxis } from "./state.js";

const COURSE = { width: 600, height: 40 };

// One token: its number at the step, and where the step lies on its course.
export function showValue() {
  const [name, number, rest] = find("#example-value").children;
  const { text } = example;
  const place = example.chosen[text];
  const token = example.tokens[text][place];
  const written = token.textContent;
  const t = exampleStep();
  const there = !token.matches(".special");
  name.textContent = written.trim() ? written : "␣".repeat(written.length);
  number.textContent = there ? amountWords(valueOf(t, text, place)) : "";
  const when = DATA.steps.length > 1 ? `at ${CLOCK} ${formatStep(measureNow().steps[t])}` : "";
  rest.textContent = there ? when : measureNow().absent;
  const x = courseX(currentPlace());
  const here = find("#example-text .here");
  standAt(here, x);
}

function amountWords(value) {
  const { parts, full, units } = measureNow();
  if (value === null) return say("not measured");
  if (value === 0 && parts > 1) return `under ${1 / parts / 2} ${units}`;
  return `${decimals(value)} ${units}${value === full ? " or more" : ""}`;
}

function decimals(value) {
  const { parts } = measureNow();
  return (value / parts).toFixed(Math.round(Math.log10(parts)));
}

function courseX(place) {
  return shareOfAxis(place) * COURSE.width;
}

export function drawCourse() {
  const measure = measureNow();
  const { steps } = measure;
  const { text } = example;
  const place = example.chosen[text];
  const svg = find("#example-text .example-curve");
  measure.most ??= values(measure.values).reduce((m, v) => (orNull(v) === null ? m : Math.max(m, v)), 1);
  const yOf = (value) => COURSE.height - 1 - (COURSE.height - 3) * Math.min(1, value / measure.most);
  const course = steps.map((_, t) => valueOf(t, text, place));
  const reference = referenceOf(text, place);
  const drawn = [makeSvg("line", { class: "base", x1: 0, x2: COURSE.width, y1: yOf(0), y2: yOf(0) })];
  if (reference !== null) {
    const y = yOf(reference);
    drawn.push(makeSvg("line", { class: "reference", x1: 0, x2: COURSE.width, y1: y, y2: y }));
  }
  const xs = steps.map((step) => courseX(placeOfStep(step)));
  const there = course.map((value, t) => (value === null ? null : t));
  const d = linePath(xs, there, (t) => yOf(course[t]));
  drawn.push(makeSvg("path", { class: "curve", d: d && steps.length === 1 ? `${d}h0` : d }));
  svg.replaceChildren(...drawn, makeSvg("line", { class: "here", y1: 0, y2: COURSE.height }));
  svg.setAttribute("aria-label", courseWords(course));
  find("#example-lead").textContent = tokenWords(text, place, course, reference);
  showValue();
}

function courseWords(course) {
  const there = course.filter((value) => value !== null);
  if (!there.length) return say("no course", { why: measureNow().absent });
  return say("course", { first: amountWords(there[0]), last: amountWords(there.at(-1)) });
}

// First and last number, what they are read against, and since when the right token leads.
function tokenWords(text, place, course, reference) {
  if (example.tokens[text][place].matches(".special")) return "";
  const there = course.filter((value) => value !== null);
  const ends = there.length > 1 ? [say("ends", { first: decimals(there[0]), last: decimals(there.at(-1)) })] : [];
  const dotted = reference === null ? [] : [say(DATA.steps.length > 1 ? "dotted" : "beside", { value: decimals(reference), what: measureNow().reference })];
  return [...ends, ...dotted, ...leadWords(text, place)].join(" ");
}

function leadWords(text, place) {
  const { steps, lead, before } = measureNow();
  if (!lead) return [];
  const from = lead[text][place];
  if (DATA.steps.length === 1) return [say(from === null ? "not likeliest" : "likeliest")];
  if (from === null) return [say("leads never")];
  const low = before?.[text][place] ?? null;
  if (from === steps[0]) return [say("leads always")];
  if (from === steps.at(-1)) return [say("leads last")];
  const between = low === null || low === from ? "" : say("not yet", { at: formatStep(low) });
  return [say("leads from", { at: formatStep(from), between })];
}
