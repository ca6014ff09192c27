// Clouds of words as HTML text, which can be selected: every script keeps its own order and shapes.

import { at, find, make, range, textAt } from "./core.js";
import { Figure } from "./figure.js";
import { formatLabel, formatNumber } from "./format.js";
import { View } from "./view.js";

const WORD_SIZES = [11, 28]; // pixels, of a word without weight and of the heaviest

export class WordsFigure extends Figure {
  draw() {
    const width = this.room;
    if (!width) return;
    this.view = new View(this.data, width, this.choices, false);
    const nested = this.data.parent !== null;
    const clouds = this.data.tree.map(([group, depth]) => this.cloud(group, depth));
    this.plot.replaceChildren(make("div", { className: nested ? "clouds nested" : "clouds" }, ...clouds));
    this.stale = false;
    this.moveHairlines();
    this.element.dataset.drawn = "true";
  }

  index(group) {
    const { groups } = this.data.axes;
    return groups ? { ...this.view.fixed, [groups]: group } : this.view.fixed;
  }

  cloud(group, depth) {
    const index = this.index(group);
    const words = this.words(index);
    const title = this.heading(group, index);
    const all = at(this.view.array("words in all"), index);
    const most = all > words.length ? `${words.length} of ${all.toLocaleString("en-US")} words` : "";
    const heads = title || most ? [make("h4", { dir: "auto" }, title, make("small", {}, most && ` ${most}`))] : [];
    const body = words.length
      ? make("p", { dir: "auto" }, ...words.flatMap((word) => [this.word(word, title), " "]))
      : make("p", { className: "quiet", textContent: "no words" });
    const cloud = make("div", { className: "cloud" }, ...heads, body);
    cloud.style.setProperty("--depth", depth);
    return cloud;
  }

  heading(group, index) {
    const own = this.view.array(this.data.heading);
    if (own) return textAt(own, index);
    const { groups } = this.data.axes;
    return groups ? formatLabel(this.view.node.axes[groups], group) : "";
  }

  // The words of one cloud that have a weight, heaviest first as they are stored.
  words(index) {
    const [texts, context] = [this.data.words, this.data.context].map((name) => this.view.array(name));
    const { main, figure } = this.view;
    const along = main.dims.find((d) => d !== figure.axes.groups && !figure.choose.includes(d));
    return range(main.shape[main.dims.indexOf(along)])
      .map((i) => ({ ...index, [along]: i }))
      .map((where) => ({
        text: textAt(texts, where),
        weight: this.view.value(where),
        context: context ? textAt(context, where) : "",
      }))
      .filter((word) => Number.isFinite(word.weight) && word.text !== "");
  }

  word({ text, weight, context }, title) {
    const element = make("bdi", { textContent: text });
    const share = Math.sqrt(Math.abs(weight) / (this.data.heaviest || 1));
    const [small, large] = WORD_SIZES;
    element.style.fontSize = `${(small + (large - small) * share).toFixed(1)}px`;
    element.told = { head: title, value: text, rest: [`${this.view.axisWords()}: ${formatNumber(weight)}`, context] };
    return element;
  }

  moveHairlines() {
    find(".readout", this.element).replaceChildren(...this.stepWords());
  }

  hover(event) {
    this.tellAt(event, event.target?.closest("bdi")?.told); // none where the pointer has left
  }

  pick() {}
}
