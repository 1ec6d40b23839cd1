// Where the tests look. `crates/roundel/tests/page.rs` makes these RRDs; the host's come from its collector.

/** A graph of a day with two lines, a gap and rows of a minute. */
export const GRAPH = process.env.ROUNDEL_PAGE_GRAPH ?? '/rrd/net/switch%20one/eth0';
/** RRDs with names that want to be markup. */
export const HOSTILE = '/tree/hostile/';

/** The page of a node of a cluster, which is another daemon. */
export const CLUSTER = process.env.ROUNDEL_PAGE_CLUSTER ?? '';

/** Every page: its name in pictures, and where it is. */
export const PAGES = {
  home: '/',
  tree: '/tree/',
  directory: '/tree/net/',
  rrd: GRAPH,
  top: '/top?glob=net%2F*%2F*',
  compare: '/compare?glob=net%2F*%2F*&mode=each',
  expression: '/expression',
  search: '/search?q=eth',
  views: '/views',
  status: '/status',
  licenses: '/licenses',
};
