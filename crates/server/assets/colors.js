/** Colours that stay readable: what a graph asks for was chosen for white paper. */

/** @param {string} color `#rrggbb` @returns {[number, number, number]} */
function channels(color) {
  const bits = parseInt(color.slice(1, 7), 16);
  return [(bits >> 16) & 255, (bits >> 8) & 255, bits & 255];
}

/** Relative luminance of sRGB by WCAG 2. @param {number[]} color */
function luminance(color) {
  const [red, green, blue] = color.map((channel) => {
    const part = channel / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** @param {number} one @param {number} other */
function contrast(one, other) {
  return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
}

/** For lines: WCAG 2 asks for 3, which would turn yellow into brown; 2.2 keeps hues apart. */
const LINE_CONTRAST = 2.2;
/** For areas, whose paleness may be meant. */
const AREA_CONTRAST = 1.35;

/**
 * The colour, moved towards white or black until it stands out from the background.
 * @param {string} color `#rrggbb`
 * @param {boolean} dark whether the background is dark
 * @param {number} least contrast ratio
 * @returns {string} `#rrggbb`
 */
function readable(color, dark, least) {
  const ground = dark ? 0.011 : 1;
  let mixed = channels(color);
  const towards = dark ? 255 : 0;
  for (let round = 0; round < 12 && contrast(luminance(mixed), ground) < least; round++) {
    mixed = /** @type {[number, number, number]} */ (mixed.map((channel) => channel + (towards - channel) * 0.14));
  }
  return text(mixed);
}

/** Relative luminance above which an area glares on a dark ground, and how much of the ground is then mixed in. */
const GLARING = 0.55;
const DIMMED = 0.5;

/**
 * The colour of an area: it stands out from the background, and does not glare at night.
 * @param {string} color `#rrggbb`
 * @param {boolean} dark
 * @returns {string} `#rrggbb`
 */
export function areaColor(color, dark) {
  if (!dark || luminance(channels(color)) < GLARING) return readable(color, dark, AREA_CONTRAST);
  return text(channels(color).map((channel) => channel * (1 - DIMMED) + 24 * DIMMED));
}

/** @param {string} color `#rrggbb` @param {boolean} dark @returns {string} `#rrggbb` */
export function lineColor(color, dark) {
  return readable(color, dark, LINE_CONTRAST);
}

/** @param {number[]} mixed */
function text(mixed) {
  return `#${mixed.map((channel) => Math.round(channel).toString(16).padStart(2, '0')).join('')}`;
}

/** @param {string} color `#rrggbb` @param {number} alpha 0 to 1 */
export function withAlpha(color, alpha) {
  return alpha >= 1 ? color : `rgb(${channels(color).join(' ')} / ${alpha})`;
}

const darkScheme = matchMedia('(prefers-color-scheme: dark)');
const printed = matchMedia('print');

/** Whether the background is dark now; paper is white. */
export function isDark() {
  return darkScheme.matches && !printed.matches;
}

/** Calls `work` when the answer of `isDark` or the colours of the page may have changed. @param {() => void} work */
export function onSchemeChange(work) {
  for (const query of [darkScheme, printed, matchMedia('(prefers-contrast: more)'), matchMedia('(forced-colors: active)')]) {
    query.addEventListener('change', work);
  }
}
