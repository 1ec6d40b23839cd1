//! Thousands of number texts, plain and odd, read by Debian's rrdtool and by us; every bit is compared.
//!
//! A GAUGE with a step of one second keeps its reading: the row is the number itself.

#![allow(clippy::unwrap_used, reason = "tests")]

use roundel_rrd::codec::file;
use roundel_rrd::number;
use testkit::RrdTool;
use testkit::random::Random;

const TEXTS: usize = 12_000;
const ROWS: usize = 500;
const START: usize = 1_000_000_000;

fn text(random: &mut Random) -> String {
    let digits = |random: &mut Random, most: u64| -> String {
        (0..random.below(most + 1)).map(|_| char::from(b'0' + random.below(10) as u8)).collect()
    };
    let mut text = random.pick(&["", "", "", "-", "+", "\t"]).to_string();
    match random.below(12) {
        0 => text += random.pick(&["nan", "inf", "INFINITY", "NaNs", "U", "0x1f", "1e", "1e+", ".", "e1"]),
        1..4 => text += &format!("{}.{:02}", random.below(1000), random.below(100)),
        4 => text += &format!("{:e}", f64::from_bits(random.next())),
        5 => text += &format!("{}", f64::from_bits(random.next())),
        _ => {
            let most = if random.once_in(4) { 40 } else { 18 };
            text += &digits(random, most);
            if random.once_in(2) {
                text.push('.');
                let most = if random.once_in(4) { 40 } else { 9 };
                text += &digits(random, most);
            }
            if random.once_in(3) {
                let exponent = if random.once_in(4) { random.below(1300) } else { random.below(30) };
                text += &format!("{}{}{exponent}", random.pick(&["e", "E"]), random.pick(&["", "+", "-"]));
            }
        }
    }
    if random.once_in(40) {
        text += random.pick(&["x", " ", "e", "-", "."]);
    }
    text
}

#[test]
fn numbers_are_read_as_rrdtool_does() {
    let mut tool = RrdTool::start().unwrap();
    let mut random = Random::new(7);
    for batch in 0..TEXTS / ROWS {
        let file = format!("n{batch}.rrd");
        tool.run(&format!("create {file} --start {START} --step 1 DS:a:GAUGE:9:U:U RRA:LAST:0:1:{ROWS}"))
            .unwrap();
        let mut taken = Vec::new();
        while taken.len() < ROWS {
            let text = text(&mut random);
            let theirs = tool.run(&format!("update {file} \"{}:{text}\"", START + taken.len() + 1));
            // A text that starts with U is unknown and is not read as a number.
            let ours = if text.starts_with('U') { Ok(f64::NAN) } else { number::parse(text.as_bytes()) };
            assert_eq!(theirs.is_ok(), ours.is_ok(), "{text:?}: rrdtool {theirs:?}, we {ours:?}");
            if let Ok(value) = ours {
                taken.push((text, value));
            }
        }
        let parts = file::decode(&std::fs::read(tool.path(&file)).unwrap()).unwrap();
        for ((text, ours), theirs) in taken.iter().zip(&parts.rrd.archives[0]) {
            // The row is 0 plus the number (or plus the zero of an earlier reading), so zeros lose their sign.
            let same = ours == theirs || (ours.is_nan() && theirs.is_nan());
            assert!(same, "{text:?}: rrdtool {theirs:e}, we {ours:e}");
        }
    }
}
