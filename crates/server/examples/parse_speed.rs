//! What one UPDATE line costs a connection: find the line, take it apart, put it in a chunk, hand that over.
//!
//!     cargo run --release -p roundel-server --example parse_speed
//!
//! Best of five rounds, one thread; best because the machine is shared. On two cores of an AMD EPYC with a load of 8, best of
//! three runs: 50 ns for a relative name and one value, 38 ns with two values, 46 ns for an absolute name, 70 ns for three
//! readings a line. The aim is 120 ns with reading from the socket.

use std::time::Instant;

use protocol::rrdcached::update::plain_update;
use roundel_server::connection::chunk::UpdateChunk;
use store::engine::UpdateBatch;

const LINES: usize = 1_000_000;
const ROUNDS: usize = 5;

fn main() {
    let base = b"/var/lib/rrd/";
    for (what, prefix, values) in [
        ("relative name, 1 value", "", "1700000000:1234.56"),
        ("absolute name, 1 value", "/var/lib/rrd/", "1700000000:1234.56"),
        ("relative name, 2 values", "", "1700000000:1234.56:987654321012"),
        ("relative name, 3 readings", "", "1700000000:12.5 1700000010:13.5 1700000020:14.5"),
    ] {
        let mut text = Vec::new();
        for index in 0..LINES {
            let name = format!("host-{}/cpu-{}/cpu-idle.rrd", index % 512, index % 40);
            text.extend_from_slice(format!("UPDATE {prefix}{name} {values}\n").as_bytes());
        }
        let mut best = f64::MAX;
        for _ in 0..ROUNDS {
            let start = Instant::now();
            let mut chunks = 0;
            parse(&text, base, |batch| chunks += usize::from(!batch.lines.is_empty()));
            let spent = start.elapsed().as_nanos() as f64 / LINES as f64;
            assert!(chunks >= LINES / 1000, "{chunks} chunks");
            best = best.min(spent);
        }
        println!("{what}: {best:.1} ns a line, {:.1} M lines/s", 1000.0 / best);
    }
}

fn parse(mut bytes: &[u8], base: &[u8], mut send: impl FnMut(UpdateBatch)) {
    let mut chunk = UpdateChunk::default();
    while !bytes.is_empty() {
        let (update, used) = plain_update(bytes, base).expect("ordinary lines");
        chunk.push(&update, update.words);
        if chunk.is_full() {
            send(std::mem::take(&mut chunk).into_parts().0);
        }
        bytes = &bytes[used..];
    }
    send(chunk.into_parts().0);
}
