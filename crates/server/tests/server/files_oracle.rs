//! The files layout compared with Debian's rrdcached: pending updates, and writing on request.

use super::rrdcached_oracle::Pair;
use crate::common::Roundel;
use roundel_server::service::CreatePolicy;
use testkit::random::Random;

const DAY: &str = "-b 1000000000 -s 10 DS:a:GAUGE:20:0:U RRA:AVERAGE:0.5:1:10 RRA:MAX:0.5:2:10";

fn start() -> Pair {
    Pair::beside(&["-B", "-R"], Roundel::files(CreatePolicy { make_directories: true, ..Default::default() }))
}

#[test]
fn oracle_pending_updates_are_listed() {
    let mut pair = start();
    pair.check(&format!("CREATE x.rrd {DAY}"));
    pair.check(&format!("CREATE d/y.rrd {DAY}"));
    for line in [
        "PENDING x.rrd",
        "UPDATE x.rrd 1000000010:1 1000000020.5:2.50",
        "PENDING x.rrd",
        "PENDING BASE/x.rrd",
        "PENDING d/y.rrd",
        "PENDING none.rrd",
        "PENDING ../x.rrd",
        "PENDING /etc/passwd",
        "UPDATE x.rrd 1000000021:U 1000000031.25:1e3",
        "UPDATE d/y.rrd 1000000031.125:4",
        "PENDING x.rrd",
        "PENDING d/y.rrd",
        "QUEUE",
        "FETCH x.rrd AVERAGE 1000000000 1000000040",
        "FLUSH x.rrd",
        "PENDING x.rrd",
        "PENDING d/y.rrd",
        "QUEUE",
    ] {
        pair.check(line);
    }
    let mut random = Random::new(5);
    let mut time = 1_000_000_100u64;
    for _ in 0..60 {
        time += 1 + random.below(30);
        pair.check(&format!("UPDATE d/y.rrd {time}.{}:{}", 1 + random.below(9), random.below(500)));
        if random.once_in(10) {
            pair.check("FLUSH d/y.rrd");
        }
        pair.check("PENDING d/y.rrd");
    }
}
