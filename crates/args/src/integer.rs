//! Integers among the arguments of a verb, as C's `strtol` and `atoi` read them: leading blanks and a sign,
//! anything after the digits ignored, 0 when there is no number, and the nearest when it is too large.

/// `strtol` with base 0: the prefixes `0x` and `0` select other bases.
pub fn long(arg: &[u8]) -> i64 {
    let (sign, digits) = sign(arg);
    match digits {
        [b'0', b'x' | b'X', digits @ ..] => number(sign, digits, 16),
        [b'0', digits @ ..] => number(sign, digits, 8),
        digits => number(sign, digits, 10),
    }
}

/// `atol`: a decimal integer.
pub fn long_decimal(arg: &[u8]) -> i64 {
    let (sign, digits) = sign(arg);
    number(sign, digits, 10)
}

/// `atoi`: the lower half of what `strtol` reads as a decimal integer.
pub fn int(arg: &[u8]) -> i32 {
    long_decimal(arg) as i32
}

/// The sign, and what follows it.
fn sign(arg: &[u8]) -> (i64, &[u8]) {
    match arg.trim_ascii_start() {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] => (1, digits),
        digits => (1, digits),
    }
}

fn number(sign: i64, digits: &[u8], base: u32) -> i64 {
    let digits = digits.iter().map_while(|&byte| char::from(byte).to_digit(base)).map(i64::from);
    digits.fold(0i64, |size, digit| size.saturating_mul(base.into()).saturating_add(sign * digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longs_are_read_as_in_c() {
        for (text, want) in [
            ("1", 1),
            (" -3x", -3),
            ("+7", 7),
            ("x", 0),
            ("", 0),
            ("010", 8),
            ("-0x1f", -31),
            ("08", 0),
            ("99999999999999999999", i64::MAX),
        ] {
            assert_eq!(long(text.as_bytes()), want, "{text}");
        }
    }

    #[test]
    fn ints_are_read_as_in_c() {
        for (text, want) in [
            ("20x", 20),
            (" -7", -7),
            ("+7", 7),
            ("x", 0),
            ("010", 10),
            ("3000000000", -1_294_967_296),
            ("4294967396", 100),
            ("99999999999999999999", -1),
            ("-99999999999999999999", 0),
        ] {
            assert_eq!(int(text.as_bytes()), want, "{text}");
        }
    }
}
