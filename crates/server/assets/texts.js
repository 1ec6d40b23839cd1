/** Every text that the script writes, in one place. Texts of the server's pages are in `crates/server/templates`. */

export const texts = {
  loading: 'Loading',
  noData: 'no data',
  unknown: 'unknown',
  neverRead: 'No reading has ever come.',
  /** @param {string} time */
  noReadingSince: (time) => `No reading has come since ${time}.`,
  /** @param {string} time */
  archiveBegins: (time) => `This archive begins at ${time}.`,
  /** @param {number | null} minimum @param {number | null} maximum */
  limits: (minimum, maximum) => {
    if (maximum === null) return `below ${minimum}`;
    return minimum === null ? `above ${maximum}` : `outside ${minimum} to ${maximum}`;
  },
  /** @param {string} heartbeat @param {string | null} limits */
  notRead: (heartbeat, limits) => `No reading came for more than ${heartbeat}${limits ? `, or its values were ${limits}` : ''}.`,
  failed: 'This graph cannot be drawn.',
  offline: 'The server does not answer. Trying again.',
  tryAgain: 'Try again',
  /** @param {number} count */
  showAll: (count) => `Show all ${count} lines`,

  live: 'Live',
  liveHint: 'New rows appear as they come. Click to stop.',
  paused: 'Paused',
  pausedHint: 'Stopped. Click to go on.',
  waiting: 'Held',
  waitingHint: 'New rows wait while the pointer is on a graph or values are pinned.',
  fixed: 'Fixed',
  fixedHint: 'The range ends in the past. Click to end it now.',
  lost: 'No answer',
  lostHint: 'The server does not answer. The page goes on trying.',

  back: 'Back',
  earlier: 'Earlier',
  later: 'Later',
  zoomOut: 'Zoom out',
  logarithmic: 'Logarithmic',
  stacked: 'Stacked',
  percentile: '95th percentile',
  before: 'Overlay',
  beforeNone: 'nothing',
  /** @type {Record<string, string>} */
  beforeNames: { day: 'day before', week: 'week before', month: '4 weeks before', year: '52 weeks before' },
  zone: 'Times',
  zoneBrowser: 'browser',
  zoneServer: 'server',
  zoneUtc: 'UTC',
  switches: 'How graphs are drawn',

  legend: { name: 'Line', at: 'At cursor', last: 'Now', average: 'Avg', minimum: 'Min', maximum: 'Max', percentile: '95th', total: 'Total' },
  legendHint: 'Click: only this line. Ctrl and click: hide or show it.',
  unnamed: 'line',
  /** @param {string} row @param {string | null} point */
  source: (row, point) => (point ? `rows of ${row}, ${point} a point` : `rows of ${row}`),
  /** @param {string} title @param {string} from @param {string} to */
  chartName: (title, from, to) => `${title}, from ${from} to ${to}`,
  chartRole: 'chart',
  pinned: 'Pinned',
  pin: 'Click to pin',
  copy: 'Copy',
  copied: 'Copied',
  /** @param {number} count */
  moreLines: (count) => `${count} more`,

  table: 'Values as a table',
  tableTime: 'Time',
  tablePrevious: 'Earlier rows',
  tableNext: 'Later rows',
  /** @param {number} from @param {number} to @param {number} all */
  tablePage: (from, to, all) => `Rows ${from} to ${to} of ${all}`,

  links: 'Save, link',
  linkExpression: 'Edit as expression',
  linkCommand: 'Command line',
  linkCopy: 'Copy link',
  viewAdd: 'Add to the view',
  viewName: 'A name of letters, digits, - and _; a new one makes a view',
  viewRange: 'with this range',
  viewAdded: 'Add',

  /** @param {number} count */
  found: (count) => (count === 1 ? '1 found' : `${count} found`),
  nothingFound: 'Nothing found',
  suggestions: 'Suggestions',
  /** @param {number} count */
  entries: (count) => (count === 1 ? '1 RRD' : `${count} RRDs`),

  /** @param {number} count */
  picked: (count) => (count === 1 ? '1 RRD ticked' : `${count} RRDs ticked`),
  compare: 'Compare',
  clear: 'Clear',
  more: 'More',

  /** @param {number} line @param {string} text */
  errorAt: (line, text) => `Line ${line}: ${text}`,
  completions: 'Names',
  preview: 'Preview',

  keys: 'Keys',
  close: 'Close',
  /** @type {[string, string][]} */
  keyList: [
    ['/', 'search'],
    ['t', 'type a range'],
    ['j, k', 'next graph, previous graph'],
    ['Left, Right', 'move the data cursor of the graph; with Shift ten rows; Home and End'],
    ['Enter', 'pin the values under the cursor'],
    ['+, −', 'zoom in at the cursor, zoom out'],
    ['[, ]', 'earlier, later'],
    ['Backspace', 'back to the range before'],
    ['l, s, p', 'logarithmic, stacked, 95th percentile'],
    ['Space', 'stop and start live rows'],
    ['v', 'values as a table'],
    ['Esc', 'unpin, close'],
    ['?', 'this list'],
  ],
  mouseList: /** @type {[string, string][]} */ ([
    ['Drag', 'zoom; finer rows are fetched'],
    ['Double click', 'back'],
    ['Ctrl and wheel, pinch', 'zoom at the pointer'],
    ['Shift and wheel, Shift and drag', 'earlier, later'],
    ['Click', 'pin the values, click again to unpin'],
    ['Click a line’s name', 'only this line; with Ctrl hide or show it'],
  ]),
};
