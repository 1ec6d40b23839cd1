//! Pictures as pixels, from any painter, and the distance between two of them.

use std::io::Cursor;
use std::process::{Command, Stdio};
use std::sync::Arc;

use graph::picture::scene::Scene;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

/// Side of the squares of pixels that are compared by their mean: edges and glyphs are smoothed in many ways.
const SQUARE: usize = 4;

/// Red, green and blue of every pixel, row by row, over white.
pub struct Pixels {
    pub width: usize,
    pub height: usize,
    pub colours: Vec<[f64; 3]>,
}

impl Pixels {
    /// Our own raster.
    pub fn of_scene(scene: &Scene) -> Pixels {
        let image = roundel_render::raster::paint(scene, &mut roundel_render::raster::Glyphs::new()).unwrap();
        Pixels::of_png(&roundel_render::png::encode(&image))
    }

    /// An SVG as resvg paints it, with the embedded font only.
    pub fn of_svg(svg: &[u8], width: usize, height: usize) -> Pixels {
        let mut fonts = fontdb::Database::new();
        fonts.load_font_data(include_bytes!("../../fonts/DejaVuSansMono.ttf").to_vec());
        let options = Options { fontdb: Arc::new(fonts), ..Options::default() };
        let tree = Tree::from_data(svg, &options).unwrap();
        let mut map = Pixmap::new(width as u32, height as u32).unwrap();
        let scale = width as f32 / tree.size().width();
        resvg::render(&tree, Transform::from_scale(scale, scale), &mut map.as_mut());
        Pixels::over_white(width, height, map.data(), 4, true)
    }

    /// A PDF as poppler paints it.
    pub fn of_pdf(pdf: &[u8]) -> Pixels {
        Pixels::of_png(&through("pdftoppm", &["-r", "72", "-png", "-"], pdf))
    }

    /// An EPS as Ghostscript paints it.
    pub fn of_eps(eps: &[u8]) -> Pixels {
        let arguments = "-q -dNOPAUSE -dBATCH -dSAFER -sDEVICE=png16m -dEPSCrop -dTextAlphaBits=4 \
             -dGraphicsAlphaBits=4 -r72 -sOutputFile=- -";
        Pixels::of_png(&through("gs", &arguments.split_whitespace().collect::<Vec<_>>(), eps))
    }

    pub fn of_png(file: &[u8]) -> Pixels {
        let mut decoder = png::Decoder::new(Cursor::new(file));
        // Few colours are a palette.
        decoder.set_transformations(png::Transformations::EXPAND);
        let mut reader = decoder.read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        let samples = info.color_type.samples();
        assert!(samples >= 3 && info.bit_depth == png::BitDepth::Eight, "{info:?}");
        Pixels::over_white(info.width as usize, info.height as usize, &bytes, samples, false)
    }

    fn over_white(width: usize, height: usize, bytes: &[u8], samples: usize, premultiplied: bool) -> Pixels {
        let colours = bytes.chunks_exact(samples).take(width * height).map(|pixel| {
            let alpha = if samples == 4 { f64::from(pixel[3]) / 255.0 } else { 1.0 };
            [0, 1, 2].map(|part| {
                let value = f64::from(pixel[part]) / 255.0;
                if premultiplied { value + 1.0 - alpha } else { value * alpha + 1.0 - alpha }
            })
        });
        let colours: Vec<[f64; 3]> = colours.collect();
        assert_eq!(colours.len(), width * height);
        Pixels { width, height, colours }
    }

    /// The mean colour of every square.
    fn squares(&self) -> Vec<[f64; 3]> {
        let mut means = Vec::new();
        for top in (0..self.height).step_by(SQUARE) {
            for left in (0..self.width).step_by(SQUARE) {
                let rows = top..(top + SQUARE).min(self.height);
                let columns = left..(left + SQUARE).min(self.width);
                let count = (rows.len() * columns.len()) as f64;
                let mut sum = [0.0; 3];
                for pixel in rows.flat_map(|row| columns.clone().map(move |column| row * self.width + column))
                {
                    for (sum, part) in sum.iter_mut().zip(self.colours[pixel]) {
                        *sum += part / count;
                    }
                }
                means.push(sum);
            }
        }
        means
    }

    /// The distance of two pictures: the mean over all squares, and the fraction of squares further apart than `far`.
    pub fn distance(&self, other: &Pixels, far: f64) -> (f64, f64) {
        assert_eq!((self.width, self.height), (other.width, other.height));
        let apart: Vec<f64> = self
            .squares()
            .iter()
            .zip(other.squares())
            .map(|(a, b)| (0..3).map(|part| (a[part] - b[part]).abs()).fold(0.0, f64::max))
            .collect();
        let count = apart.len() as f64;
        let many = apart.iter().filter(|&&apart| apart > far).count() as f64;
        (apart.iter().sum::<f64>() / count, many / count)
    }
}

/// The standard output of a program for `input`.
pub fn through(program: &str, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, input).unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::from(file))
        .output()
        .unwrap_or_else(|error| panic!("{program} (make test installs it): {error}"));
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}
