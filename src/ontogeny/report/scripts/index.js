// The page's script: the kinds of figures by their names, and what begins. Scripts of further kinds
// of figures can use everything that is exported here by its name.

import { CurvesPicture } from "./curves.js";
import { HeatmapPicture } from "./heatmap.js";
import { MarksPicture } from "./marks.js";
import { NullPicture } from "./nulls.js";
import { FIGURES, PICTURES } from "./picture.js";
import { ScatterPicture } from "./scatter.js";
import { WordsFigure } from "./words.js";

Object.assign(PICTURES, {
  curves: CurvesPicture,
  heatmap: HeatmapPicture,
  marks: MarksPicture,
  null: NullPicture,
  scatter: ScatterPicture,
});
FIGURES.words = WordsFigure;

export { CurvesPicture, FIGURES, HeatmapPicture, MarksPicture, NullPicture, PICTURES, ScatterPicture };
export { axisTitle, headLine, textWidth } from "./annotations.js";
export { DATA, at, extent, find, findAll, make, makeSvg, pad, range, textAt, values } from "./core.js";
export { Figure } from "./figure.js";
export { formatLabel, formatNumber, formatStep } from "./format.js";
export { startPage } from "./page.js";
export { Picture } from "./picture.js";
export { RowsPicture } from "./rows.js";
export { change, layerShown, listen, setStep, state } from "./state.js";
export { colours } from "./theme.js";
export { View } from "./view.js";
