//! Colours of elements and of `--color`, as RRDtool reads them.

use crate::picture::scene::Colour;

/// Parses `rgb`, `rgba`, `rrggbb` or `rrggbbaa` in hexadecimal digits; `None` for any other text.
pub fn colour(text: &[u8]) -> Option<Colour> {
    let mut digits = Vec::with_capacity(8);
    for &byte in text {
        digits.push(char::from(byte).to_digit(16)?);
        if text.len() < 5 {
            digits.extend_from_within(digits.len() - 1..);
        }
    }
    if digits.len() == 6 {
        digits.extend([0xf, 0xf]);
    }
    if digits.len() != 8 {
        return None;
    }
    Some(Colour::new(digits.into_iter().fold(0, |number, digit| number << 4 | digit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_have_three_four_six_or_eight_digits() {
        let check = |text: &str, want: Option<u32>| {
            assert_eq!(colour(text.as_bytes()), want.map(Colour::new), "{text}");
        };
        check("fA0", Some(0xffaa_00ff));
        check("abc4", Some(0xaabb_cc44));
        check("FF00aa", Some(0xff00_aaff));
        check("11223300", Some(0x1122_3300));
        for bad in ["", "f", "ff", "fffff", "ff00000", "ff0000801", "gg0000", "0x1122", " 1 2 3", "-1-1-1"] {
            check(bad, None);
        }
    }
}
