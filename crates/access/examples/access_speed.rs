//! What it costs to decide whether a name may be written: `cargo run --release -p roundel-access --example access_speed`.

use std::hint::black_box;
use std::time::Instant;

use roundel_access::{Account, Rights, Verb};

fn main() {
    let names: Vec<String> =
        (0..10_000).map(|index| format!("site-{}/host-{index}/cpu-0/cpu-user.rrd", index % 100)).collect();
    for count in [1, 100, 10_000] {
        let write = names.iter().take(count).map(|name| name.replace("cpu-0/cpu-user.rrd", "**")).collect();
        let account = Account { name: "speed".to_string(), write, ..Account::default() };
        let rights = Rights::new(&account).expect("patterns");
        let rounds = 100;
        let begun = Instant::now();
        let mut allowed = 0;
        for _ in 0..rounds {
            allowed +=
                names.iter().filter(|name| black_box(&rights).may(Verb::Write, name.as_bytes())).count();
        }
        let took = begun.elapsed().as_nanos() as f64 / (rounds * names.len()) as f64;
        println!("{count} patterns, {} names allowed: {took:.1} ns a name", allowed / rounds);
    }
}
