// Numbers as a table that spreadsheets open.

import { DATA, at, range, textAt, values } from "./core.js";
import { shortest } from "./format.js";

// A text that a spreadsheet would run as a formula gets an apostrophe before it.
function csvField(value) {
  const runs = typeof value === "string" && /^([=@\t\r]|[+-].)/.test(value) && Number.isNaN(Number(value));
  const text = runs ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

export function csv(header, rows) {
  return [header, ...rows].map((row) => row.map(csvField).join(",")).join("\n") + "\n";
}

// A figure's data in long form: one row for each point, dimensions first.
export function figureCsv(data) {
  const node = DATA.nodes[data.node];
  const arrays = Object.values(data.arrays).map(([place]) => node.arrays[place]);
  const main = node.arrays[data.arrays[data.value][0]];
  const axes = main.dims.map((d) => node.axes[d]);
  const cell = (array, index) => (array.texts ? textAt(array, index) : shortest(at(array, index), array));
  const rows = range(values(main).length).map((flat) => {
    const index = Object.fromEntries(
      main.dims.map((d, k) => [d, Math.floor(flat / main.strides[k]) % main.shape[k]]),
    );
    return [
      ...axes.map((axis, k) => axis.values[index[main.dims[k]]]),
      ...arrays.map((array) => cell(array, index)),
    ];
  });
  return csv([...main.dims, ...arrays.map((a) => a.name)], rows);
}
