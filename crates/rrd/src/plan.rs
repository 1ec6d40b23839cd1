//! Fetch planning: which archive answers a fetch, and which of its rows.
