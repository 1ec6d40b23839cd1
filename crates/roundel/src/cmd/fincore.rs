//! `roundel fincore`: which pages of files are in the page cache.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{BufRead, BufWriter, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use graph::picture::options::ImageFormat;
use indicatif::{ProgressBar, ProgressStyle};
use pagecache::chart::Shade;
use pagecache::incore::{FilePages, Question, Share, look};
use pagecache::kernel::page_bytes;
use pagecache::map::PageMap;
use pagecache::names::Files;
use pagecache::parts::{HeaderReader, Part, Parts};
use render::{Fonts, RenderCache};
use serde_json::{Value, json};

use super::Result;
use super::import::Failures;

/// Why files are left out of sums.
pub(super) const NOT_TOLD: &str =
    "the kernel tells what is in memory only of files that you own or may write to; run this as root";
/// Letters of a map in text.
const LETTERS: [(char, char); 4] = [('H', 'h'), ('A', 'a'), ('R', 'r'), ('#', '.')];
/// Files from which on a progress bar is worth its line.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

const AFTER_HELP: &str = "\
What is shown of each file: pages in the page cache, of how many, and how many of those are changed and not yet written
(Linux 6.5 and newer). With --parts, of .rrd files:
  header   what every update reads and writes
  active   the pages with the newest row of each archive, to which the next update writes
  archive  all other pages of archives: an update needs none of them, so that in memory they are wasted
  other    of files that are no .rrd files
With --map, a letter per page, large if it is in the page cache: H header, A active, R archive; # and . for other files.

Nothing is changed: files are mapped and not read, and a header that had to be read is dropped again. The kernel answers
only for files that you own or may write to: others are 'unknown' (null in JSON) and in no sum; run it as root for them. A file
with several names (hard links) counts once.

Examples:
  roundel fincore /var/lib/mrtg --summary          how much of a tree is in memory
  roundel fincore --parts router1.rrd              and which part of the file it is
  roundel fincore /var/lib/mrtg --png cache.png    the same as a picture: a row per file, a cell per page
  find /srv -name '*.rrd' -print0 | roundel fincore --stdin --null --json

The page docs/capacity.md says how many pages there should be.";

/// Options of `fincore`.
#[derive(Debug, Args)]
#[command(about = "Show which pages of files are in the page cache", after_long_help = AFTER_HELP)]
pub struct Arguments {
    #[command(flatten)]
    files: FileArguments,
    /// Only the sums
    #[arg(long, conflicts_with = "map")]
    summary: bool,
    /// Of .rrd files, what the pages are
    #[arg(long)]
    parts: bool,
    /// A letter for each page of each file
    #[arg(long)]
    map: bool,
    /// Draw a map of all files
    #[arg(long, value_name = "FILE")]
    png: Option<PathBuf>,
    /// Draw it on a dark ground
    #[arg(long, requires = "png")]
    dark: bool,
    /// Print one JSON object a line: for each file, and at the end the sums
    #[arg(long)]
    json: bool,
}

/// Which files are meant.
#[derive(Debug, Args)]
pub struct FileArguments {
    /// Files, and directories with all files below
    #[arg(required_unless_present = "stdin")]
    paths: Vec<PathBuf>,
    /// Read names from standard input, one a line
    #[arg(long, conflicts_with = "paths")]
    stdin: bool,
    /// Names on standard input end with a zero byte and not a line: find -print0
    #[arg(long, short = '0', requires = "stdin")]
    null: bool,
    /// Below directories, only files whose names end in .rrd
    #[arg(long)]
    rrd: bool,
}

impl FileArguments {
    /// The files.
    pub(super) fn found(&self) -> Files<Box<dyn Iterator<Item = PathBuf> + '_>> {
        Files::new(self.names(), self.rrd.then_some("rrd"))
    }

    fn names(&self) -> Box<dyn Iterator<Item = PathBuf> + '_> {
        if !self.stdin {
            return Box::new(self.paths.iter().cloned());
        }
        let lines = std::io::stdin()
            .lock()
            .split(if self.null { 0 } else { b'\n' })
            .map_while(std::result::Result::ok);
        let path = |line: Vec<u8>| (!line.is_empty()).then(|| PathBuf::from(OsString::from_vec(line)));
        Box::new(lines.filter_map(path))
    }
}

/// The sums over all files.
#[derive(Default)]
struct Totals {
    files: u64,
    bytes: u64,
    share: Share,
    dirty: u64,
    by_part: [Share; 4],
    /// Files of others, which are in no other sum.
    unknown: u64,
    /// Files seen that have other names, too, and how often they came again.
    links: HashSet<(u64, u64)>,
    again: u64,
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Result {
    arguments.check_picture()?;
    let wants_parts = arguments.parts || arguments.map || arguments.png.is_some();
    let question = Question { parts: wants_parts, pages: arguments.map || arguments.png.is_some() };
    let mut out = BufWriter::new(std::io::stdout().lock());
    let (mut headers, mut totals, mut failures) =
        (HeaderReader::default(), Totals::default(), Failures::default());
    let mut map = arguments.png.as_ref().map(|_| PageMap::new());
    let bar = bar();
    for found in arguments.files.found() {
        let path = match found {
            Ok(path) => path,
            Err(unreadable) => {
                failures.push(unreadable.to_string());
                continue;
            }
        };
        bar.inc(1);
        let pages = match look(&path, question, &mut headers) {
            Ok(pages) => pages,
            Err(error) => {
                failures.push(format!("cannot look at \"{}\": {error}", path.display()));
                continue;
            }
        };
        if totals.is_again(&pages) {
            continue;
        }
        totals.add(&pages);
        if let Some(map) = map.as_mut().filter(|_| pages.is_known) {
            map.add(&pages);
        }
        if !arguments.summary {
            let text = if arguments.json {
                file_json(&path, &pages) + "\n"
            } else {
                file_text(&path, &pages, arguments)
            };
            if !written(out.write_all(text.as_bytes()))? {
                return Ok(());
            }
        }
    }
    bar.finish_and_clear();
    let text =
        if arguments.json { totals.json(wants_parts).to_string() + "\n" } else { totals.text(wants_parts) };
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))?;
    if let (Some(path), Some(map)) = (&arguments.png, map) {
        draw(path, &map, if arguments.dark { Shade::Dark } else { Shade::Light })?;
    }
    failures.report()
}

impl Arguments {
    fn check_picture(&self) -> Result {
        let is_png = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "png");
        match &self.png {
            Some(path) if !is_png(path) => {
                Err(format!("cannot draw \"{}\": give it a name that ends in .png", path.display()))
            }
            _ => Ok(()),
        }
    }
}

/// False when the reader has gone away, as `head` does.
fn written(result: std::io::Result<()>) -> Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(format!("cannot write the answer: {error}")),
    }
}

/// A bar that counts files, if there is a terminal; how many there will be is not known before.
pub(super) fn bar() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {pos} files, {per_sec}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(PROGRESS_INTERVAL);
    bar
}

fn draw(path: &Path, map: &PageMap, shade: Shade) -> Result {
    let scene = map.draw(shade, &Fonts::new());
    let image = render::image(&scene, ImageFormat::Png, &mut RenderCache::default())
        .map_err(|error| format!("cannot draw \"{}\": {error}", path.display()))?;
    std::fs::write(path, image).map_err(|error| format!("cannot write \"{}\": {error}", path.display()))
}

fn file_text(path: &Path, file: &FilePages, arguments: &Arguments) -> String {
    if !file.is_known {
        return format!("{}: unknown of {} pages\n", path.display(), file.share.pages);
    }
    let mut text = format!("{}: {} of {} pages", path.display(), file.share.cached, file.share.pages);
    match file.dirty {
        Some(dirty) if dirty > 0 => text += &format!(", {dirty} not yet written"),
        _ => {}
    }
    text.push('\n');
    if let Some(parts) = file.parts.as_ref().filter(|_| arguments.parts) {
        text += &parts_text(file, parts);
    }
    if arguments.map {
        text += &format!("  {}\n", letters(file));
    }
    text
}

fn parts_text(file: &FilePages, parts: &Parts) -> String {
    let header = file.by_part[Part::Header as usize];
    let mut text = format!("  header      {} of {}\n", header.cached, header.pages);
    for archive in 0..parts.archive_count() {
        let (from, to) = parts.archive_pages(archive);
        let active = parts.active_page(archive);
        let end = parts.active_end(archive);
        let state = if file.cached_in(active, end) == end - active { "cached" } else { "not cached" };
        let cached = file.cached_in(from, to);
        let name = parts.archive_name(archive);
        text += &format!("  {name:<11} {cached} of {}, newest row's page {active} {state}\n", to - from);
    }
    text
}

/// A letter per page; the pages of a file that is no .rrd file are all other pages.
fn letters(file: &FilePages) -> String {
    let mut ranges = file.ranges.iter().copied().peekable();
    let letter = |page: u64| {
        while ranges.next_if(|range| range.1 <= page).is_some() {}
        let cached = ranges.peek().is_some_and(|range| range.0 <= page);
        let part = file.parts.as_ref().map_or(Part::Other, |parts| parts.of(page));
        let (large, small) = LETTERS[part as usize];
        if cached { large } else { small }
    };
    (0..file.share.pages).map(letter).collect()
}

fn share_json(share: Share) -> Value {
    json!({"cached": share.cached, "pages": share.pages})
}

fn by_part_json(by_part: &[Share; 4]) -> Value {
    Part::ALL.iter().zip(by_part).map(|(part, share)| (part.name().to_string(), share_json(*share))).collect()
}

fn file_json(path: &Path, file: &FilePages) -> String {
    let mut object = json!({
        "file": path.to_string_lossy(), "bytes": file.bytes, "cached": file.is_known.then_some(file.share.cached), "pages": file.share.pages,
        "dirty": file.dirty,
    });
    if let Some(parts) = &file.parts {
        let archive = |archive| {
            let (from, to) = parts.archive_pages(archive);
            let (active, end) = (parts.active_page(archive), parts.active_end(archive));
            json!({
                "archive": parts.archive_name(archive), "pages": to - from, "cached": file.cached_in(from, to),
                "active_page": active, "active_cached": file.cached_in(active, end) == end - active,
            })
        };
        object["parts"] = by_part_json(&file.by_part);
        object["archives"] = (0..parts.archive_count()).map(archive).collect();
    }
    if !file.ranges.is_empty() {
        object["ranges"] = file.ranges.iter().map(|range| json!([range.0, range.1])).collect();
    }
    object.to_string()
}

impl Totals {
    /// Whether a file was seen by another of its names.
    fn is_again(&mut self, file: &FilePages) -> bool {
        let is_again = file.links.is_some_and(|link| !self.links.insert(link));
        self.again += u64::from(is_again);
        is_again
    }

    fn add(&mut self, file: &FilePages) {
        if !file.is_known {
            self.unknown += 1;
            return;
        }
        self.files += 1;
        self.bytes += file.bytes;
        self.share.add(file.share);
        self.dirty += file.dirty.unwrap_or(0);
        for (sum, share) in self.by_part.iter_mut().zip(&file.by_part) {
            sum.add(*share);
        }
    }

    fn text(&self, parts: bool) -> String {
        let Share { cached, pages } = self.share;
        let bytes = cached * page_bytes();
        let each = |value: u64| value as f64 / self.files.max(1) as f64;
        let mut text = format!(
            "{} files: {cached} of {pages} pages in the page cache, {:.1} MB of {:.1} MB, {} not yet written; {:.2} pages, {:.1} kB a file\n",
            self.files,
            bytes as f64 / 1e6,
            (pages * page_bytes()) as f64 / 1e6,
            self.dirty,
            each(cached),
            each(bytes) / 1e3
        );
        for (part, share) in Part::ALL.iter().zip(&self.by_part).filter(|(_, share)| parts && share.pages > 0)
        {
            text += &format!(
                "  {:<8} {} of {} pages, {:.2} a file\n",
                part.name(),
                share.cached,
                share.pages,
                each(share.cached)
            );
        }
        if self.unknown > 0 {
            text += &format!("{} files are not in these sums: {NOT_TOLD}\n", self.unknown);
        }
        if self.again > 0 {
            text +=
                &format!("{} names of files that have others (hard links) are counted once\n", self.again);
        }
        text
    }

    fn json(&self, parts: bool) -> Value {
        let mut object = json!({
            "files": self.files, "bytes": self.bytes, "cached": self.share.cached, "pages": self.share.pages,
            "page_bytes": page_bytes(), "dirty": self.dirty, "unknown_files": self.unknown, "links_again": self.again,
        });
        if parts {
            object["parts"] = by_part_json(&self.by_part);
        }
        object
    }
}
