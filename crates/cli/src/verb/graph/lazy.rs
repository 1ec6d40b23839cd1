//! `--lazy`: whether the existing image is recent enough.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use graph::picture::options::{ImageFormat, Options};
use graph::plan::TimeRange;

/// The start of a PNG: its signature, and the start of its header.
const PNG: &[u8; 16] = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR";

/// Whether the file at `path` is younger than a column of the image is long. Compat: a PNG must be one, but
/// may have any size; files of other formats are not read.
pub(super) fn is_fresh(path: &Path, options: &Options, range: TimeRange, now: i64) -> bool {
    let Ok(found) = std::fs::metadata(path) else { return false };
    let column = (range.end - range.start) / i64::from(options.width.max(1));
    if now.saturating_sub(found.mtime()) > column {
        return false;
    }
    let mut head = [0; PNG.len()];
    options.format != ImageFormat::Png
        || File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok_and(|()| head == *PNG)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: TimeRange = TimeRange { start: 1000, end: 1400, step: 1 };

    #[test]
    fn an_image_is_fresh_for_the_time_of_a_column() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.png");
        let options = Options { width: 40, ..Options::default() };
        let svg = Options { format: ImageFormat::Svg, ..options.clone() };
        let fresh = |options: &Options, now: i64| is_fresh(&path, options, RANGE, now);
        assert!(!fresh(&options, 0));
        std::fs::write(&path, [PNG, &b"..."[..]].concat()).unwrap();
        let made = std::fs::metadata(&path).unwrap().mtime();
        assert!(fresh(&options, made) && fresh(&options, made + 10));
        assert!(!fresh(&options, made + 11));
        std::fs::write(&path, "").unwrap();
        let made = std::fs::metadata(&path).unwrap().mtime();
        assert!(!fresh(&options, made));
        assert!(fresh(&svg, made));
    }
}
