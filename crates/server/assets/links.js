/** A graph as a link: pictures, tables, the expression page, and the command line of `rrdtool graph`. */

/** @typedef {import('./types').Range} Range */

/** @param {string[]} words @param {Range} range @returns {[string, string][]} */
function parameters(words, range) {
  return ['--start', range.start, '--end', range.end, ...words].map((word) => ['arg', word]);
}

/** @param {string} path @param {[string, string][]} pairs */
function url(path, pairs) {
  return `${path}?${new URLSearchParams(pairs)}`;
}

/**
 * What `rrdtool xport` needs for the same columns: each line and area becomes an XPORT.
 * @param {string[]} arg
 */
export function exported(arg) {
  /** @type {string[]} */
  const words = [];
  for (const word of arg) {
    const drawn = /^(?:LINE[\d.]*|AREA|STACK):((?:[^:\\]|\\.)*)(?::((?:[^:\\]|\\.)*))?/.exec(word);
    if (/^C?DEF:/.test(word)) {
      words.push(word);
    } else if (drawn) {
      const name = drawn[1].split('#')[0];
      words.push(drawn[2] ? `XPORT:${name}:${drawn[2]}` : `XPORT:${name}:${name}`);
    }
  }
  return words;
}

/** A picture of the graph. @param {string[]} arg @param {Range} range @param {string} format */
export function picture(arg, range, format) {
  return url('/graph', parameters(['--imgformat', format, '--width', '800', '--height', '300', ...arg], range));
}

/** Its rows as CSV or JSON. @param {string[]} arg @param {Range} range @param {string} format */
export function rows(arg, range, format) {
  const words = exported(arg).map((word) => /** @type {[string, string]} */ (['arg', word]));
  return url('/api/v1/xport', [['start', range.start], ['end', range.end], ['format', format], ...words]);
}

/** The page on which it can be changed. @param {string[]} arg @param {Range} range */
export function expression(arg, range) {
  return url('/expression', [...arg.map((word) => /** @type {[string, string]} */ (['arg', word])), ['start', range.start], ['end', range.end]]);
}

/** The page of an RRD, or of a directory. @param {string} path percent-encoded @param {boolean} directory */
export function page(path, directory = false) {
  // With `.rrd` it would be the file.
  return directory ? `/tree/${path.replace(/\/$/, '')}/` : `/rrd/${path.replace(/\.rrd$/, '')}`;
}

/** A word for a shell. @param {string} word */
function quoted(word) {
  return /^[\w@%+=:,./#-]+$/.test(word) && !word.startsWith('#') ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** The command that draws the same. @param {string[]} arg @param {Range} range */
export function command(arg, range) {
  return ['rrdtool', 'graph', 'graph.svg', '--imgformat', 'SVG', '--start', range.start, '--end', range.end, ...arg].map(quoted).join(' ');
}
