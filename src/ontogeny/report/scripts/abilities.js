// Examples of abilities that turned between the step before and the slider's.

import { CLOCK, DATA, find, make, say } from "./core.js";
import { formatStep } from "./format.js";
import { listen, stepNow } from "./state.js";

const TURNED_SHOWN = 4; // each way

export function startAbilities() {
  const place = find("#turned");
  if (!place || !DATA.abilities.length) return;
  const list = find(".turned-list", place);
  const able = DATA.abilities.some(({ texts }) => texts.length);
  const lucky = DATA.abilities.reduce((sum, each) => sum + each.lucky, 0);
  const luck = lucky ? [say(lucky === 1 ? "lucky one" : "lucky", { count: lucky })] : [];
  const show = () => {
    const lines = DATA.abilities.flatMap(turnedAt);
    find(".turned-step", place).textContent = `${CLOCK} ${formatStep(stepNow())}`;
    const measured = DATA.abilities.some(isCompared);
    const kept = DATA.abilities.some(({ of, texts }) => of > texts.length) ? "none kept turned" : "none turned";
    const none = able ? [say(measured ? kept : "not compared there")] : [];
    list.replaceChildren(...[...(lines.length ? lines : none), ...luck].map(turnedLine));
  };
  place.hidden = false;
  listen(show, "step");
  show();
}

// Whether examples were measured at the slider's step and the one before it.
function isCompared({ steps, right }) {
  const now = steps.indexOf(stepNow());
  return now > 0 && [right[now - 1], right[now]].every((row) => /[015]/.test(row));
}

// One of each group; those that stay so to the end come first.
function turnedAt({ steps, groups, texts, right, of }) {
  const now = steps.indexOf(stepNow());
  if (now < 1) return [];
  return ["1", "0"].flatMap((to) => {
    const stays = (i) => right.slice(now).every((row) => row[i] === to);
    const turned = texts.map((_, i) => i).filter((i) => right[now][i] === to && right[now - 1][i] === (to === "1" ? "0" : "1"));
    const inOrder = [...turned.filter(stays), ...turned.filter((i) => !stays(i))];
    const first = inOrder.filter((i, n) => inOrder.findIndex((j) => groups[j] === groups[i]) === n).slice(0, TURNED_SHOWN);
    const kept = of > texts.length ? say("kept", { kept: formatStep(texts.length), all: formatStep(of) }) : "";
    const more = first.length < turned.length ? say("one each") : "";
    const numbers = { count: formatStep(turned.length), at: formatStep(steps[now - 1]), kept, more };
    const count = say(to === "1" ? "turned right" : "turned wrong", numbers);
    return turned.length ? [{ count, examples: first.map((i) => ({ group: groups[i], texts: texts[i] })) }] : [];
  });
}

function turnedLine(line) {
  if (typeof line === "string") return make("li", {}, line);
  const item = make("li", {}, `${line.count}: `);
  line.examples.forEach(({ group, texts }, i) => {
    item.append(i ? "; " : "", make("b", { dir: "auto" }, texts[0]));
    if (texts[1]) item.append(" not ", make("span", { dir: "auto" }, texts[1]));
    item.append(make("small", {}, ` (${group})`));
  });
  return item;
}
