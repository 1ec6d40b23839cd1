/** Requests to `/api/v1`. An error of the server is an `ApiError` with the server's own text. */

export class ApiError extends Error {
  /** @param {string} text @param {number} status */
  constructor(text, status) {
    super(text);
    this.status = status;
  }
}

/**
 * @param {string} path
 * @param {RequestInit} [init]
 * @returns {Promise<any>}
 */
async function json(path, init) {
  const response = await fetch(path, init);
  const text = await response.text();
  let answer;
  try {
    answer = JSON.parse(text);
  } catch {
    throw new ApiError(text.trim() || response.statusText, response.status);
  }
  if (!response.ok) throw new ApiError(answer.error ?? response.statusText, response.status);
  return answer;
}

/**
 * Many charts in one request.
 * @param {import('./types').ChartsRequest} request
 * @param {AbortSignal} [signal]
 * @returns {Promise<import('./types').ChartsAnswer>}
 */
export function charts(request, signal) {
  const body = JSON.stringify(request);
  return json('/api/v1/charts', { method: 'POST', headers: { 'content-type': 'application/json' }, body, signal });
}

/**
 * RRDs and directories whose names or titles match.
 * @param {string} text
 * @param {number} limit
 * @param {AbortSignal} [signal]
 * @returns {Promise<{items: import('./types').SearchItem[], total: number, more: boolean}>}
 */
export function search(text, limit, signal) {
  return json(`/api/v1/search?${new URLSearchParams({ q: text, limit: String(limit) })}`, { signal });
}

/**
 * What is in a directory, by its path.
 * @param {string} path percent-encoded; empty is the base
 * @param {number} limit
 * @returns {Promise<{items: import('./types').SearchItem[]}>}
 */
export function tree(path, limit) {
  return json(`/api/v1/tree${path === '' ? '' : `/${path}`}?limit=${limit}`);
}

/** The state of the daemon. @returns {Promise<any>} */
export function status() {
  return json('/api/v1/status');
}

/** The nodes and partitions of the cluster. @returns {Promise<any>} */
export function cluster() {
  return json('/api/v1/cluster');
}

/** What `rrdtool info` says of an RRD, by its path with `.rrd`. @param {string} path @returns {Promise<Record<string, unknown>>} */
export function info(path) {
  return json(`/api/v1/info/${path}`);
}
