// The first screen as one picture, with title, model, date and how sure it is: copied to the
// clipboard, or saved where a page may not copy.

import { DATA, find, findAll, make } from "./core.js";
import { pictureOf, save } from "./download.js";
import { answer } from "./links.js";
import { colours } from "./theme.js";

const WIDTH = 1240;
const MOST = 4000; // px high at most; what lies below is cut where nothing is drawn
const APART = ".written, .cloze, .copy-first, .dated-beside, [hidden]";

export function startFirstPicture() {
  const button = find(".copy-first button");
  if (!button) return;
  button.parentNode.hidden = false;
  button.addEventListener("click", async () => answer(button, await given()));
}

async function given() {
  const picture = drawn();
  try {
    await navigator.clipboard.write([new ClipboardItem({ "image/png": picture })]);
    return "Picture copied";
  } catch {
    save("first-screen.png", await picture, "image/png");
    return "Picture saved";
  }
}

async function drawn() {
  const image = await pictureOf(markup());
  const height = endOf(onCanvas(image, 1, MOST));
  return new Promise((done) => onCanvas(image, 2, height).toBlob(done));
}

function onCanvas(image, scale, height) {
  const canvas = make("canvas", { width: scale * WIDTH, height: scale * height });
  const context = canvas.getContext("2d", { willReadFrequently: scale === 1 });
  context.fillStyle = colours().base.paper;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(image, 0, 0, scale * WIDTH, scale * MOST);
  return canvas;
}

function endOf(canvas) {
  const { data } = canvas.getContext("2d").getImageData(0, 0, WIDTH, MOST);
  const pixels = new Uint32Array(data.buffer);
  let last = pixels.length - 1;
  while (last > 0 && pixels[last] === pixels[pixels.length - 1]) last -= 1;
  return Math.min(MOST, Math.ceil(last / WIDTH) + 20);
}

function markup() {
  const first = find("#first").cloneNode(true);
  for (const each of findAll(APART, first)) each.remove();
  const body = make("body", {},
    make("header", { className: "masthead" }, ...findAll(".masthead h1, .masthead .studied").map((each) => each.cloneNode(true))),
    first,
    make("p", { className: "picture-foot", textContent: DATA.sure }),
  );
  const style = make("style", { textContent: findAll("style").map((each) => each.textContent).join("\n") });
  body.prepend(style);
  const inside = new XMLSerializer().serializeToString(body);
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${MOST}"><foreignObject width="100%" height="100%">${inside}</foreignObject></svg>`;
}
