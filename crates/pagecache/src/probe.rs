//! How fast a disk is: random pages and sequential megabytes per second, as one program sees them.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{Advice, Mode, OFlags};

use crate::kernel::cachestat;
use crate::plan::DiskRates;

/// Bytes of the file that is written and read; large against the caches of small disks, small against a disk.
const FILE_BYTES: u64 = 256 << 20;
/// Bytes written at once.
const BLOCK_BYTES: usize = 1 << 20;
const PAGE_BYTES: usize = 4096;
/// How long pages are read.
const READ_TIME: Duration = Duration::from_secs(3);
/// A prime step through the file's pages: each is read once, and no two that follow each other are neighbours.
const STRIDE: u64 = 40_503;

/// Measures the disk of a directory: writes 256 MiB and syncs them, then reads random pages one by one for up to three seconds. The
/// file has no name and is gone afterwards. `progress` is told the share that is done.
///
/// # Errors
/// When the directory has no room or may not be written to; when its file system keeps all in memory (tmpfs).
pub fn measure(directory: &Path, progress: &mut dyn FnMut(f64)) -> io::Result<DiskRates> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR)?);
    let block: Vec<u8> = (0..BLOCK_BYTES).map(|index| ((index * 31) >> 3) as u8).collect();
    let start = Instant::now();
    let blocks = FILE_BYTES / BLOCK_BYTES as u64;
    for done in 0..blocks {
        file.write_all(&block)?;
        progress(0.5 * done as f64 / blocks as f64);
    }
    rustix::fs::fsync(&file)?;
    let megabytes = FILE_BYTES as f64 / 1e6 / start.elapsed().as_secs_f64();
    rustix::fs::fadvise(&file, 0, None, Advice::Random)?;
    rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)?;
    if cachestat(&file).is_ok_and(|counts| counts.cached > FILE_BYTES / PAGE_BYTES as u64 / 10) {
        return Err(io::Error::other(
            "its file system keeps files in memory: give the figures with --iops and --mbps",
        ));
    }
    let pages = FILE_BYTES / PAGE_BYTES as u64;
    let (start, mut page, mut count) = (Instant::now(), 0u64, 0u64);
    let mut buffer = [0; PAGE_BYTES];
    while start.elapsed() < READ_TIME && count < pages {
        page = (page + STRIDE) % pages;
        file.read_exact_at(&mut buffer, page * PAGE_BYTES as u64)?;
        count += 1;
        if count.is_multiple_of(256) {
            progress(0.5 + 0.5 * (start.elapsed().as_secs_f64() / READ_TIME.as_secs_f64()).min(1.0));
        }
    }
    Ok(DiskRates { iops: count as f64 / start.elapsed().as_secs_f64(), megabytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_has_rates_or_says_why_not() {
        match measure(Path::new(env!("CARGO_MANIFEST_DIR")), &mut |_| {}) {
            Ok(rates) => assert!(rates.iops > 1.0 && rates.megabytes > 1.0, "{rates:?}"),
            Err(error) => testkit::skip(&format!("the disk of the sources cannot be measured: {error}")),
        }
        assert!(measure(Path::new("/none"), &mut |_| {}).is_err());
    }
}
