//! A picture of a set of files: a row for each file, a cell for each page, coloured by what the page is, strong if it is in the page
//! cache and pale if not.
//!
//! Memory does not grow with the number of files: beyond a number of rows every second file is dropped, then every second of
//! these, so that what is shown is spread evenly over all.

use graph::picture::scene::{Colour, Scene};
use graph::picture::text::Typesetter;

use crate::chart::{Pen, Shade, scene};
use crate::incore::FilePages;
use crate::parts::Part;

/// Most files that a picture shows.
pub const ROWS_MAX: usize = 512;
/// Most cells in a row; the pages of longer files share cells.
const CELLS_MAX: u64 = 256;
/// Pixels of the longest row.
const ROW_PIXELS: f64 = 768.0;
/// Pixels of all rows, if they are few.
const ROWS_PIXELS: f64 = 512.0;
const MARGIN: f64 = 16.0;
const TOP: f64 = 64.0;

/// What is shown of a page: its part, and whether it is cached.
type Cell = (Part, bool);

/// Files, of which each is seen once.
#[derive(Debug, Default)]
pub struct PageMap {
    rows: Vec<Row>,
    seen: u64,
    /// Every how many files one is kept: a power of two.
    every: u64,
}

/// One file.
#[derive(Debug)]
struct Row {
    cells: Vec<Cell>,
    pages: u64,
}

impl PageMap {
    /// An empty map.
    pub fn new() -> PageMap {
        PageMap { every: 1, ..PageMap::default() }
    }

    /// Adds a file, whose pages were asked for.
    pub fn add(&mut self, file: &FilePages) {
        if self.seen.is_multiple_of(self.every) {
            if self.rows.len() == ROWS_MAX {
                let mut index = 0;
                self.rows.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.every *= 2;
            }
            if self.seen.is_multiple_of(self.every) {
                self.rows.push(Row::of(file));
            }
        }
        self.seen += 1;
    }

    /// Draws it.
    pub fn draw(&self, shade: Shade, texts: &dyn Typesetter) -> Scene {
        let longest = self.rows.iter().map(|row| row.pages).max().unwrap_or(1).max(1);
        let row_height = (ROWS_PIXELS / self.rows.len().max(1) as f64).clamp(1.0, 12.0).floor();
        let page_width = ROW_PIXELS / longest as f64;
        let size = (ROW_PIXELS + 2.0 * MARGIN, TOP + row_height * self.rows.len() as f64 + MARGIN);
        let mut pen = Pen { texts, items: Vec::new() };
        pen.area((0.0, 0.0), size, shade.back());
        pen.text(&self.caption(longest), 8.0, (MARGIN, 10.0), 0.0, shade.ink());
        let mut x = MARGIN;
        for part in Part::ALL {
            for (cached, name) in [(true, part.name()), (false, "not cached")] {
                pen.area((x, 38.0), (10.0, 10.0), colour((part, cached), shade));
                pen.text(name, 7.0, (x + 15.0, 35.0), 0.0, shade.ink());
                x += if cached { 78.0 } else { 104.0 };
            }
        }
        for (index, row) in self.rows.iter().enumerate() {
            row.draw(&mut pen, TOP + row_height * index as f64, (page_width, row_height), shade);
        }
        scene("Pages of files in the page cache", size, pen.items)
    }

    fn caption(&self, longest: u64) -> String {
        let mut text = format!("{} files", self.seen);
        if self.every > 1 {
            text += &format!(", of which every {}th is shown", self.every);
        }
        text + &format!("; each row is one, up to {longest} pages from left to right")
    }
}

impl Row {
    fn of(file: &FilePages) -> Row {
        let pages = file.share.pages;
        let count = pages.min(CELLS_MAX);
        let cell = |index: u64| {
            // All pages that share a cell: it shows the first part among them.
            let (from, to) =
                (index * pages / count, ((index + 1) * pages / count).max(index * pages / count + 1));
            let part = match &file.parts {
                None => Part::Other,
                Some(parts) => {
                    (from..to.min(from + CELLS_MAX)).map(|page| parts.of(page)).min().unwrap_or(Part::Other)
                }
            };
            (part, 2 * file.cached_in(from, to) >= to - from)
        };
        Row { cells: (0..count).map(cell).collect(), pages }
    }

    /// Draws neighbours of one colour as one rectangle.
    fn draw(&self, pen: &mut Pen<'_>, y: f64, (page_width, height): (f64, f64), shade: Shade) {
        let cell_width = page_width * self.pages as f64 / self.cells.len().max(1) as f64;
        let mut from = 0;
        while from < self.cells.len() {
            let same = self.cells[from..].iter().take_while(|cell| **cell == self.cells[from]).count();
            let left = (MARGIN + from as f64 * cell_width).round();
            let right = (MARGIN + (from + same) as f64 * cell_width).round();
            let gap = if height >= 4.0 { 1.0 } else { 0.0 };
            pen.area((left, y), ((right - left).max(1.0), height - gap), colour(self.cells[from], shade));
            from += same;
        }
    }
}

fn colour((part, cached): Cell, shade: Shade) -> Colour {
    let colour = match part {
        Part::Header => shade.series(1),
        Part::Active => shade.series(2),
        Part::Archive => shade.series(0),
        Part::Other => shade.series(5),
    };
    if cached {
        return colour;
    }
    let back = shade.back();
    let pale = |own: f64, back: f64| back + 0.18 * (own - back);
    Colour {
        red: pale(colour.red, back.red),
        green: pale(colour.green, back.green),
        blue: pale(colour.blue, back.blue),
        alpha: 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incore::Share;

    fn file(pages: u64, ranges: &[(u64, u64)]) -> FilePages {
        let cached = ranges.iter().map(|range| range.1 - range.0).sum();
        FilePages { share: Share { cached, pages }, ranges: ranges.to_vec(), ..FilePages::default() }
    }

    #[test]
    fn a_million_files_keep_few_rows() {
        let mut map = PageMap::new();
        for index in 0..100_000 {
            map.add(&file(index % 7, &[(0, 1)]));
        }
        assert!(map.rows.len() <= ROWS_MAX && map.rows.len() > ROWS_MAX / 4, "{}", map.rows.len());
        assert_eq!(map.seen.div_ceil(map.every), map.rows.len() as u64);
        assert!(
            map.caption(7).starts_with("100000 files, of which every 256th is shown"),
            "{}",
            map.caption(7)
        );
    }

    #[test]
    fn cells_show_what_is_cached() {
        let row = Row::of(&file(4, &[(0, 1), (3, 4)]));
        assert_eq!(row.cells.iter().map(|cell| cell.1).collect::<Vec<_>>(), [true, false, false, true]);
        let row = Row::of(&file(1_000_000, &[(500_000, 1_000_000)]));
        assert_eq!(row.cells.len() as u64, CELLS_MAX);
        assert_eq!(row.cells.iter().filter(|cell| cell.1).count() as u64, CELLS_MAX / 2);
        assert!(Row::of(&file(0, &[])).cells.is_empty());
    }
}
