//! One function for each reader of foreign bytes in this crate, for fuzzers: a panic is a finding.

use crate::rrdcached::address::Address;
use crate::rrdcached::client;
use crate::rrdcached::line::{Scan, scan};
use crate::rrdcached::request::{Request, integer, split};
use crate::rrdcached::update::plain_update;
use crate::rrdcached::words::{Words, push_escaped};

/// What a client sends: every line read the fast way and the slow way, which must agree.
pub fn fuzz_requests(bytes: &[u8]) {
    let mut rest = bytes;
    while let Scan::Line { line, used } = scan(rest) {
        assert!(used >= 1 && used <= rest.len());
        rest = &rest[used..];
        fuzz_line(line);
    }
}

fn fuzz_line(line: &[u8]) {
    let words: Vec<_> = Words::new(line).collect();
    let mut escaped = Vec::new();
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            escaped.push(b' ');
        }
        push_escaped(&mut escaped, word);
        let _ = integer(word);
    }
    // A word may hold a NUL only by escaping it, which `push_escaped` leaves to its caller.
    if !words.iter().any(|word| word.contains(&0)) && !escaped.is_empty() {
        assert!(Words::new(&escaped).eq(words.iter().cloned()), "{words:?}");
    }
    let (_, command, arguments) = split(line);
    let request = command.map(|command| Request::parse(command, arguments));
    const BASE: &[u8] = b"/base/";
    if let Some(plain) = plain_update(line, BASE) {
        let Some(Ok(Request::Update(name, words))) = request else {
            panic!("only one way takes it: {line:?}")
        };
        assert_eq!(name.strip_prefix(BASE).unwrap_or(&name), plain.name);
        let joined = words.map(|word| word.into_owned()).collect::<Vec<_>>();
        assert_eq!((joined.len() as u32, joined.join(&b' ')), (plain.words, plain.values.to_vec()));
    }
}

/// What a daemon answers.
pub fn fuzz_answer(bytes: &[u8]) {
    let mut stream = bytes;
    while client::read_answer(&mut stream).is_ok() {}
}

/// An address as given to `-l`.
pub fn fuzz_address(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Address::parse(text);
    }
}

#[cfg(test)]
mod tests {
    use oracle::shake;

    use super::*;

    #[test]
    fn requests_answers_and_addresses() {
        let good = b"UPDATE a/b.rrd 1:2:3 4:5:6\nupdate /base/c.rrd 7:U\r\nFETCH a\\ b.rrd AVERAGE 1 2 x\n\
            CREATE x.rrd -s 10 DS:a:GAUGE:20:U:U RRA:AVERAGE:0.5:1:5\nLIST RECURSIVE /\nFIRST a 0\nDUMP a -h none\n";
        shake(good, 50_000, fuzz_requests);
        shake(b"UPDATE a/b.rrd 1700000000:2.5:U -3:4 5.25:6\n", 50_000, fuzz_requests);
        shake(b"2 lines\na: 1\nb: 2\n0 PONG\n-1 no\n", 20_000, fuzz_answer);
        for good in ["unix:/tmp/x.sock", "[::1]:42217", "localhost:1", "10.0.0.1"] {
            shake(good.as_bytes(), 5_000, fuzz_address);
        }
    }
}
