//! Images as PNG.

use crate::raster::Image;

/// `image` as a PNG file.
pub fn encode(image: &Image) -> Vec<u8> {
    let opaque = image.pixels.iter().all(|pixel| pixel >> 24 == 255);
    let mut bytes = Vec::new();
    for pixel in &image.pixels {
        let [red, green, blue, alpha] = straight(*pixel);
        bytes.extend_from_slice(&[red, green, blue]);
        if !opaque {
            bytes.push(alpha);
        }
    }
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, image.width, image.height);
    encoder.set_color(if opaque { png::ColorType::Rgb } else { png::ColorType::Rgba });
    encoder.set_compression(png::Compression::Fast);
    let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(&bytes));
    // A Vec takes every byte, and the sizes match.
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
