// Lines of SVG through what is known.

export function linePath(xs, numbers, yOf) {
  const known = (i) => (numbers[i] ?? null) !== null;
  const move = (x, i) => `${known(i - 1) ? "L" : "M"}${x.toFixed(1)} ${yOf(numbers[i]).toFixed(1)}`;
  return xs.map((x, i) => (known(i) ? move(x, i) : "")).join("");
}
