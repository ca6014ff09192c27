// The page's data, and small helpers for elements.

import { capital } from "./format.js";

export const DATA = JSON.parse(document.getElementById("data").textContent);
// What a place of the step axis is called, as step or epoch; and at the start of a sentence.
export const CLOCK = DATA.clock.replace("training ", "").replace(/s$/, "");
export const CLOCK_HEAD = capital(CLOCK);
// What is said of results stands in the catalogue of the library: a script gives the numbers.
export function say(key, given = {}) {
  return DATA.words[key].replace(/\{(\w+)\}/g, (_, name) => given[name]);
}
const ARRAY_TYPES = { f4: Float32Array, f8: Float64Array, i4: Int32Array, u1: Uint8Array, u2: Uint16Array };

export function find(selector, root = document) {
  return root.querySelector(selector);
}
export function findAll(selector, root = document) {
  return Array.from(root.querySelectorAll(selector));
}

// An HTML element with properties, text and children; text is never parsed as HTML.
export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

// A piece of text, which may run the other way.
export function token(text, className = "token") {
  return make("bdi", { className, textContent: text });
}

export function makeSvg(tag, attributes = {}, text = "") {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.textContent = text;
  return element;
}

export function press(button, pressed) {
  button.setAttribute("aria-pressed", String(pressed));
}

export function standAt(line, x) {
  line.setAttribute("x1", x);
  line.setAttribute("x2", x);
}

// Call back with elements that come into view, or within a margin of it, and that leave it again.
export function watch(rootMargin, callback) {
  const told = (entries) => entries.forEach((entry) => callback(entry.target, entry.isIntersecting));
  return new IntersectionObserver(told, { rootMargin });
}

// Arrays come as base64 of little-endian bytes and are decoded when they are first read.
export function values(array) {
  if (!array.values) {
    const bytes = Uint8Array.from(atob(array.bdata), (c) => c.charCodeAt(0));
    array.values = new ARRAY_TYPES[array.dtype](bytes.buffer);
    array.strides = array.shape.map((_, i) => array.shape.slice(i + 1).reduce((a, b) => a * b, 1));
    delete array.bdata;
  }
  return array.values;
}

// One number of an array; dimensions that it lacks are ignored, so that bands broadcast.
export function at(array, index) {
  const flat = values(array);
  let place = 0;
  for (let d = 0; d < array.dims.length; d += 1) place += array.strides[d] * (index[array.dims[d]] || 0);
  return flat[place];
}

// One text of an array of texts, which holds the places of its texts.
export function textAt(array, index) {
  return array.texts[at(array, index)];
}

export function range(count) {
  return Array.from({ length: count }, (_, i) => i);
}

// The place of the largest number in a sorted list that is not above `value`, or 0.
export function lastNotAbove(list, value) {
  return Math.max(0, list.findLastIndex((each) => each <= value));
}

export function nearest(list, value) {
  let best = 0;
  for (let i = 1; i < list.length; i += 1) {
    if (Math.abs(list[i] - value) < Math.abs(list[best] - value)) best = i;
  }
  return best;
}

// The least and the largest number in some lists; Infinity and -Infinity where there is none.
export function extent(lists, wanted = Number.isFinite) {
  let [low, high] = [Infinity, -Infinity];
  for (const list of lists) {
    for (const value of list) {
      if (!Number.isFinite(value) || !wanted(value)) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  return [low, high];
}

// A span with some room at both ends, never empty.
export function pad(low, high, share) {
  const room = (high - low) * share || Math.abs(high) * 0.05 || 0.5;
  return [low - room, high + room];
}
