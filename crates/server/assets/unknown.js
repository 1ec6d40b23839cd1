/** Why a row is unknown, as far as that can be told from the data source that it comes from. */

import { dateTime, duration } from './format.js';
import { texts } from './texts.js';

/**
 * @param {import('./types').Chart} chart
 * @param {number} series which of the chart's
 * @param {number} time at which the row ends
 * @param {string | null} zone
 * @returns {string | null} null when nothing is known of it
 */
export function reason(chart, series, time, zone) {
  const sources = chart.sources.filter((one) => one.series === series);
  for (const { last_update: last, oldest } of sources) {
    if (last === null) return texts.neverRead;
    if (time > last) return texts.noReadingSince(dateTime(last, 1, zone));
    if (oldest !== null && time <= oldest) return texts.archiveBegins(dateTime(oldest, 60, zone));
  }
  const source = sources.find((one) => one.heartbeat !== null);
  if (!source || source.heartbeat === null) return null;
  const { minimum, maximum } = source;
  const limits = minimum === null && maximum === null ? null : texts.limits(minimum, maximum);
  return texts.notRead(duration(source.heartbeat), limits);
}
