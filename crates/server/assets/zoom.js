/** Wheel, fingers and clicks on a graph. Dragging to zoom is uPlot's own selection (`chart.js`). */

import { debounced } from './dom.js';

/** @typedef {import('./figure.js').Figure} Figure */

/** How much a notch of the wheel zooms. */
const WHEEL_ZOOM = 1.25;
/** Pixels that a pointer may move and still be a click. */
const CLICK_PIXELS = 5;

/** Listens on one figure. @param {Figure} figure */
export function zoomable(figure) {
  const host = figure.plot;
  const gesture = new Gesture(figure);
  host.addEventListener('wheel', (event) => gesture.wheel(event), { passive: false });
  host.addEventListener('pointerdown', (event) => gesture.down(event));
  host.addEventListener('pointermove', (event) => gesture.move(event));
  for (const type of /** @type {const} */ (['pointerup', 'pointercancel'])) {
    host.addEventListener(type, (event) => gesture.up(event));
  }
}

class Gesture {
  /** @param {Figure} figure */
  constructor(figure) {
    this.figure = figure;
    /** @type {Map<number, {x: number, y: number}>} */
    this.fingers = new Map();
    /** Where the pointer went down, and the window of then. @type {{x: number, y: number, min: number, max: number, time: number, spread: number} | null} */
    this.origin = null;
    this.moved = false;
    this.settle = debounced(() => this.#settle(), 250);
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    const { live } = this.figure;
    if (!live || !(event.ctrlKey || event.metaKey || event.shiftKey)) return;
    event.preventDefault();
    const { min, max } = live.window;
    const by = event.deltaY || event.deltaX;
    if (event.shiftKey) {
      const move = ((max - min) / 10) * Math.sign(by);
      this.#preview(min + move, max + move);
    } else {
      // A pinch on a touchpad comes as a wheel with Ctrl and small steps.
      const factor = WHEEL_ZOOM ** Math.max(-1, Math.min(1, by / 40));
      const at = this.#timeAt(event.clientX);
      this.#preview(at - (at - min) * factor, at + (max - at) * factor);
    }
    this.settle();
  }

  /** @param {PointerEvent} event */
  down(event) {
    const { live } = this.figure;
    if (!live || event.button !== 0 || !this.#inside(event)) return;
    this.fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    this.moved = this.fingers.size > 1;
    const { min, max } = live.window;
    const x = this.#middle();
    this.origin = { x, y: event.clientY, min, max, time: this.#timeAt(x), spread: this.#spread() };
  }

  /** @param {PointerEvent} event */
  move(event) {
    const { live, page } = this.figure;
    const { origin } = this;
    if (!live || !origin || !this.fingers.has(event.pointerId)) return;
    this.fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (Math.abs(event.clientX - origin.x) + Math.abs(event.clientY - origin.y) > CLICK_PIXELS) this.moved = true;
    if (this.fingers.size === 2 && origin.spread > 0) {
      const factor = origin.spread / Math.max(20, this.#spread());
      const perPixel = ((origin.max - origin.min) * factor) / this.#plotWidth();
      const min = origin.time - (this.#middle() - this.#plotLeft()) * perPixel;
      this.#preview(min, min + perPixel * this.#plotWidth());
    } else if (event.pointerType === 'mouse' && event.shiftKey) {
      const by = ((origin.x - event.clientX) * (origin.max - origin.min)) / this.#plotWidth();
      this.#preview(origin.min + by, origin.max + by);
    } else if (event.pointerType === 'touch' && !page.cursor.pinned) {
      live.putCursor(this.#timeAt(event.clientX));
      page.cursor.moved(this.figure);
    }
  }

  /** @param {PointerEvent} event */
  up(event) {
    if (!this.fingers.delete(event.pointerId)) return;
    if (this.previewed) this.settle();
    else if (!this.moved && event.type === 'pointerup') this.#click(event);
    if (this.fingers.size === 0) this.origin = null;
  }

  /** Pins the values; the second click of a double click is not one of these. @param {PointerEvent} event */
  #click(event) {
    const { live, page } = this.figure;
    if (!live) return;
    if (event.pointerType === 'touch') {
      live.putCursor(this.#timeAt(event.clientX));
      page.cursor.moved(this.figure);
    }
    page.cursor.togglePin(this.figure);
  }

  /** @param {number} min @param {number} max */
  #preview(min, max) {
    this.previewed = { min, max };
    for (const figure of this.figure.page.cursor.figures) if (figure.visible) figure.live?.preview(min, max);
  }

  /** Fetches the rows of what was previewed. */
  #settle() {
    const { previewed } = this;
    if (!previewed || this.fingers.size > 0) return;
    this.previewed = null;
    this.figure.page.range.setSeconds(previewed.min, previewed.max, this.figure.rowSeconds);
  }

  /** What is shown until the fingers rest. @type {{min: number, max: number} | null} */
  previewed = null;

  #over() {
    return /** @type {import('./chart.js').LiveChart} */ (this.figure.live).plot.over.getBoundingClientRect();
  }

  #plotLeft() {
    return this.#over().left;
  }

  #plotWidth() {
    return Math.max(1, this.#over().width);
  }

  /** @param {PointerEvent} event */
  #inside(event) {
    const { left, right, top, bottom } = this.#over();
    return event.clientX >= left && event.clientX <= right && event.clientY >= top && event.clientY <= bottom;
  }

  /** @param {number} x */
  #timeAt(x) {
    const { live } = this.figure;
    return live ? live.plot.posToVal(x - this.#plotLeft(), 'x') : 0;
  }

  #middle() {
    const places = [...this.fingers.values()].map((finger) => finger.x);
    return places.reduce((sum, x) => sum + x, 0) / Math.max(1, places.length);
  }

  #spread() {
    const [one, other] = [...this.fingers.values()];
    return one && other ? Math.hypot(one.x - other.x, one.y - other.y) : 0;
  }
}
