// What all kinds of figure share: panels side by side with their axes, titles and marks. A kind says
// what it reads, how much room it needs, and what it draws in one panel. It enters its class here by
// its name; one that is no picture but HTML enters a class of figures.

const PICTURES = {};
const FIGURES = {};

class Picture {
  constructor(figure, view) {
    this.figure = figure;
    this.view = view;
    this.palette = view.palette;
    this.panels = view.facets();
    this.traces = [];
    this.read();
    this.frame = this.layFrame();
    this.layout = plotLayout(this.frame, this.palette);
    this.panels.forEach((panel, i) => this.drawPanel(panel, i));
    this.layout.annotations.push(
      axisTitle(this.frame, this.xWords()),
      headLine(this.headWords(), this.palette),
    );
    this.finish();
  }

  layFrame() {
    return layPanels(this.panels.length, this.view.width, this.sizes());
  }

  get many() {
    return this.panels.length > 1;
  }

  axis(use) {
    const dimension = this.figure.axes[use];
    return dimension ? this.view.node.axes[dimension] : null;
  }

  drawPanel(panel, i) {
    const box = this.frame.boxes[i];
    placeAxes(this.layout, this.frame, i, this.xLayout(box), this.yLayout(box));
    const axes = { xaxis: axisName("x", i), yaxis: axisName("y", i) };
    this.traces.push(...this.panelTraces(panel).map((trace) => ({ hoverinfo: "skip", ...axes, ...trace })));
    if (this.xAxis?.kind === "step") this.layout.shapes.push(...stepMarks(i, this.palette));
    if (this.many) this.layout.annotations.push(this.panelTitle(panel, box));
    this.layout.annotations.push(...this.panelWords(panel, box, i));
  }

  panelTitle(panel, box) {
    const y = 1 - (box.y - 4 - this.titleShift) / this.frame.height;
    const font = { size: smallFont() + 1, color: this.palette.base.ink };
    return note(panel.title, box.x / this.frame.width, y, { yanchor: "bottom", font });
  }

  // A kind may leave out what follows.
  get titleShift() {
    return 0;
  }

  xLayout(box) {
    return dimensionAxis(this.xAxis, this.palette, box.width, box.bottom);
  }

  xWords() {
    return dimensionWords(this.xAxis, this.figure.axes.x);
  }

  panelWords() {
    return [];
  }

  finish() {}
}
