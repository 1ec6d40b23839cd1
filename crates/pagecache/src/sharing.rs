//! Which pages of a file its archives share with each other and with the header, and so how many different pages a number of
//! touches makes: in `docs/capacity.md`, D.
//!
//! Newest rows are at places that have nothing to do with each other, so that a page that several archives have rows in is touched
//! unless each of them is elsewhere. All of it is counted in rows that touch a page, from the layout of the file; a row that straddles
//! touches both.

use std::collections::BTreeMap;

use crate::MODEL_PAGE_BYTES;
use crate::geometry::ArchiveShape;

/// Pages up to which those of a ring are looked at one by one.
const PAGES_COUNTED_MAX: u64 = 64;

/// What is known of one archive's ring.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ring {
    rows: f64,
    /// Pages that it has rows in.
    pub(crate) pages: f64,
    /// How many rows touch the first page, each of those between on average, and the last one if there is more than one.
    touching: [f64; 3],
    /// Pages that the newest row leaves and comes back to, once around: none for a ring within a page.
    pub(crate) left: f64,
}

/// A page in which more than one archive has rows, or an archive and the header.
#[derive(Clone, Debug, PartialEq)]
struct SharedPage {
    has_header: bool,
    /// Archives, and of each how many rows touch the page.
    rings: Vec<(usize, f64)>,
}

/// The pages of a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sharing {
    header: f64,
    rings: Vec<Ring>,
    shared: Vec<SharedPage>,
}

/// The share of places of the newest row from which `count` rows on touch a page that `touching` of `rows` rows touch.
fn chance(touching: f64, count: f64, rows: f64) -> f64 {
    if count <= 0.0 { 0.0 } else { ((touching + count - 1.0) / rows).min(1.0) }
}

impl Ring {
    fn of(archive: &ArchiveShape) -> Ring {
        let pages = archive.pages();
        let first = archive.offset / MODEL_PAGE_BYTES;
        let left = match archive.rows {
            1 => 0,
            rows if pages <= PAGES_COUNTED_MAX => {
                (first..first + pages).filter(|page| archive.rows_in_page(*page) < rows).count() as u64
            }
            _ => pages,
        };
        let rows = archive.rows as f64;
        let in_first = archive.rows_in_page(first) as f64;
        let in_last = if pages > 1 { archive.rows_in_page(first + pages - 1) as f64 } else { 0.0 };
        let between = rows + straddles(archive) as f64 - in_first - in_last;
        let touching = [in_first, between / pages.saturating_sub(2).max(1) as f64, in_last];
        Ring { rows, pages: pages as f64, touching, left: left as f64 }
    }

    /// Pages that `count` rows, one after the other, touch.
    pub(crate) fn span(&self, count: f64) -> f64 {
        if count <= 0.0 {
            return 0.0;
        }
        let pages = [1.0, (self.pages - 2.0).max(0.0), (self.pages - 1.0).min(1.0)];
        let touched = |(pages, touching): (f64, f64)| pages * chance(touching, count, self.rows);
        pages.into_iter().zip(self.touching).map(touched).sum()
    }

    /// Pages that a row enters.
    pub(crate) fn entered_per_row(&self) -> f64 {
        self.left / self.rows
    }
}

/// How many boundaries of pages lie within rows.
fn straddles(archive: &ArchiveShape) -> u64 {
    let boundaries = archive.pages() - 1;
    let first = MODEL_PAGE_BYTES - archive.offset % MODEL_PAGE_BYTES;
    // Boundaries at the start of a row come back after so many.
    let period = archive.row_bytes / gcd(MODEL_PAGE_BYTES, archive.row_bytes);
    let at_start = |number: &u64| (first + number * MODEL_PAGE_BYTES).is_multiple_of(archive.row_bytes);
    match (0..boundaries.min(period)).find(at_start) {
        Some(number) => boundaries - (boundaries - number).div_ceil(period),
        None => boundaries,
    }
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

impl Sharing {
    /// That of a file with these archives.
    pub(crate) fn of(header_pages: u64, archives: &[ArchiveShape]) -> Sharing {
        let mut pages: BTreeMap<u64, Vec<(usize, f64)>> = BTreeMap::new();
        for (index, archive) in archives.iter().enumerate() {
            let first = archive.offset / MODEL_PAGE_BYTES;
            let last = first + archive.pages() - 1;
            // What lies between belongs to nothing else.
            for page in [first, last].into_iter().take(if first == last { 1 } else { 2 }) {
                pages.entry(page).or_default().push((index, archive.rows_in_page(page) as f64));
            }
        }
        let shared =
            pages.into_iter().map(|(page, rings)| SharedPage { has_header: page < header_pages, rings });
        Sharing {
            header: header_pages as f64,
            rings: archives.iter().map(Ring::of).collect(),
            shared: shared.filter(|page| page.has_header || page.rings.len() > 1).collect(),
        }
    }

    pub(crate) fn ring(&self, archive: usize) -> &Ring {
        &self.rings[archive]
    }

    /// Different pages that are touched by the header and by so many newest rows of each archive, on average.
    pub(crate) fn distinct(&self, rows: &dyn Fn(usize) -> f64) -> f64 {
        let spans: f64 = self.rings.iter().enumerate().map(|(index, ring)| ring.span(rows(index))).sum();
        self.header + spans - self.shared.iter().map(|page| self.counted_twice(page, rows)).sum::<f64>()
    }

    fn counted_twice(&self, page: &SharedPage, rows: &dyn Fn(usize) -> f64) -> f64 {
        let (mut sum, mut untouched) = (0.0, 1.0);
        for &(archive, touching) in &page.rings {
            let chance = chance(touching, rows(archive), self.rings[archive].rows);
            sum += chance;
            untouched *= 1.0 - chance;
        }
        if page.has_header { sum } else { sum - (1.0 - untouched) }
    }

    /// Of the pages that an archive's newest row leaves and comes back to, those in which neither the header nor the newest row of
    /// one of the `others` is.
    pub(crate) fn alone(&self, archive: usize, others: &dyn Fn(usize) -> bool) -> f64 {
        let ring = &self.rings[archive];
        let mut alone = ring.left;
        for page in &self.shared {
            let Some((_, touching)) = page.rings.iter().find(|one| one.0 == archive) else { continue };
            if *touching >= ring.rows {
                continue;
            }
            let elsewhere = |one: &&(usize, f64)| one.0 != archive && others(one.0);
            let free = |one: &(usize, f64)| 1.0 - chance(one.1, 1.0, self.rings[one.0].rows);
            let free: f64 = page.rings.iter().filter(elsewhere).map(free).product();
            alone -= if page.has_header { 1.0 } else { 1.0 - free };
        }
        alone.max(0.0)
    }

    /// The archives that have rows in a page of this one.
    pub(crate) fn neighbours(&self, archive: usize) -> impl Iterator<Item = usize> {
        let pages = self.shared.iter().filter(move |page| page.rings.iter().any(|one| one.0 == archive));
        pages.flat_map(|page| &page.rings).map(|one| one.0).filter(move |other| *other != archive)
    }
}

#[cfg(test)]
mod tests {
    use crate::geometry::Geometry;
    use crate::presets::Preset;
    use testkit::random::{Random, each_seed};

    /// By drawing places for the newest rows, and counting.
    fn drawn(geometry: &Geometry, rows: &[u64], random: &mut Random) -> f64 {
        const DRAWN: u32 = 4_000;
        let mut all = 0;
        for _ in 0..DRAWN {
            let mut pages: std::collections::BTreeSet<u64> = (0..geometry.header_pages()).collect();
            for (archive, count) in geometry.archives.iter().zip(rows) {
                let start = random.below(archive.rows);
                for row in 0..*count {
                    let from = archive.offset + (start + row) % archive.rows * archive.row_bytes;
                    pages.extend(from / 4096..(from + archive.row_bytes).div_ceil(4096));
                }
            }
            all += pages.len();
        }
        all as f64 / f64::from(DRAWN)
    }

    #[test]
    fn pages_are_those_that_are_drawn() {
        each_seed(30, |seed| {
            let random = &mut Random::new(seed);
            let mut words: Vec<String> = Vec::new();
            for index in 0..1 + random.below(3) * random.below(300) {
                words.push(format!("DS:d{index}:GAUGE:600:U:U"));
            }
            for _ in 0..1 + random.below(5) {
                words.push(format!("RRA:LAST:0.5:1:{}", 1 + random.below(700)));
            }
            let geometry = Geometry::parse(60, &words).unwrap();
            for most in [1, 2, 40] {
                let rows: Vec<u64> = geometry.archives.iter().map(|_| random.below(most + 1)).collect();
                let got = geometry.sharing.distinct(&|index| rows[index] as f64);
                let want = drawn(&geometry, &rows, random);
                assert!((got / want - 1.0).abs() < 0.03, "{words:?} {rows:?}: {got}, drawn {want}");
            }
        });
    }

    #[test]
    fn presets_have_pages_of_their_own() {
        let mrtg = Preset::Mrtg.geometry();
        // The first archive begins in the page of the header: 74 of its 800 rows.
        let want = 2.0 - 74.0 / 800.0;
        let got = mrtg.sharing.distinct(&|index| f64::from(u8::from(index == 0)));
        assert!((got - want).abs() < 1e-9, "{got} and not {want}");
    }
}
