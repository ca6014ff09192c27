// Example text: tokens tinted by their loss at the slider's step, and the course of one of them.

const COURSE = { width: 600, height: 40, tint: 0.62, missing: 255 };

const example = { text: 0, chosen: [], tokens: [] };

function startExample() {
  const section = document.getElementById("example-text");
  if (!section) return;
  const lines = findAll(".example-line", section);
  example.tokens = lines.map((line) => findAll(".t", line));
  example.chosen = example.tokens.map((tokens) => Math.max(0, tokens.findIndex((t) => !t.matches(".special"))));
  lines.forEach(startLine);
  const buttons = findAll("#example-choice button", section);
  buttons.forEach((button, text) => {
    button.addEventListener("click", () => {
      example.text = text;
      buttons.forEach((each, i) => each.setAttribute("aria-pressed", String(i === text)));
      lines.forEach((line, i) => (line.hidden = i !== text));
      choose(example.chosen[text]);
      showExample();
    });
  });
  listen((changed) => {
    if (changed.has("scale")) drawCourse();
    if (changed.has("step")) showExample();
  });
  addEventListener("beforeprint", () => find(".example-print", section).replaceChildren(...printedTexts()));
  addEventListener("afterprint", () => find(".example-print", section).replaceChildren());
  choose(example.chosen[0]);
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

function exampleStep() {
  return lastNotAbove(DATA.example.steps, DATA.steps[state.step]);
}

// The loss of a token in parts of its unit; null where there is none.
function lossOf(t, text, place) {
  const loss = at(DATA.example.losses, { d0: t, d1: text, d2: place });
  return loss === COURSE.missing ? null : loss;
}

function tintOf(loss) {
  const { top, parts } = DATA.example;
  return loss === null ? "0" : (COURSE.tint * Math.min(1, loss / parts / top)).toFixed(3);
}

// A step changes tints and a few words, and moves nothing.
function showExample() {
  const t = exampleStep();
  const { text } = example;
  example.tokens[text].forEach((token, place) => token.style.setProperty("--a", tintOf(lossOf(t, text, place))));
  find("#example-text .example-step").textContent = formatStep(DATA.example.steps[t]);
  document.getElementById("example-mean").textContent = meanWords(t, text);
  showValue();
}

function meanWords(t, text) {
  const { means, cost, units } = DATA.example;
  if (means[text][t] === null) return "Not measured at this step.";
  const frequencies = cost?.[text] ?? null;
  const beside = frequencies === null ? "" : `; by word frequencies alone ${frequencies.toFixed(2)}`;
  return `Mean of this text ${means[text][t].toFixed(2)} ${units}${beside}.`;
}

// One token: its number at the step, and where the step lies on its course.
function showValue() {
  const [name, number, rest] = document.getElementById("example-value").children;
  const { text } = example;
  const place = example.chosen[text];
  const token = example.tokens[text][place];
  const written = token.textContent;
  name.textContent = written.trim() ? written : "␣".repeat(written.length);
  number.textContent = token.matches(".special") ? "" : amountWords(lossOf(exampleStep(), text, place));
  rest.textContent = token.matches(".special")
    ? "not predicted"
    : `at ${CLOCK} ${formatStep(DATA.example.steps[exampleStep()])}`;
  const x = courseX(currentPlace());
  const here = find("#example-text .here");
  here.setAttribute("x1", x);
  here.setAttribute("x2", x);
}

function amountWords(loss) {
  const { parts, full, units } = DATA.example;
  if (loss === null) return "not measured";
  if (loss === 0) return `under ${1 / parts / 2} ${units}`;
  return `${(loss / parts).toFixed(1)} ${units}${loss === full ? " or more" : ""}`;
}

function courseX(place) {
  return shareOfAxis(place) * COURSE.width;
}

function drawCourse() {
  const { steps, losses, costs, parts } = DATA.example;
  const { text } = example;
  const place = example.chosen[text];
  const svg = find("#example-text .example-curve");
  const most = losses.most ?? (losses.most = values(losses).reduce((m, v) => (v < COURSE.missing ? Math.max(m, v) : m), 1));
  const yOf = (loss) => COURSE.height - 1 - (COURSE.height - 3) * Math.min(1, loss / most);
  const course = steps.map((_, t) => lossOf(t, text, place));
  const cost = costs?.[text][place] ?? null;
  const drawn = [makeSvg("line", { class: "base", x1: 0, x2: COURSE.width, y1: yOf(0), y2: yOf(0) })];
  if (cost !== null) {
    const y = yOf(cost * parts);
    drawn.push(makeSvg("line", { class: "frequencies", x1: 0, x2: COURSE.width, y1: y, y2: y }));
  }
  const xs = steps.map((step) => courseX(placeOfStep(step)));
  const known = course.map((loss, t) => (loss === null ? null : t));
  const d = linePath(xs, known, (t) => yOf(course[t]));
  drawn.push(makeSvg("path", { class: "curve", d: d && steps.length === 1 ? `${d}h0` : d }));
  svg.replaceChildren(...drawn, makeSvg("line", { class: "here", y1: 0, y2: COURSE.height }));
  svg.setAttribute("aria-label", courseWords(course));
  document.getElementById("example-lead").textContent = tokenWords(text, place, cost);
  showValue();
}

function courseWords(course) {
  const known = course.filter((loss) => loss !== null);
  if (!known.length) return "No course: this token is not predicted";
  return `Loss of this token over the steps, first ${amountWords(known[0])}, last ${amountWords(known.at(-1))}`;
}

// What word frequencies cost, and from when on the right token is the model's first answer.
function tokenWords(text, place, cost) {
  const { units } = DATA.example;
  if (example.tokens[text][place].matches(".special")) return "";
  const dotted = cost === null ? [] : [`Dotted: ${cost.toFixed(1)} ${units} by word frequencies.`];
  return [...dotted, ...leadWords(text, place)].join(" ");
}

function leadWords(text, place) {
  const { steps, lead, before } = DATA.example;
  if (!lead) return [];
  const from = lead[text][place];
  if (from === null) return [`The right token does not lead at the last ${CLOCK}.`];
  const low = before?.[text][place] ?? null;
  if (from === steps[0]) return [`The right token leads at every ${CLOCK}.`];
  if (from === steps.at(-1)) return [`The right token leads at the last ${CLOCK} only.`];
  const between = low === null || low === from ? "" : ` (not yet at ${formatStep(low)})`;
  return [`The right token leads from ${CLOCK} ${formatStep(from)} on${between}.`];
}

// On paper the text stands once for each of a few steps.
function printedTexts() {
  const { steps, print } = DATA.example;
  const { text } = example;
  const [first, ...rest] = findAll("#example-text .example-line")[text].cloneNode(true).childNodes;
  const why = make("p", { textContent: printWords(print.length) });
  const rows = print.map((t) => {
    const line = make("p", { className: "example-line", dir: first.parentNode.dir });
    line.append(...[first, ...rest].map((node) => node.cloneNode(true)));
    findAll(".t", line).forEach((token, place) => {
      for (const name of ["role", "tabindex", "aria-selected", "aria-describedby"]) token.removeAttribute(name);
      token.style.setProperty("--a", tintOf(lossOf(t, text, place)));
    });
    const head = `${CLOCK} ${formatStep(steps[t])}: ${meanWords(t, text)}`;
    return make("div", {}, make("p", { className: "example-when", textContent: head[0].toUpperCase() + head.slice(1) }), line);
  });
  return [why, ...rows];
}

function printWords(count) {
  if (count < 3) return "The first and the last checkpoint.";
  return "The first and the last checkpoint, and between them those at which the first and the last row of the chart are half-way.";
}
