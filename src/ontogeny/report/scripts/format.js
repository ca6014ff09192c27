// Numbers as people read them: thousands separated, no more digits than are known.

export function formatNumber(value, uncertainty = NaN) {
  if (value === null || !Number.isFinite(value)) return "not measured";
  if (value === 0) return "0";
  const size = Math.floor(Math.log10(Math.abs(value)));
  const known = Number.isFinite(uncertainty) && uncertainty > 0;
  let decimals = known ? 1 - Math.floor(Math.log10(uncertainty)) : 3 - size;
  decimals = Math.max(Math.min(decimals, 8 - size), 0);
  const minus = value < 0 ? "−" : "";
  const amount = Math.abs(value);
  if (amount < 1e-4) return minus + inPowers(amount.toExponential(Math.max(Math.min(decimals + size, 8), 0)));
  const text = amount.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  return /[1-9]/.test(text) ? minus + text : text; // a rounded zero has no sign
}

// "4.93e-15" as people write it.
function inPowers(text) {
  const [digits, power] = text.split("e");
  const raised = [...power.replace("+", "")].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c])).join("");
  return `${digits} × 10${raised}`;
}

export function formatStep(step) {
  return Math.round(step).toLocaleString("en-US");
}

export function formatLabel(axis, i) {
  if (axis.kind === "step") return formatStep(axis.values[i]);
  if (axis.kind === "number") return Number.isInteger(axis.values[i]) ? formatStep(axis.values[i]) : String(axis.values[i]);
  return axis.short[i];
}

// A label for hover: as the result has it, but modules by the page's names of layers.
export function fullLabel(axis, i) {
  return axis.kind === "category" && !axis.group ? String(axis.values[i]) : formatLabel(axis, i);
}

// plotly.js reads a subset of HTML, templates and TeX in its labels; so escaped they stay text.
export function plotText(text) {
  return String(text)
    .replace(/&/g, "&amp;")
    .replace(/</g, "&lt;")
    .replace(/>/g, "&gt;")
    .replace(/%\{/g, "&#37;{")
    .replace(/\$/g, "&#36;");
}

export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export function shortened(text, length) {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

// The shortest decimal that reads back as the stored number.
export function shortest(value, array) {
  if (!Number.isFinite(value)) return "";
  if (array.dtype !== "f4") return String(value);
  for (let digits = 6; digits < 9; digits += 1) {
    const text = Number(value.toPrecision(digits));
    if (Math.fround(text) === value) return String(text);
  }
  return String(Number(value.toPrecision(9)));
}
