//! The words of an UPDATE.
//!
//! Nearly every line a daemon gets is `UPDATE name time:value...` with nothing to unescape: [`plain_update`] takes it
//! apart in one pass and without a copy (cost: `crates/server/examples/parse_speed.rs`). Any other line goes through
//! [`super::request`], and its words through [`UpdateWords::parse`], which finds what rrdcached refuses.

use super::words::Words;

/// An UPDATE whose name and words can be used as they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainUpdate<'a> {
    /// The name relative to the base directory: components separated by single slashes, none beginning
    /// with a dot, at most 255 bytes in all.
    pub name: &'a [u8],
    /// The words, separated by single spaces. Each begins with a plain number and a colon.
    pub values: &'a [u8],
    /// How many words.
    pub words: u32,
}

/// Takes apart an ordinary UPDATE line; `None` for everything else. `base` is the base directory with a
/// slash at its end.
#[inline]
pub fn plain_update<'a>(line: &'a [u8], base: &[u8]) -> Option<PlainUpdate<'a>> {
    let rest = after_verb(line)?;
    if memchr::memchr2(b'\\', b'\0', rest).is_some() {
        return None;
    }
    let name_end = memchr::memchr(b' ', rest)?;
    plain_parts(&rest[..name_end], &rest[name_end + 1..], base)
}

/// The same for an update whose name and words stand apart; `None` where one of them is unusual.
#[inline]
pub fn plain_update_parts<'a>(name: &'a [u8], values: &'a [u8], base: &[u8]) -> Option<PlainUpdate<'a>> {
    if memchr::memchr(b'\0', name).is_some() || memchr::memchr2(b'\\', b'\0', values).is_some() {
        return None;
    }
    plain_parts(name, values, base)
}

#[inline]
fn plain_parts<'a>(mut name: &'a [u8], values: &'a [u8], base: &[u8]) -> Option<PlainUpdate<'a>> {
    if name.first() == Some(&b'/') {
        name = name.strip_prefix(base)?;
    }
    if !is_plain_name(name) {
        return None;
    }
    Some(PlainUpdate { name, values, words: count_words(values)? })
}

#[inline]
fn after_verb(line: &[u8]) -> Option<&[u8]> {
    let (verb, rest) = line.split_first_chunk::<7>()?;
    // Upper case letters and the space: setting bit 5 folds the case and leaves a space as it is.
    let folded = verb.map(|byte| byte | 0x20);
    (&folded == b"update " && verb[6] == b' ').then_some(rest)
}

#[inline]
fn is_plain_name(name: &[u8]) -> bool {
    if name.is_empty() || name.len() > 255 {
        return false;
    }
    // What stands before the name counts as a slash, so that one rule serves every component: neither a
    // slash nor a dot follows a slash.
    let mut after_slash = true;
    let mut plain = true;
    for &byte in name {
        plain &= !(after_slash & ((byte == b'/') | (byte == b'.')));
        after_slash = byte == b'/';
    }
    plain && !after_slash
}

/// Counts words that begin `digits[.digits]:`; `None` when one does not.
#[inline]
fn count_words(values: &[u8]) -> Option<u32> {
    let mut words = 0;
    let mut rest = values;
    loop {
        let mut time = digits(rest);
        if time > 0 && rest.get(time) == Some(&b'.') {
            time += 1 + digits(&rest[time + 1..]);
        }
        if time == 0 || rest.get(time) != Some(&b':') {
            return None;
        }
        words += 1;
        match memchr::memchr(b' ', &rest[time..]) {
            Some(space) => rest = &rest[time + space + 1..],
            None => return Some(words),
        }
    }
}

#[inline]
fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// The words of an unusual UPDATE, up to the first that rrdcached refuses.
#[derive(Debug, Default)]
pub struct UpdateWords {
    /// The good words, unescaped, separated by single spaces.
    pub values: Vec<u8>,
    /// How many they are.
    pub count: u32,
    /// The time of the last good word, in seconds.
    pub last_time: Option<f64>,
    /// The first bad word; the words after it are not looked at.
    pub bad: Option<BadWord>,
}

/// A word of an UPDATE that cannot be used.
#[derive(Debug, PartialEq)]
pub enum BadWord {
    /// It does not begin with a number and a colon.
    NoTimestamp(Vec<u8>),
    /// Its time, in seconds, is before 1970.
    Negative(f64),
}

impl UpdateWords {
    /// Takes words until one is bad.
    pub fn parse(words: Words<'_>) -> Self {
        let mut update = UpdateWords::default();
        for word in words {
            let time = match rrd::number::parse_prefix(&word) {
                Some((time, rest)) if rest.first() == Some(&b':') && !word.contains(&b' ') => time,
                _ => {
                    update.bad = Some(BadWord::NoTimestamp(word.into_owned()));
                    break;
                }
            };
            // Compat: for RRDtool this is relative to now, for rrdcached it is long ago.
            if word.starts_with(b"-") {
                update.bad = Some(BadWord::Negative(time));
                break;
            }
            if update.count > 0 {
                update.values.push(b' ');
            }
            update.values.extend_from_slice(&word);
            update.count += 1;
            update.last_time = Some(time);
        }
        update
    }
}

impl BadWord {
    /// What rrdcached says of it, given the RRD's last update in seconds.
    pub fn text(&self, last_update: f64) -> Vec<u8> {
        match self {
            BadWord::NoTimestamp(word) => [b"Cannot find timestamp in '", &**word, b"'!"].concat(),
            BadWord::Negative(time) => not_later(*time, last_update).into_bytes(),
        }
    }
}

/// What rrdcached says of a time, in seconds, that is not after the last update.
pub fn not_later(time: f64, last_update: f64) -> String {
    format!(
        "illegal attempt to update using time {time:.6} when last update time is {last_update:.6} (minimum one second step)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &[u8] = b"/var/lib/rrd/";

    #[test]
    fn ordinary_lines_are_taken_apart() {
        let check = |line: &str, name: &str, values: &str, words| {
            let want = PlainUpdate { name: name.as_bytes(), values: values.as_bytes(), words };
            assert_eq!(plain_update(line.as_bytes(), BASE), Some(want), "{line}");
        };
        check("UPDATE a.rrd 1:2", "a.rrd", "1:2", 1);
        check("update a/b.rrd 1:2:3 4:5:6", "a/b.rrd", "1:2:3 4:5:6", 2);
        check("UpDaTe /var/lib/rrd/h/a.rrd 1.5:U", "h/a.rrd", "1.5:U", 1);
        check("UPDATE a..rrd/b. 1:", "a..rrd/b.", "1:", 1);
        check("UPDATE a.rrd 1:2@3", "a.rrd", "1:2@3", 1);
    }

    #[test]
    fn unusual_lines_are_left_alone() {
        let lines: [&[u8]; 22] = [
            b"UPDATE",
            b"UPDATE ",
            b"UPDATE a.rrd",
            b"UPDATE a.rrd ",
            b"UPDATE\0a.rrd 1:2",
            b"UPDATED a.rrd 1:2",
            b"UPDATE  a.rrd 1:2",
            b"UPDATE a.rrd  1:2",
            b"UPDATE a.rrd 1:2 ",
            b"UPDATE a.rrd 1:2 3",
            b"UPDATE a.rrd N:2",
            b"UPDATE a.rrd -1:2",
            b"UPDATE a.rrd 1e9:2",
            b"UPDATE a.rrd 1.2.3:2",
            b"UPDATE a\\ b.rrd 1:2",
            b"UPDATE a.rrd 1:2\0",
            b"UPDATE /etc/a.rrd 1:2",
            b"UPDATE /var/lib/rrd//a.rrd 1:2",
            b"UPDATE a/../b.rrd 1:2",
            b"UPDATE ./b.rrd 1:2",
            b"UPDATE b/ 1:2",
            b"FLUSH a.rrd",
        ];
        for line in lines {
            assert_eq!(plain_update(line, BASE), None, "{:?}", String::from_utf8_lossy(line));
        }
        assert_eq!(plain_update(format!("UPDATE {} 1:2", "x".repeat(256)).as_bytes(), BASE), None);
    }

    #[test]
    fn unusual_words_are_taken_up_to_the_first_bad_one() {
        let check = |line: &str, values: &str, count, bad: Option<&str>| {
            let update = UpdateWords::parse(Words::new(line.as_bytes()));
            let text = update.bad.map(|bad| String::from_utf8(bad.text(7.0)).unwrap());
            assert_eq!((&*update.values, update.count), (values.as_bytes(), count), "{line}");
            assert_eq!(text.as_deref(), bad, "{line}");
        };
        check("1:2 3.5:4", "1:2 3.5:4", 2, None);
        check(r"a\:2 3:4", "", 0, Some("Cannot find timestamp in 'a:2'!"));
        check("1e3:4 N:5 6:7", "1e3:4", 1, Some("Cannot find timestamp in 'N:5'!"));
        check(r"1:2\ 3", "", 0, Some("Cannot find timestamp in '1:2 3'!"));
        check("1:2  3:4", "1:2", 1, Some("Cannot find timestamp in ''!"));
        let negative = "illegal attempt to update using time -5.000000 when last update time is 7.000000 (minimum one second step)";
        check("1:2 -5:1", "1:2", 1, Some(negative));
        check("", "", 0, None);
    }
}
