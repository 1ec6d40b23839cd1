/** One cursor for all graphs of the page: the pointer on one of them, or the arrow keys, show the same time on all. */

/** @typedef {import('./figure.js').Figure} Figure */

/** Tells with `busy` that someone began or stopped looking at values. */
export class SharedCursor extends EventTarget {
  constructor() {
    super();
    /** @type {Set<Figure>} */
    this.figures = new Set();
    /** @type {Figure | null} */
    this.source = null;
    this.pinned = false;
    this.frame = 0;
  }

  /** Whether someone looks at values, so that nothing may move under them. */
  get busy() {
    return this.source !== null;
  }

  /** The cursor of a figure moved; all follow in the next frame. @param {Figure} figure */
  moved(figure) {
    if (this.pinned) return;
    this.source = figure.live?.cursorIndex === null ? null : figure;
    this.schedule(figure);
  }

  /** @param {Figure | null} [leader] */
  schedule(leader = this.source) {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      const time = this.source?.live?.cursorTime ?? null;
      for (const figure of this.figures) {
        if (figure !== this.source && figure !== leader) figure.live?.putCursor(time);
        figure.showCursor(figure === this.source, this.pinned);
      }
      this.dispatchEvent(new Event('busy'));
    });
  }

  /** Keeps the values where they are, or lets them go. @param {Figure} figure */
  togglePin(figure) {
    if (this.pinned) {
      this.release();
    } else if (figure.live?.cursorIndex !== null) {
      this.source = figure;
      this.pinned = true;
      this.schedule();
    }
  }

  /** Lets pinned values go, and takes the cursor away. */
  release() {
    const had = this.source !== null;
    this.pinned = false;
    this.source = null;
    if (!had) return false;
    for (const figure of this.figures) figure.live?.putCursor(null);
    this.schedule(null);
    return true;
  }
}
