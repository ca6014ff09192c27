// Names beside points, placed so that none covers another or a point that is not its own.

import { textWidth } from "./annotations.js";
import { smallFont } from "./theme.js";

// For names beside spots: which are written, and how far their middles lie from their spots, in pixels.
export function placeNames(names, spots, width) {
  const [up, beside, height] = [12, 8, 13];
  const dots = spots.map(({ x, y }) => ({ left: x - 4, right: x + 4, top: y - 4, bottom: y + 4 }));
  const taken = [];
  return names.flatMap((name, k) => {
    const half = textWidth(name, smallFont()) / 2;
    const tried = [[0, -up], [0, up], [half + beside, 0], [-half - beside, 0]];
    tried.push([half, -up], [-half, -up], [half, up], [-half, up]);
    for (const [dx, dy] of tried) {
      const [x, y] = [spots[k].x + dx, spots[k].y + dy];
      const area = { left: x - half - 2, right: x + half + 2, top: y - height / 2, bottom: y + height / 2 };
      const inside = area.left > -8 && area.right < width + 8;
      const free = [...taken, ...dots.filter((_, other) => other !== k)].every((each) => !overlap(area, each));
      if (!inside || !free) continue;
      taken.push(area);
      return [{ k, dx, dy }];
    }
    return [];
  });
}

function overlap(one, other) {
  return (
    one.left < other.right && one.right > other.left && one.top < other.bottom && one.bottom > other.top
  );
}
