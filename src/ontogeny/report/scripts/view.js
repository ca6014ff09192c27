// A figure's arrays as the reader has chosen to see them.

import { CLOCK, at, range, say } from "./core.js";
import { capital, formatLabel, formatNumber, formatStep } from "./format.js";
import { nodeOf } from "./nodes.js";
import { findingsByStep, layerShown, stepIndex } from "./state.js";
import { colours } from "./theme.js";

// What a drawing function reads: the arrays under the reader's choices.
export class View {
  constructor(figure, width, choices, relative) {
    this.figure = figure;
    this.node = nodeOf(figure);
    this.width = width;
    this.relative = relative;
    this.palette = colours();
    this.choices = choices;
    this.main = this.array(relative ? figure.relative : figure.value);
    this.absolute = this.array(figure.value);
  }

  // The array of one of the figure's variables; null where it has none.
  array(name) {
    const places = this.figure.arrays[name];
    return places ? this.node.arrays[places[0]] : null;
  }

  // Indices that are the same for the whole figure; a step that is not an axis follows the slider.
  get fixed() {
    return Object.fromEntries(
      this.figure.choose.map((d) => {
        const axis = this.node.axes[d];
        return [d, axis.kind === "step" ? stepIndex(axis) : (this.choices[d] ?? 0)];
      }),
    );
  }

  facets() {
    const dimension = this.figure.axes.facet;
    if (!dimension) return [{ title: "", index: this.fixed }];
    const axis = this.node.axes[dimension];
    const names = { step: `${CLOCK} `, number: `${dimension.replaceAll("_", " ")} ` };
    const what = names[axis.kind] ?? "";
    return (this.figure.panels ?? this.shown(dimension)).map((i) => ({
      title: what + formatLabel(axis, i),
      index: { ...this.fixed, [dimension]: i },
    }));
  }

  // Indices along a dimension that the layer selector leaves; all, if it would leave none.
  shown(dimension) {
    if (!dimension) return [0];
    const axis = this.node.axes[dimension];
    const all = range(axis.values.length);
    const kept = axis.group ? all.filter((i) => layerShown(axis.group[i])) : all;
    return kept.length ? kept : all;
  }

  value(index) {
    return at(this.main, index);
  }

  // A band or interval in the form that is shown: its own relative variable, else in proportion.
  companion(name, index) {
    const relative = this.figure.arrays[name][1];
    const value = at(this.array(name), index);
    if (!this.relative) return value;
    if (relative !== null) return at(this.node.arrays[relative], index);
    return (value * at(this.main, index)) / at(this.absolute, index);
  }

  unitWords() {
    const { units, relative_label: label } = this.figure;
    return this.relative ? label : units === "1" ? "" : units;
  }

  headWords() {
    return this.unitWords();
  }

  axisWords() {
    const unit = this.unitWords();
    return unit ? `${this.figure.value_label} (${unit})` : this.figure.value_label;
  }

  // The words of the tooltip for one point.
  describe(index, names, value, ends) {
    const { figure, node } = this;
    const used = [...figure.choose, ...Object.values(figure.axes), ...figure.points];
    const dimension = used.find((d) => node.axes[d]?.kind === "step");
    const step = dimension === undefined ? null : node.axes[dimension].values[index[dimension]];
    const known = step === null ? [] : [`${CLOCK} ${formatStep(step)}`];
    const others = names.filter((name) => name && !known.includes(name));
    const head = [...known.map(capital), ...others].join(" · ");
    const rest = [...this.more(index, ends), ...(findingsByStep.get(step) ?? []).map((m) => `Audit: ${m}`)];
    return { head, value: this.say(index, value, ends), rest, index };
  }

  // A value with its unit, or why there is none.
  say(index, value, ends) {
    if (!Number.isFinite(value)) return this.reason(index) ?? this.absence(index);
    return `${formatNumber(value, halfWidth(ends))} ${this.unitWords()}`.trim();
  }

  absence() {
    return say("not measured");
  }

  // Places along x of a line that stands at some of them only; null for all.
  places() {
    return null;
  }

  more(index, ends) {
    const lines = [];
    if (ends && ends.every(Number.isFinite)) {
      const [low, high] = ends.map((end) => formatNumber(end, halfWidth(ends)));
      lines.push(`interval ${low} to ${high}`);
    }
    if (this.relative) {
      const unit = this.figure.units === "1" ? "" : this.figure.units;
      lines.push(`absolute ${formatNumber(at(this.absolute, index))} ${unit}`.trim());
    }
    return lines;
  }

  reason(index) {
    const { status } = this.node;
    if (!status || status.dims.some((d) => index[d] === undefined)) return null;
    return status.cells[status.dims.map((d) => index[d]).join(",")] ?? null;
  }
}

export function halfWidth(ends) {
  return ends ? (ends[1] - ends[0]) / 2 : NaN;
}
