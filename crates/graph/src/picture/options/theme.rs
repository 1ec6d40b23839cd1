//! Roundel's own looks (`--theme`): other defaults of options, nothing else.
//!
//! Geometry comes from the same code as RRDtool's look. Every option may still be given, before or after the theme.

use super::{Fonts, Options, Theme};
use crate::picture::scene::Colour;
use crate::picture::text::Font;

/// Families of the title and the axes. The legend keeps the default: it aligns columns with blanks, which needs a
/// monospaced font.
const FAMILIES: &str = "DejaVu Sans,Noto Sans,Liberation Sans,sans-serif";

/// Colours in the order of [`ColourTag`](super::ColourTag). Grid and frames are
/// translucent, so that they go with data of any colour.
const LIGHT: [u32; 10] = [
    0xffff_ffff,
    0xffff_ffff,
    0xffff_ffff,
    0xffff_ffff,
    0x1b24_3014,
    0x1b24_302e,
    0x1b24_30ff,
    0x5b66_73ff,
    0x1b24_3040,
    0x0000_0000,
];
/// The same on a dark blue-grey, which glares less beside other dark pages than black.
const DARK: [u32; 10] = [
    0x1216_1cff,
    0x1216_1cff,
    0x1216_1cff,
    0x1216_1cff,
    0xe6ed_f314,
    0xe6ed_f32e,
    0xe6ed_f3ff,
    0x9aa7_b4ff,
    0xe6ed_f340,
    0x0000_0000,
];

impl Theme {
    /// The default options of this look. `font` is the default font (RRD_DEFAULT_FONT); `None` = the usual one.
    pub fn options(self, font: Option<&[u8]>) -> Options {
        let mut options = Options { theme: self, ..Options::default() };
        let colours = match self {
            Theme::Classic => None,
            Theme::Light => Some(LIGHT),
            Theme::Dark => Some(DARK),
        };
        if let Some(colours) = colours {
            options.colours = colours.map(Colour::new);
            options.fonts = fonts(&options.fonts);
            options.border = 0;
            options.grid_dash = (1.0, 0.0);
            options.rrdtool_tag = false;
        }
        if let Some(font) = font {
            for known in &mut options.fonts {
                known.description = font.to_vec();
            }
        }
        options
    }
}

/// The fonts of both themes, in the order of `FontTag`.
fn fonts(usual: &Fonts) -> Fonts {
    let [default, _, axis, unit, legend, watermark] = usual.clone();
    let family = |font: Font| Font { description: FAMILIES.as_bytes().to_vec(), ..font };
    let title = Font { size: 10.0, description: format!("{FAMILIES} Bold").into_bytes() };
    [default, title, family(axis), family(unit), legend, family(watermark)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::options::ColourTag;

    /// The contrast of two opaque colours by WCAG 2: 1 to 21.
    fn contrast(a: Colour, b: Colour) -> f64 {
        let light =
            |part: f64| if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) };
        let luminance = |c: Colour| 0.2126 * light(c.red) + 0.7152 * light(c.green) + 0.0722 * light(c.blue);
        let (one, other) = (luminance(a), luminance(b));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn texts_can_be_read_without_telling_colours_apart() {
        for theme in [Theme::Light, Theme::Dark] {
            let options = theme.options(None);
            for ground in [ColourTag::Back, ColourTag::Canvas] {
                let against = |tag| contrast(options.colour(tag), options.colour(ground));
                // Levels AAA for texts and AA for graphical objects.
                assert!(against(ColourTag::Font) >= 7.0, "{theme:?}");
                assert!(against(ColourTag::Axis) >= 3.0, "{theme:?}");
            }
        }
    }

    #[test]
    fn lines_of_the_grid_are_fainter_than_the_data() {
        for theme in [Theme::Light, Theme::Dark] {
            let options = theme.options(None);
            let (minor, major) = (options.colour(ColourTag::Grid), options.colour(ColourTag::MajorGrid));
            assert!(minor.alpha < major.alpha && major.alpha < 0.25, "{theme:?}");
        }
    }

    #[test]
    fn the_classic_look_is_the_default_and_a_font_of_the_environment_is_all_texts() {
        assert_eq!(Theme::Classic.options(None), Options::default());
        let options = Theme::Dark.options(Some(b"Times"));
        assert!(options.fonts.iter().all(|font| font.description == b"Times"));
        assert_eq!(options.fonts[1].size, 10.0);
    }
}
