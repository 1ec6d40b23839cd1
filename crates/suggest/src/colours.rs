//! The colours of lines.

/// Told apart on white and on black, and by most who see fewer colours; none is lighter or darker than a text may be.
const COLOURS: [&str; 10] =
    ["2f7ed8", "e0751c", "2a9d4a", "c2334d", "7d5ac0", "1b9aaa", "a8861d", "d0569b", "66788a", "8c5a3c"];

/// The colour of line number `index`, as `rrggbb`.
pub fn of(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}
