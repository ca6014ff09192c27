// The page around the figures: rail, folds, print; then start everything.

import { startAbilities } from "./abilities.js";
import { startAtlas } from "./atlas.js";
import { startChart } from "./chart.js";
import { startCloze } from "./cloze.js";
import { find, findAll, watch } from "./core.js";
import { startDated } from "./dated-text.js";
import { startDownloads } from "./download.js";
import { startExample } from "./example-text.js";
import { figures, refreshAll, startFigures } from "./figure.js";
import { startFirstPicture } from "./first-picture.js";
import { oneStop, startLayers } from "./layers.js";
import { startLife } from "./life.js";
import { startLinks } from "./links.js";
import { startRefresh } from "./live.js";
import { startSlider } from "./slider.js";
import { startStepClicks } from "./steps.js";
import { startTables } from "./tables.js";
import { paper } from "./theme.js";
import { hideTooltip } from "./tooltip.js";
import { startWritten } from "./written.js";

function startRail() {
  const menu = find("#menu");
  const rail = find("#rail");
  const bar = find("#bar");
  const open = (shown) => {
    // At the top of a page the bar still stands below the head.
    rail.style.setProperty("--menu", `${bar.getBoundingClientRect().bottom}px`);
    rail.classList.toggle("open", shown);
    menu.setAttribute("aria-expanded", String(shown));
  };
  menu.addEventListener("click", () => open(!rail.classList.contains("open")));
  rail.addEventListener("click", (event) => {
    if (event.target.closest("a")) open(false);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      open(false);
      hideTooltip();
    }
  });
  const links = new Map(findAll("a", rail).map((link) => [link.hash.slice(1), link]));
  const watcher = watch("-30% 0px -65% 0px", ({ id }, visible) => {
    if (!visible) return;
    for (const link of links.values()) link.removeAttribute("aria-current");
    links.get(id)?.setAttribute("aria-current", "true");
  });
  for (const section of findAll("main > section")) watcher.observe(section);
}

function startBarHeight() {
  const bar = find("#bar");
  const low = matchMedia("screen and (max-height: 480px)");
  const set = () => {
    const hidden = low.matches ? find("#layers").offsetHeight : 0;
    document.documentElement.style.setProperty("--bar-hidden", `${hidden}px`);
    document.documentElement.style.setProperty("--bar", `${bar.offsetHeight - hidden}px`);
  };
  new ResizeObserver(set).observe(bar);
  low.addEventListener("change", set);
  set();
}

// Paper shows everything at once: all figures at its width, notes and the table of all rows open.
const SHORT_CHART = 960; // units of its height: so far it fits under the first screen

function startPrint() {
  let closed = [];
  for (const svg of findAll("svg.chart")) svg.classList.toggle("short", svg.viewBox.baseVal.height < SHORT_CHART);
  addEventListener("beforeprint", () => {
    paper.printing = true;
    closed = findAll(".fold, .table-fold").filter((fold) => !fold.open);
    for (const fold of closed) fold.open = true;
    for (const figure of figures.values()) {
      figure.element.classList.toggle("broad", figure.broad);
      figure.draw();
    }
  });
  addEventListener("afterprint", () => {
    paper.printing = false;
    for (const fold of closed) fold.open = false;
    refreshAll();
  });
}

export function startPage() {
  startBarHeight();
  startSlider();
  startChart();
  startStepClicks();
  startLife();
  startLayers();
  startFigures();
  startAtlas();
  startAbilities();
  startCloze();
  startDated();
  startFirstPicture();
  startWritten();
  startExample();
  startDownloads();
  startRail();
  startTables();
  for (const line of findAll(".actions, .segments, table.sortable thead, #cloze thead")) oneStop(line, findAll("button, summary", line));
  for (const body of findAll("table.sortable tbody")) oneStop(body, findAll("a", body), ["ArrowDown", "ArrowUp"]);
  startPrint();
  startLinks();
  startRefresh();
  document.documentElement.dataset.ready = "true";
}
