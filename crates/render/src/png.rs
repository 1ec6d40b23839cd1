//! Writes PNG.
//!
//! A graph has few colours, so most pictures are written with a palette, without filters, which only hurt there.
//! Measured on Debian's pictures (RRDtool's size is 100 %; ms of one core, zlib-rs 0.6 in flate2):
//!
//! | picture | indices, level 1 | 2 | 3 | 4 | 6 | RGB, level 1 | 2 | 4 | 6 | RGB, filter up, 4 |
//! |---|---|---|---|---|---|---|---|---|---|---|
//! | 497x182, area and line | 72 %, 0.09 | 55 %, 0.18 | 51 %, 0.29 | 49 %, 0.38 | 44 %, 0.65 | 126 %, 0.12 | 100 %, 0.19 | 84 %, 0.47 | 76 %, 0.98 | 110 %, 0.49 |
//! | 497x168, slope mode | 51 %, 0.08 | 42 %, 0.16 | 41 %, 0.27 | 40 %, 0.31 | 37 %, 0.64 | 99 %, 0.17 | 88 %, 0.35 | 83 %, 0.52 | 77 %, 0.96 | 103 %, 0.66 |
//! | 1297x668, 20 areas | 124 %, 0.91 | 82 %, 1.8 | 74 %, 2.2 | 66 %, 7.8 | 54 %, 10 | 181 %, 1.5 | 139 %, 2.4 | 106 %, 8.2 | 81 %, 33 | 118 %, 8.9 |
//!
//! miniz_oxide needs 1.3 to 3 times as long for 2 to 10 % fewer bytes.

use flate2::{Compress, Compression, FlushCompress, Status};
use png::{BitDepth, ColorType, Encoder};

use crate::raster::Image;

/// The filter byte before each row: none.
const NO_FILTER: u8 = 0;
/// Most colours of a palette.
const COLOURS_MAX: usize = 256;
/// Slots of the hash table of colours: four per colour, so that few collide.
const SLOTS: usize = 4 * COLOURS_MAX;
/// Pixels that are compared at once.
const LOT: usize = 16;
/// From this many pixels on a higher level pays for its time: see the table above.
const LARGE: usize = 200_000;
/// Levels of compression for indices of small and of large images. At level 1 zlib-rs writes fixed codes.
const LEVELS: (u8, u8) = (2, 3);
/// The same for images with too many colours for a palette.
const LEVELS_COLOURFUL: (u8, u8) = (3, 5);

/// Encodes `image`.
pub fn encode(image: &Image) -> Vec<u8> {
    PngEncoder::default().encode(image)
}

/// Encodes images one after the other. Keeps the compressor's quarter of a megabyte of memory: allocating it for each
/// picture took 6 % of the instructions of a small graph, clearing what must be cleared takes 2.6 %.
#[derive(Default)]
pub struct PngEncoder {
    compress: Option<(u8, Compress)>,
}

impl PngEncoder {
    /// Encodes `image`.
    pub fn encode(&mut self, image: &Image) -> Vec<u8> {
        match Palette::of(image) {
            Some(palette) => palette.encode(image, self),
            None => encode_colourful(image, self),
        }
    }

    /// Compresses `bytes` into a zlib stream at once, not row by row as the encoder of `png` does.
    fn deflated(&mut self, bytes: &[u8], level: u8) -> Vec<u8> {
        let fresh = || (level, Compress::new(Compression::new(u32::from(level)), true));
        let (_, compress) = match &mut self.compress {
            Some(kept) if kept.0 == level => {
                kept.1.reset();
                kept
            }
            other => other.insert(fresh()),
        };
        let mut packed = Vec::with_capacity(bytes.len() / 8 + 1_024);
        loop {
            let rest = &bytes[compress.total_in() as usize..];
            let status = compress.compress_vec(rest, &mut packed, FlushCompress::Finish);
            match status.expect("whatever the bytes are, they are compressed") {
                Status::StreamEnd => return packed,
                Status::Ok | Status::BufError => packed.reserve(packed.capacity().max(1_024)),
            }
        }
    }
}

/// The palette of a picture and the colour index of each pixel.
struct Palette {
    /// As pixels are.
    colours: Vec<u32>,
    /// The rows as they are compressed.
    rows: Vec<u8>,
}

impl Palette {
    /// None if there are too many colours.
    fn of(image: &Image) -> Option<Palette> {
        let width = image.width as usize;
        let mut known = Known::new();
        let mut rows: Vec<u8> = Vec::with_capacity(image.pixels.len() + image.height as usize);
        let mut above: &[u32] = &[];
        for row in image.pixels.chunks_exact(width) {
            if row == above {
                rows.extend_from_within(rows.len() - width - 1..);
            } else {
                rows.push(NO_FILTER);
                known.indices(row, &mut rows)?;
            }
            above = row;
        }
        Some(Palette { colours: known.colours, rows })
    }

    fn encode(&self, image: &Image, encoder: &mut PngEncoder) -> Vec<u8> {
        let mut colours = Vec::with_capacity(3 * self.colours.len());
        let mut opacities = Vec::with_capacity(self.colours.len());
        for colour in &self.colours {
            let [red, green, blue, alpha] = straight(*colour);
            colours.extend_from_slice(&[red, green, blue]);
            opacities.push(alpha);
        }
        let packed = encoder.deflated(&self.rows, level(image, LEVELS));
        write(image, ColorType::Indexed, &packed, |encoder| {
            encoder.set_palette(colours);
            if opacities.iter().any(|alpha| *alpha != 255) {
                encoder.set_trns(opacities);
            }
        })
    }
}

/// The colours found so far.
struct Known {
    colours: Vec<u32>,
    /// By a hash of the colour.
    slots: [Slot; SLOTS],
}

/// A colour and its index plus one; 0 in an empty slot.
#[derive(Clone, Copy, Default)]
struct Slot {
    colour: u32,
    index: u32,
}

impl Known {
    fn new() -> Known {
        Known { colours: Vec::with_capacity(COLOURS_MAX), slots: [Slot::default(); SLOTS] }
    }

    /// Adds the indices of `pixels`; `None` if there are too many colours.
    fn indices(&mut self, pixels: &[u32], indices: &mut Vec<u8>) -> Option<()> {
        let (lots, rest) = pixels.as_chunks::<LOT>();
        for lot in lots {
            let mut found = [0; LOT];
            // Most pixels equal the one before, which is checked for many at once.
            if lot.iter().fold(0, |differs, pixel| differs | (pixel ^ lot[0])) == 0 {
                found = [self.index(lot[0])?; LOT];
            } else {
                for at in 0..LOT {
                    found[at] = self.index(lot[at])?;
                }
            }
            indices.extend_from_slice(&found);
        }
        for pixel in rest {
            indices.push(self.index(*pixel)?);
        }
        Some(())
    }

    /// The index of a colour, which is added if it is new; `None` if there would be too many.
    #[inline(always)]
    fn index(&mut self, pixel: u32) -> Option<u8> {
        let slot = self.slots[hash(pixel)];
        if slot.colour == pixel && slot.index != 0 {
            return Some((slot.index - 1) as u8);
        }
        self.look_for(pixel)
    }

    /// The same if it is not in its first slot.
    #[cold]
    fn look_for(&mut self, pixel: u32) -> Option<u8> {
        let mut at = hash(pixel);
        while self.slots[at].index != 0 && self.slots[at].colour != pixel {
            at = (at + 1) % SLOTS;
        }
        if self.slots[at].index == 0 {
            if self.colours.len() == COLOURS_MAX {
                return None;
            }
            self.colours.push(pixel);
            self.slots[at] = Slot { colour: pixel, index: self.colours.len() as u32 };
        }
        Some((self.slots[at].index - 1) as u8)
    }
}

/// The first slot of a colour.
fn hash(pixel: u32) -> usize {
    (pixel.wrapping_mul(0x9e37_79b1) >> 22) as usize
}

/// Encodes an image without a palette.
fn encode_colourful(image: &Image, encoder: &mut PngEncoder) -> Vec<u8> {
    let opaque = image.pixels.iter().all(|pixel| pixel >> 24 == 255);
    let colour = if opaque { ColorType::Rgb } else { ColorType::Rgba };
    let row_bytes = image.width as usize * colour.samples() + 1;
    let mut rows = Vec::with_capacity(row_bytes * image.height as usize);
    for row in image.pixels.chunks_exact(image.width as usize) {
        rows.push(NO_FILTER);
        for pixel in row {
            rows.extend_from_slice(&straight(*pixel)[..colour.samples()]);
        }
    }
    let packed = encoder.deflated(&rows, level(image, LEVELS_COLOURFUL));
    write(image, colour, &packed, |_| {})
}

/// The level for an image of this size.
fn level(image: &Image, (small, large): (u8, u8)) -> u8 {
    if image.pixels.len() < LARGE { small } else { large }
}

/// Makes a file of compressed rows.
fn write(
    image: &Image,
    colour: ColorType,
    packed: &[u8],
    more: impl FnOnce(&mut Encoder<'_, &mut Vec<u8>>),
) -> Vec<u8> {
    let mut file = Vec::with_capacity(packed.len() + 2_048);
    let mut encoder = Encoder::new(&mut file, image.width, image.height);
    encoder.set_color(colour);
    encoder.set_depth(BitDepth::Eight);
    more(&mut encoder);
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_chunk(png::chunk::IDAT, packed)?;
        writer.finish()
    });
    // Writing to a Vec does not fail, and no image reaches the 2 GiB that a chunk may have.
    written.expect("a picture of the right size goes into memory");
    file
}

/// `pixel` as red, green, blue and opacity, no longer premultiplied.
fn straight(pixel: u32) -> [u8; 4] {
    let [red, green, blue, alpha] = pixel.to_le_bytes();
    if alpha == 0 || alpha == 255 {
        return [red, green, blue, alpha];
    }
    let part = |part: u8| {
        let alpha = u32::from(alpha);
        ((u32::from(part) * 255 + alpha / 2) / alpha).min(255) as u8
    };
    [part(red), part(green), part(blue), alpha]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pixels of a file, as straight colours.
    fn decoded(file: &[u8]) -> (u32, u32, Vec<[u8; 4]>) {
        let mut decoder = png::Decoder::new(std::io::Cursor::new(file));
        decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::ALPHA);
        let mut reader = decoder.read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        let pixels = bytes[..info.buffer_size()].chunks_exact(4).map(|it| it.try_into().unwrap());
        (info.width, info.height, pixels.collect())
    }

    fn check(width: u32, pixels: Vec<u32>) -> usize {
        let image = Image { width, height: pixels.len() as u32 / width, pixels };
        let file = encode(&image);
        let want: Vec<[u8; 4]> = image.pixels.iter().map(|pixel| straight(*pixel)).collect();
        assert_eq!(decoded(&file), (image.width, image.height, want));
        file.len()
    }

    #[test]
    fn what_is_written_is_read() {
        // One pixel; 256 colours; one more; all transparent; opacities.
        check(1, vec![0xff00_ff00]);
        check(16, (0..256).map(|it| 0xff00_0000 | (it * 0x0001_0305)).collect());
        check(16, (0..272).map(|it| 0xff00_0000 | (it * 0x0001_0305)).collect());
        check(3, vec![0; 9]);
        check(4, (0..256).map(|it: u32| (it << 24) | ((it / 2) << 8) | (it / 3)).collect());
        check(16, (0..512).map(|it: u32| ((it / 2) << 24) | ((it / 4) << 8) | (it / 8)).collect());
        check(600, (0..600 * 400).map(|it: u32| 0xff00_0000 | ((it / 1_000) % 200)).collect());
    }

    #[test]
    fn colours_below_an_opacity_are_rounded() {
        assert_eq!(straight(u32::from_le_bytes([1, 64, 128, 129])), [2, 127, 253, 129]);
        assert_eq!(straight(u32::from_le_bytes([1, 2, 3, 255])), [1, 2, 3, 255]);
    }

    #[test]
    fn a_drawing_takes_a_fraction_of_its_pixels() {
        let bar = |x: u32, y: u32| y * 7 > (x * 7_919) % 700;
        let pixels = |colours: u32| -> Vec<u32> {
            (0..40_000)
                .map(
                    |at| if bar(at % 400, at / 400) { 0xff00_cf00 + at % 400 % colours } else { 0xffff_ffff },
                )
                .collect()
        };
        assert!(check(400, pixels(1)) < 6_000);
        assert!(check(400, pixels(400)) < 12_000);
    }
}
