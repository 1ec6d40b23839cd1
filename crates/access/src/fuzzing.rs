//! Entry points of the fuzz targets, which `cargo test fuzzing` drives by seeds.

use crate::{Below, PathSet, TokenHash, Tokens};

/// Patterns, a line each, and at last a name to be looked up; the whole as a file of tokens, and as a token.
pub fn fuzz_access(data: &[u8]) {
    TokenHash::of(data);
    let text = String::from_utf8_lossy(data);
    if let Ok(tokens) = Tokens::parse(&text) {
        let again =
            tokens.text().and_then(|text| Tokens::parse(&text)).map(|again| again.accounts().to_vec());
        assert_eq!(again.as_deref(), Ok(tokens.accounts()));
    }
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    let Some(name) = lines.pop() else { return };
    let Ok(set) = PathSet::new(&lines, "ann") else { return };
    let is_normal = name.split('/').all(|component| !component.is_empty());
    if set.contains(name.as_bytes())
        && is_normal
        && let Some((directory, _)) = name.rsplit_once('/')
    {
        assert_ne!(set.below(directory.as_bytes()), Below::Nothing, "{lines:?} {name}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fuzzing_by_seeds() {
        let parts = [
            "a",
            "b*",
            "**",
            "/",
            "/",
            "\n",
            "\n",
            "[",
            "]",
            "\\",
            "?",
            "{name}",
            "..",
            "[[token]]",
            "\u{e4}",
        ];
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % below
        };
        for _ in 0..20_000 {
            let count = random(20);
            let text: String = (0..count).map(|_| parts[random(parts.len())]).collect();
            fuzz_access(text.as_bytes());
        }
        fuzz_access(&[0xff, b'/', 0]);
    }
}
