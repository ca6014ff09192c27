// The table of gaps: some steps and the current one, in their order and each once.

import { CLOCK, DATA, find, findAll, lastNotAbove, say } from "./core.js";
import { formatStep } from "./format.js";
import { checkpointOf, listen, setStep, stepNow } from "./state.js";

export function startCloze() {
  const table = find("#cloze");
  if (!table) return;
  const { columns, steps, tokens, first, share, right, same } = DATA.cloze;
  const [heads, ...rows] = findAll("tr", table).map((row) => findAll(".s", row));
  const feet = rows.pop();
  const answer = (cell, gap, t) => {
    const token = find("bdi", cell);
    token.textContent = tokens[first[t][gap]];
    token.classList.toggle("right", right[t][gap] === 1);
    token.style.setProperty("--a", (0.62 * Math.sqrt(share[t][gap])).toFixed(3));
    find("small", cell).textContent = share[t][gap] < 0.005 ? "<1 %" : `${Math.round(100 * share[t][gap])} %`;
  };
  // The heading of a step sets it.
  const buttons = heads.map((head) => find("button", head));
  let shown = columns;
  buttons.forEach((button, i) => button.addEventListener("click", () => setStep(checkpointOf(steps[shown[i]]))));
  const show = () => {
    const now = lastNotAbove(steps, stepNow());
    const places = [...new Set([...columns, now])].sort((a, b) => a - b);
    shown = places;
    for (const cells of [heads, ...rows, feet]) {
      cells.forEach((cell, i) => {
        cell.hidden = i >= places.length;
        cell.classList.toggle("current", places[i] === now);
        cell.classList.toggle("between", places[i] !== now && i > 0 && i < places.length - 1);
      });
    }
    places.forEach((t, i) => {
      const here = stepNow();
      const late = t !== now || steps[t] === here ? "" : steps[t] < here ? ", last measured" : ", first measured";
      buttons[i].textContent = `${CLOCK} ${formatStep(steps[t])}${late}`;
      heads[i].setAttribute("aria-current", String(t === now));
      rows.forEach((cells, gap) => answer(cells[i], gap, t));
      feet[i].textContent = same[t] > 1 ? same[t] : say("no two");
    });
  };
  // Keys can scroll what scrolls, and nothing else is a stop of the tab key.
  const scroll = table.parentNode;
  new ResizeObserver(() => (scroll.tabIndex = scroll.scrollWidth > scroll.clientWidth + 1 ? 0 : -1)).observe(scroll);
  listen(show, "step");
  show();
}
