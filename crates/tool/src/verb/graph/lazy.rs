//! `--lazy`: whether the picture that is there is new enough.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use graph::picture::options::{ImageFormat, Options};

/// What a PNG begins with: its signature, and that the header comes first.
const PNG: &[u8; 16] = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR";

/// Whether the file is not older than a column of the picture is long. Compat: a PNG must be one, but may be of
/// any size; of other formats nothing is looked at.
pub(super) fn is_fresh(path: &Path, options: &Options, span: (i64, i64), now: i64) -> bool {
    let Ok(found) = std::fs::metadata(path) else { return false };
    let column = (span.1 - span.0) / i64::from(options.width.max(1));
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

    #[test]
    fn a_picture_is_fresh_for_as_long_as_a_column() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.png");
        let options = Options { width: 40, ..Options::default() };
        let svg = Options { format: ImageFormat::Svg, ..options.clone() };
        let fresh = |options: &Options, now: i64| is_fresh(&path, options, (1000, 1400), now);
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
