//! `--imginfo`: a text with the name and size of the image.

use std::fmt;

use crate::argument::lossy;

/// What RRDtool says the format must match.
const PATTERN: &str = "^(?:[^%]+|%%)*%s(?:[^%]+|%%)*%lu(?:[^%]+|%%)*%lu(?:[^%]+|%%)*$";
/// The conversions for name, width and height.
const PLACES: [&[u8]; 3] = [b"%s", b"%lu", b"%lu"];

/// A bad format. `Display` is RRDtool's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageInfoError(String);

impl fmt::Display for ImageInfoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid format string '{}' (should match '{PATTERN}')", self.0)
    }
}

impl std::error::Error for ImageInfoError {}

/// Fills `format` with `name`, without its directories, and the `size` of the written image in pixels.
///
/// # Errors
/// [`ImageInfoError`].
pub fn image_info(format: &[u8], name: &[u8], size: (u64, u64)) -> Result<Vec<u8>, ImageInfoError> {
    let mut values =
        [base_name(name).to_vec(), size.0.to_string().into(), size.1.to_string().into()].into_iter();
    let mut places = PLACES.into_iter();
    let mut text = Vec::new();
    let mut rest = format;
    while let Some((&byte, after)) = rest.split_first() {
        if byte != b'%' {
            text.push(byte);
            rest = after;
        } else if let Some(after) = rest.strip_prefix(b"%%") {
            text.push(b'%');
            rest = after;
        } else if let Some((after, value)) =
            places.next().and_then(|place| rest.strip_prefix(place)).zip(values.next())
        {
            text.extend(value);
            rest = after;
        } else {
            return Err(ImageInfoError(lossy(format)));
        }
    }
    match values.next() {
        None => Ok(text),
        Some(_) => Err(ImageInfoError(lossy(format))),
    }
}

/// The last part of a path; `memory` for standard output.
fn base_name(name: &[u8]) -> &[u8] {
    if name == b"-" {
        return b"memory";
    }
    let end = name.iter().rposition(|&byte| byte != b'/').map_or(name.len(), |last| last + 1);
    let trimmed = &name[..end];
    match trimmed.iter().rposition(|&byte| byte == b'/') {
        Some(slash) if slash + 1 < trimmed.len() => &trimmed[slash + 1..],
        _ => trimmed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_name_and_size() {
        let check = |format: &str, name: &str, want: Option<&str>| {
            let got = image_info(format.as_bytes(), name.as_bytes(), (481, 155));
            assert_eq!(got.ok(), want.map(|text| text.as_bytes().to_vec()), "{format} {name}");
        };
        check("<%s %lux%lu %%>", "/a/b.png", Some("<b.png 481x155 %>"));
        check("%s%lu%lu", "a/b/", Some("b481155"));
        check("%%%s %lu %lu", "-", Some("%memory 481 155"));
        for bad in ["", "%s", "%lu %s %lu", "%s %lu %lu %lu", "%5s %lu %lu", "%s %lu %lu %", "%d", "%n"] {
            check(bad, "x", None);
        }
    }
}
