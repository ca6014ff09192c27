// Points in space from one side: the axes share one unit, and what is near is drawn last.
// A projection needs no WebGL, so pictures stay vectors and paper shows them too.

const SIDE = { azimuth: 0.6, elevation: 0.45 };

// How to place points of a span of x, y and z on the plane.
export function projection(spans) {
  const middles = spans.map(([low, high]) => (low + high) / 2);
  const half = Math.max(...spans.map(([low, high]) => (high - low) / 2)) || 1;
  const [ca, sa] = [Math.cos(SIDE.azimuth), Math.sin(SIDE.azimuth)];
  const [ce, se] = [Math.cos(SIDE.elevation), Math.sin(SIDE.elevation)];
  return (point) => {
    const [x, y, z] = point.map((value, k) => (value - middles[k]) / half);
    const away = sa * x + ca * y;
    return { u: ca * x - sa * y, v: ce * z + se * away, depth: ce * away - se * z };
  };
}

// The three axes from the corner of the box around all points, with places of names.
export function spaceAxes(spans, place) {
  const corner = spans.map(([low]) => low);
  return spans.map(([, high], k) => ({ from: place(corner), to: place(corner.with(k, high)) }));
}
