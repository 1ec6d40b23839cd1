//! How fast an agent's readings get into a store, and how many bytes a value takes on the way.
//!
//!     roundel serve --config roundel.toml      # with [agents] listen = ["127.0.0.1:42219"]
//!     cargo run --release -p roundel-server --example agent_speed -- 127.0.0.1:42219 SPOOL
//!
//! SPOOL is a new directory. 5,000 interfaces with two counters each, 200 minutes. On two cores of an Intel Xeon beside other work, both
//! sides optimized as in tests: 14.5 million values a second into the spool, 2.36 million until the store has them for good, 2.96 bytes each.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use collect::inventory::{Inventory, RrdSpec};
use collect::reading::{Readings, Value};
use roundel_server::agent::feed::SpooledRrds;
use roundel_server::agent::spool::SpoolOptions;
use roundel_server::agent::{AgentLink, AgentSettings};
use rrd::time::Timestamp;
use testkit::random::Random;

const INTERFACES: usize = 5_000;
const MINUTES: i64 = 200;
/// The time of the first readings.
const START: i64 = 1_700_000_000;

fn main() -> Result<(), String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [store, spool] = &words[..] else {
        return Err("give HOST:PORT of a store and a directory".to_string());
    };
    let link = AgentLink::open(AgentSettings {
        name: "speed".to_string(),
        tags: Vec::new(),
        identity: Default::default(),
        store: store.clone(),
        spool: SpoolOptions { directory: spool.into(), bytes_max: 1 << 30, keep: Duration::ZERO },
    })?;
    let mut inventory = Inventory::new(INTERFACES);
    let args = ["DS:in:COUNTER:120:0:U", "DS:out:COUNTER:120:0:U", "RRA:AVERAGE:0.5:1:600"];
    let spec = Arc::new(RrdSpec { step: 60, starts_before: 1, args: args.map(str::to_string).to_vec() });
    let rrds = (0..INTERFACES)
        .map(|number| {
            let name = format!("net/router{}/interface-{}.rrd", number / 50, number % 50);
            inventory.find_or_add(name.as_bytes(), || Arc::clone(&spec))
        })
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| error.to_string())?;
    let mut random = Random::new(1);
    let mut counters = vec![[0_u64; 2]; INTERFACES];
    let (mut readings, mut known) = (Readings::default(), SpooledRrds::default());
    let mut spooling = Duration::ZERO;
    let begin = Instant::now();
    for minute in 1..=MINUTES {
        readings.clear();
        for (rrd, counters) in rrds.iter().zip(&mut counters) {
            for counter in &mut *counters {
                *counter += random.below(1_000_000);
            }
            let time = Timestamp::whole(START + minute * 60);
            readings.push(*rrd, time, counters.map(Value::Unsigned));
        }
        let begin = Instant::now();
        link.feed.take(&inventory, &readings, &mut known);
        link.feed.flush();
        spooling += begin.elapsed();
    }
    while link.feed.waits() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let values = (INTERFACES as i64 * 2 * MINUTES) as f64;
    println!("{:.0} values/s into the spool", values / spooling.as_secs_f64());
    println!("{:.0} values/s until the store has them for good", values / begin.elapsed().as_secs_f64());
    println!("{:.2} bytes a value", link.counts.bytes.load(Ordering::Relaxed) as f64 / values);
    Ok(())
}
