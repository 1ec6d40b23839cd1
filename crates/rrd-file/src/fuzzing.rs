//! A function for each decoder, for fuzzers: any bytes may be given, and a panic is a finding.

use std::sync::Arc;

use rrd::time::Timestamp;

use crate::apply::{Loaded, Workspace};
use crate::geometry::Geometries;
use crate::placeholder;

/// Decodes a placeholder; encoding it again must give the same bytes.
pub fn fuzz_placeholder(bytes: &[u8]) {
    if let Ok(Some(found)) = placeholder::decode(bytes) {
        assert!(bytes.starts_with(&placeholder::encode(&found)));
    }
}

/// Applies updates to a `.rrd` file and writes them, as the writers do.
pub fn fuzz_write(bytes: &[u8]) {
    let geometries = Geometries::default();
    let Ok(header) = geometries.read(bytes, bytes.len() as u64, None) else { return };
    // A second read with the known geometry must give the same.
    let again = geometries.read(bytes, bytes.len() as u64, Some(&Arc::clone(&header.geometry)));
    assert!(
        again.is_ok_and(|again| again.words == header.words && again.current_rows == header.current_rows)
    );
    let mut copy = bytes.to_vec();
    let Ok(mut loaded) = Loaded::from_bytes(header, bytes) else { return };
    let fed = loaded.header.geometry.definition.fed_count();
    let values = vec!["7"; fed].join(":");
    let last = loaded.last_update().whole;
    let times = [1, 100, 10_000, 1 << 33].map(|gap| Timestamp::whole(last.saturating_add(gap)));
    let mut work = Workspace::default();
    loaded.apply(times.map(|time| (time, values.as_bytes())), &mut work);
    assert!(loaded.write(&mut work, &mut copy).is_ok(), "all offsets are within the file");
    assert_eq!(copy.len(), bytes.len());
}

#[cfg(test)]
mod tests {
    use testkit::shake;

    use super::*;
    use crate::name::RrdName;
    use crate::placeholder::{Placeholder, RrdNumber, StoreIdentity};

    #[test]
    fn changed_placeholders_are_read_or_refused() {
        let name = RrdName::new(b"a/b.rrd").unwrap();
        for rrd in [None, Some(RrdNumber { shard: 1, id: 9 })] {
            let placeholder = Placeholder { store: StoreIdentity([3; 16]), name: name.clone(), rrd };
            shake(&placeholder::encode(&placeholder), 20_000, fuzz_placeholder);
        }
    }

    #[test]
    fn changed_files_take_updates_or_refuse_them() {
        let mut tool = testkit::RrdTool::start().unwrap();
        let words = "DS:a:GAUGE:600:U:U DS:b:COUNTER:600:U:U RRA:AVERAGE:0.5:1:5 RRA:MAX:0.5:3:4 RRA:HWPREDICT:6:0.1:0.01:4";
        tool.run(&format!("create x.rrd -b 1000000000 -s 60 {words}")).unwrap();
        for minute in 1..12 {
            tool.run(&format!("update x.rrd {}:{minute}:{minute}", 1_000_000_000 + 61 * minute)).unwrap();
        }
        let good = std::fs::read(tool.path("x.rrd")).unwrap();
        shake(&good, 20_000, fuzz_write);
        let head = rrd::codec::file::head_bytes(&good, good.len() as u64).unwrap();
        shake(&good[..head], 30_000, |front| fuzz_write(&[front, &good[head..]].concat()));
    }
}
