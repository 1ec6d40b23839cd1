//! What a written file says: nothing new, one more reading, or another RRD.
//!
//! A program with RRDtool's library changes a file in place. Where what it wrote is what one update does, the store is given
//! that update, which costs little and is in its log what it was. Anything else replaces the RRD as a whole.

use rrd::codec::file::{decode, encode};
use rrd::definition::DsKind;
use rrd::reading::parse_argument;
use rrd::time::Timestamp;
use rrd_file::apply::{Loaded, Workspace};
use rrd_file::geometry::{FileHeader, Geometries};

/// What a file that was changed says of its RRD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// What it said before.
    Same,
    /// One more reading: `time:value[:value...]`.
    Update(Vec<u8>),
    /// Something else.
    Whole,
    /// It is no RRD.
    Nonsense,
}

/// What a file says of which the bytes were `before` and are `after` now.
pub fn meaning(before: &[u8], after: &[u8]) -> Meaning {
    if before == after {
        return Meaning::Same;
    }
    let Some(said) = normal(after) else { return Meaning::Nonsense };
    if normal(before).as_ref() == Some(&said) {
        return Meaning::Same;
    }
    match reading(before, after) {
        Some((reading, updated)) if updated == after || normal(&updated).as_ref() == Some(&said) => {
            Meaning::Update(reading)
        }
        _ => Meaning::Whole,
    }
}

/// The last update of the RRD in a file: seconds since 1970, and microseconds; `None` = it is no RRD.
pub fn last_update(file: &[u8]) -> Option<(i64, u32)> {
    let header = header(file)?;
    let time = time_of(&header).in_seconds(header.geometry.definition.units_per_second);
    Some((time.whole, time.micros))
}

/// Whether it is the file of an RRD.
pub fn is_rrd(file: &[u8]) -> bool {
    decode(file).is_ok()
}

/// The bytes of the same RRD where each archive begins with its newest row: where it begins means nothing.
fn normal(file: &[u8]) -> Option<Vec<u8>> {
    let parts = decode(file).ok()?;
    encode(&parts.rrd, &vec![0; parts.current_rows.len()]).ok()
}

fn header(file: &[u8]) -> Option<FileHeader> {
    Geometries::new(1).read(file, file.len() as u64, None).ok()
}

fn time_of(header: &FileHeader) -> Timestamp {
    header.geometry.shape.split(&header.words).last_update.to_owned()
}

/// The reading that a file says was the last, and the file `before` updated by it.
fn reading(before: &[u8], after: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let (old, new) = (header(before)?, header(after)?);
    let definition = &new.geometry.definition;
    let time = time_of(&new);
    // What stands before the live part is the definition. As bytes: unknown limits are NaN, which equals nothing.
    let defined_by = new.geometry.layout.live_head;
    if before.get(..defined_by) != after.get(..defined_by) || time <= time_of(&old) {
        return None;
    }
    let seconds = time.in_seconds(definition.units_per_second);
    let mut text = match seconds.micros {
        0 => seconds.whole.to_string(),
        micros => format!("{}.{micros:06}", seconds.whole),
    }
    .into_bytes();
    let values_at = text.len() + 1;
    let head = new.geometry.shape.split(&new.words);
    for (source, pdp) in definition.ds.iter().zip(head.pdp) {
        if matches!(source.kind, DsKind::Fed { .. }) {
            text.push(b':');
            text.extend_from_slice(pdp.last_ds.as_bytes());
        }
    }
    // The daemon reads the text as this does.
    let mut values = Vec::new();
    let read = parse_argument(&text, seconds, definition, None, &|_| Err(String::new()), &mut values).ok()?;
    if read.time != time || text.contains(&b' ') {
        return None;
    }
    let mut loaded = Loaded::from_bytes(old, before).ok()?;
    let mut work = Workspace::default();
    let outcome = loaded.apply([(time, &text[values_at..])], &mut work);
    let mut updated = before.to_vec();
    loaded.write(&mut work, &mut updated).ok()?;
    (outcome.applied == 1).then_some((text, updated))
}

#[cfg(test)]
mod tests {
    use testkit::RrdTool;

    use super::*;

    const CREATE: &str = "create a.rrd -b 1000000000 -s 10 DS:x:GAUGE:30:U:U DS:y:COUNTER:30:0:U DS:z:COMPUTE:x,y,+ \
        RRA:AVERAGE:0.5:1:20 RRA:MAX:0.5:3:9 RRA:HWPREDICT:30:0.1:0.0035:6";

    fn check(commands: &[&str], want: impl Fn(&Meaning) -> bool) {
        let mut tool = RrdTool::start().unwrap();
        tool.run(CREATE).unwrap();
        tool.run("update a.rrd 1000000010:1:10 1000000025:2:30").unwrap();
        let before = std::fs::read(tool.path("a.rrd")).unwrap();
        for command in commands {
            tool.run(command).unwrap();
        }
        let after = std::fs::read(tool.path("a.rrd")).unwrap();
        let got = meaning(&before, &after);
        assert!(want(&got), "{commands:?}: {got:?}");
        // Where the rings begin means nothing.
        let got = meaning(&normal(&before).unwrap(), &after);
        assert!(want(&got), "{commands:?}, exported: {got:?}");
    }

    #[test]
    fn one_update_of_rrdtool_is_one_reading() {
        for (words, reading) in [
            ("1000000037:2.5:40", "1000000037:2.5:40"),
            ("1000000037:U:40", "1000000037:U:40"),
            // Rows that were never written in between, and all of them.
            ("1000000131:7:90", "1000000131:7:90"),
            ("1000009999:7:90", "1000009999:7:90"),
            ("1000000037.25:1e3:U", "1000000037.250000:1e3:U"),
        ] {
            let want = Meaning::Update(reading.as_bytes().to_vec());
            check(&[&format!("update a.rrd {words}")], |got| *got == want);
        }
    }

    #[test]
    fn anything_else_is_another_rrd() {
        for commands in [
            &["update a.rrd 1000000037:2:40 1000000041:3:50"][..],
            &["tune a.rrd --heartbeat x:60"],
            &["tune a.rrd --heartbeat x:60", "update a.rrd 1000000037:2:40"],
        ] {
            check(commands, |got| *got == Meaning::Whole);
        }
        check(&[], |got| *got == Meaning::Same);
    }

    #[test]
    fn what_is_no_rrd_is_told() {
        let mut tool = RrdTool::start().unwrap();
        tool.run(CREATE).unwrap();
        let file = std::fs::read(tool.path("a.rrd")).unwrap();
        assert_eq!(meaning(&file, &file[..file.len() - 8]), Meaning::Nonsense);
        assert_eq!(meaning(&file, b""), Meaning::Nonsense);
        assert_eq!(meaning(b"", &file), Meaning::Whole);
        assert!(is_rrd(&file) && !is_rrd(&file[..100]));
        assert_eq!((last_update(&file), last_update(b"RRD")), (Some((1_000_000_000, 0)), None));
    }
}
