/** Shapes shared by the modules of the page: what `/api/v1` answers (see its OpenAPI description), and what the page keeps. */

/** A row value; null is unknown. */
export type Value = number | null;

/** One column of rows: value `i` covers `step` seconds and ends at `start + i * step`. */
export interface Series {
  name: string;
  /** Seconds since the epoch at which the first row ends. */
  start: number;
  step: number;
  values: Value[];
}

export interface Element {
  kind: 'line' | 'area' | 'tick' | 'hrule' | 'vrule';
  /** Which of the chart's series is drawn; null when `value` is. */
  series: number | null;
  value: number | null;
  label: string;
  /** `#rrggbb`; null is invisible, which still counts for stacking. */
  color: string | null;
  alpha: number;
  width: number;
  stack: boolean;
  dashes: number[] | null;
}

/** What the legend shows of a series: the numbers of RRDtool's PRINT. */
export interface Numbers {
  series: number;
  last: Value;
  average: Value;
  minimum: Value;
  maximum: Value;
  percentile: Value;
  total: Value;
}

export interface Origin {
  series: number;
  rrd: string;
  path: string;
  ds: string;
  cf: string;
  /** Length of the archive's rows, before the answer was reduced to the width asked for. */
  row_seconds: number;
  /** Seconds since the epoch; null: never. */
  last_update: number | null;
  /** Where the archive begins, in seconds since the epoch. */
  oldest: number | null;
  heartbeat: number | null;
  minimum: number | null;
  maximum: number | null;
}

export interface Chart {
  start: number;
  end: number;
  step: number;
  newest: number | null;
  title: string | null;
  unit: string | null;
  base: 1000 | 1024;
  lower: number | null;
  upper: number | null;
  rigid: boolean;
  logarithmic: boolean;
  series: Series[];
  elements: Element[];
  numbers: Numbers[];
  texts: string[];
  sources: Origin[];
}

/** One answer of `POST /api/v1/charts`. */
export type ChartAnswer =
  | Chart
  | { unchanged: true; newest: number | null }
  | { error: string };

export interface ChartsRequest {
  start: string | number;
  end: string | number;
  width: number;
  charts: { arg: string[]; since?: number | null }[];
}

export interface ChartsAnswer {
  now: number;
  charts: ChartAnswer[];
}

/** What a `figure.graph` carries in `data-graph`. */
export interface Graph {
  arg: string[];
  title?: string | null;
  unit?: string | null;
}

export interface SearchItem {
  name: string;
  path: string;
  directory: boolean;
  title: string | null;
  count?: number;
}

/** A range in RRDtool's words or in seconds, as it stands in the URL. */
export interface Range {
  start: string;
  end: string;
}

/** The switches above the graphs. */
export interface Options {
  logarithmic: boolean;
  stacked: boolean;
  percentile: boolean;
  /** Which earlier period is drawn below the graphs: `day`, `week`, `month`, `year`, or nothing. */
  before: string;
  /** Whose times are shown: `browser`, `server` or `utc`. */
  zone: string;
}

/** Columns over the same times, ready to draw: row `i` covers the time from `times[i - 1]` to `times[i]`. */
export interface Grid {
  times: number[];
  columns: Value[][];
}
