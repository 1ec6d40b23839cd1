//! What `graphv` tells about a picture: its keys in RRDtool's order.

use rrd::info::InfoItem;

/// The keys of `graphv` in order; the image itself comes behind them.
pub type Report = Vec<InfoItem>;
