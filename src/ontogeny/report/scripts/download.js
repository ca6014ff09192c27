// Data and pictures as files, made in the page.

import { DATA, findAll, make, makeSvg, values } from "./core.js";
import { csv } from "./csv.js";
import { figures } from "./figure.js";
import { shortest } from "./format.js";
import { plottingLibrary } from "./library.js";
import { colours } from "./theme.js";

const PICTURE_MARGIN = 20;

export function save(download, content, type) {
  const href = URL.createObjectURL(new Blob([content], { type }));
  make("a", { href, download }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10000);
}

function chartCsv() {
  const rows = DATA.rows.flatMap((row) =>
    row.steps.map((step, i) => [
      row.label,
      step,
      shortest(values(row.progress)[i], row.progress),
      row.distinct[i] === "1",
      ...row.record.map((field) => field ?? ""),
    ]),
  );
  return csv(["row", "step", "progress", "distinct", ...DATA.record], rows);
}

// Rules of the page that hold now, without the conditions that they stand under.
function rulesNow(rules = document.styleSheets[0].cssRules) {
  return [...rules].flatMap((rule) => {
    if (!rule.media) return [rule.cssText];
    return matchMedia(rule.conditionText).matches ? rulesNow(rule.cssRules) : [];
  });
}

// The chart with the rules of its style, so that it stands alone.
function chartPicture() {
  const source = findAll("svg.chart").find((svg) => svg.clientWidth > 0);
  const copy = source.cloneNode(true);
  const shown = findAll("*", source).map((element) => getComputedStyle(element).display !== "none");
  findAll("*", copy).forEach((element, i) => shown[i] || element.remove());
  if (source.closest(".intervals")) copy.classList.add("intervals");
  for (const drop of findAll(".now, .hit", copy)) drop.remove();
  const rules = rulesNow().filter((text) => text.startsWith(".chart ") || text.includes(".in-"));
  const box = source.viewBox.baseVal;
  const [width, height] = [box.width + 2 * PICTURE_MARGIN, box.height + 2 * PICTURE_MARGIN];
  const corner = { x: -PICTURE_MARGIN, y: -PICTURE_MARGIN };
  for (const [name, length] of Object.entries({ width, height })) {
    copy.setAttribute(name, length);
    copy.style.setProperty(name, `${length}px`); // on the page it is as wide as its place
  }
  copy.setAttribute("viewBox", `${corner.x} ${corner.y} ${width} ${height}`);
  copy.prepend(
    makeSvg("style", {}, rules.join("\n")),
    makeSvg("rect", { ...corner, width, height, fill: colours().base.paper }),
  );
  return { text: new XMLSerializer().serializeToString(copy), width, height };
}

// The half-change steps of several runs and their controls: a line for each mark.
function marksCsv() {
  return csv(DATA.marks, DATA.rows.flatMap((row) => row.marks.map((mark) => mark.map((field) => field ?? ""))));
}

function saveChart(action) {
  const file = DATA.views.includes("cells") ? "chart" : "half-change-steps";
  if (action === "csv") return save(`${file}.csv`, file === "chart" ? chartCsv() : marksCsv(), "text/csv");
  const picture = chartPicture();
  if (action === "svg") return save("chart.svg", picture.text, "image/svg+xml");
  const canvas = make("canvas", { width: picture.width * 2, height: picture.height * 2 });
  return pictureOf(picture.text).then((image) => {
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => save("chart.png", blob, "image/png"));
  });
}

export async function pictureOf(text) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  return image;
}

function saveFigure(figure, action) {
  const name = figure.file;
  if (action === "csv") return save(`${name}.csv`, figure.csv(), "text/csv");
  if (figure.stale) figure.draw();
  const { width, height } = figure.picture.frame;
  const layout = { ...figure.plot.layout, paper_bgcolor: colours().base.paper, width, height };
  return plottingLibrary().toImage(
    { data: figure.plot.data, layout },
    { format: action, width, height, scale: action === "png" ? 2 : 1 },
  ).then((href) => make("a", { href, download: `${name}.${action}` }).click());
}

function saveTable(table, action) {
  save(`${table.file}.${action}`, table[action], action === "csv" ? "text/csv" : "application/x-tex");
}

export function startDownloads() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-action]");
    if (!button) return;
    const { action } = button.dataset;
    const owner = button.closest("figure");
    if (owner.dataset.table !== undefined) saveTable(DATA.tables[owner.id], action);
    else if (owner.dataset.figure !== undefined) saveFigure(figures.get(owner.id), action);
    else saveChart(action);
  });
}
