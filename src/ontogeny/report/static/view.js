// A figure's arrays as the reader has chosen to see them.

// What a drawing function reads: the arrays under the reader's choices.
class View {
  constructor(figure, width, choices, relative) {
    this.figure = figure;
    this.node = DATA.nodes[figure.node];
    this.width = width;
    this.relative = relative;
    this.palette = colours();
    this.choices = choices;
    this.main = this.node.arrays[relative ? figure.relative : figure.value];
    this.absolute = this.node.arrays[figure.value];
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
    return this.shown(dimension).map((i) => ({
      title: formatLabel(axis, i),
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
  paired([absolute, relative], index) {
    const value = at(this.node.arrays[absolute], index);
    if (!this.relative) return value;
    if (relative !== null) return at(this.node.arrays[relative], index);
    return (value * at(this.main, index)) / at(this.absolute, index);
  }

  unitWords() {
    const { units, relativeLabel } = this.figure;
    return this.relative ? relativeLabel : units === "1" ? "" : units;
  }

  axisWords() {
    const unit = this.unitWords();
    return unit ? `${this.figure.label} (${unit})` : this.figure.label;
  }

  // The words of the tooltip for one point.
  describe(index, names, value, ends) {
    const { figure, node } = this;
    const step = figure.choose.concat(Object.values(figure.axes)).find((d) => node.axes[d]?.kind === "step");
    const head = [step && `Step ${formatStep(node.axes[step].values[index[step]])}`, ...names]
      .filter(Boolean)
      .join(" · ");
    const half = ends ? (ends[1] - ends[0]) / 2 : NaN;
    const unit = this.unitWords();
    const rest = [];
    if (ends && ends.every(Number.isFinite))
      rest.push(`interval ${formatNumber(ends[0], half)} to ${formatNumber(ends[1], half)}`);
    if (this.relative)
      rest.push(
        `absolute ${formatNumber(at(this.absolute, index))} ${figure.units === "1" ? "" : figure.units}`.trim(),
      );
    const reason = Number.isFinite(value) ? null : this.reason(index);
    return {
      head,
      value: Number.isFinite(value)
        ? `${formatNumber(value, half)} ${unit}`.trim()
        : (reason ?? "not measured"),
      rest,
      index,
    };
  }

  reason(index) {
    const { status } = this.node;
    if (!status) return null;
    return status.cells[status.dims.map((d) => index[d] ?? 0).join(",")] ?? null;
  }
}
