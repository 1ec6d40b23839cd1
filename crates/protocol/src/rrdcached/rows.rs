//! The rows in answers to FETCH, FETCHRES and FETCHBIN: encoded by the daemon, decoded by its clients.

use rrd::fetch::FetchRows;
use rrd::format::push_e;

use super::reply::{push_number, push_status};

/// Digits of a value in text, enough to represent a double exactly.
const DIGITS: usize = 17;
/// Characters of a row's time.
const TIME_WIDTH: usize = 10;
/// Times from here on need more characters.
const TIME_MAX: i64 = 10_i64.pow(TIME_WIDTH as u32);

/// Appends the answer to FETCH or FETCHRES with the data sources at the indexes `columns`.
pub fn push_text(out: &mut Vec<u8>, rows: &FetchRows, columns: &[usize]) {
    let count = rows.row_count();
    out.reserve(256 + count * (13 + 24 * columns.len()));
    push_text_head(out, rows, columns, count);
    push_text_rows(out, rows, columns, 0, &rows.values);
}

/// Appends the lines before the rows of the answer to FETCH or FETCHRES; `rows` need not have its values.
pub fn push_text_head(out: &mut Vec<u8>, rows: &FetchRows, columns: &[usize], row_count: usize) {
    push_head(out, rows, 6 + row_count, columns.len());
    out.extend_from_slice(b"DSName:");
    for &column in columns {
        out.push(b' ');
        out.extend_from_slice(rows.ds_names[column].as_bytes());
    }
    out.push(b'\n');
}

/// Appends `values` as rows of the answer that `rows` describes, of which the first has the index `first`.
pub fn push_text_rows(out: &mut Vec<u8>, rows: &FetchRows, columns: &[usize], first: usize, values: &[f64]) {
    let width = rows.ds_names.len().max(1);
    let step = i64::try_from(rows.step).unwrap_or(i64::MAX);
    let mut time = rows.start.saturating_add(step.saturating_mul(first as i64));
    for row in values.chunks_exact(width) {
        time = time.saturating_add(step);
        push_row_time(out, time, rows.units_per_second);
        out.push(b':');
        for &column in columns {
            out.push(b' ');
            push_e(out, row[column], DIGITS);
        }
        out.push(b'\n');
    }
}

/// Appends the answer to FETCHBIN: each column as doubles in the machine's byte order.
pub fn push_binary(out: &mut Vec<u8>, rows: &FetchRows, columns: &[usize]) {
    let count = rows.row_count();
    out.reserve(256 + (count * 8 + 64) * columns.len());
    push_binary_head(out, rows, columns);
    for &column in columns {
        push_binary_name(out, &rows.ds_names[column], count);
        push_binary_values(out, rows.ds_names.len(), column, &rows.values);
        out.push(b'\n');
    }
}

/// Appends the lines before the columns of the answer to FETCHBIN; `rows` need not have its values.
pub fn push_binary_head(out: &mut Vec<u8>, rows: &FetchRows, columns: &[usize]) {
    push_head(out, rows, 5 + columns.len(), columns.len());
}

/// Appends the line before the values of a column, which a line feed follows.
pub fn push_binary_name(out: &mut Vec<u8>, name: &str, row_count: usize) {
    let order = if cfg!(target_endian = "little") { "LITTLE" } else { "BIG" };
    out.extend_from_slice(format!("DSName-{name}: BinaryData {row_count} 8 {order}\n").as_bytes());
}

/// Appends the values of a column of rows, which have `width` values each.
pub fn push_binary_values(out: &mut Vec<u8>, width: usize, column: usize, values: &[f64]) {
    for row in values.chunks_exact(width.max(1)) {
        out.extend_from_slice(&row[column].to_ne_bytes());
    }
}

fn push_head(out: &mut Vec<u8>, rows: &FetchRows, line_count: usize, ds_count: usize) {
    push_status(out, line_count as i64, b"Success");
    out.extend_from_slice(b"FlushVersion: 1");
    let step = i64::try_from(rows.step).unwrap_or(i64::MAX);
    for (key, time) in [("Start", rows.start), ("End", rows.end), ("Step", step)] {
        out.push(b'\n');
        out.extend_from_slice(key.as_bytes());
        out.extend_from_slice(b": ");
        push_time(out, time, rows.units_per_second);
    }
    out.extend_from_slice(format!("\nDSCount: {ds_count}\n").as_bytes());
}

/// Appends a time in seconds, with three decimals unless it is a whole second.
#[inline]
fn push_time(out: &mut Vec<u8>, time: i64, units_per_second: u32) {
    let unit = i64::from(units_per_second.max(1));
    if unit == 1 {
        return push_number(out, time);
    }
    push_number(out, time.div_euclid(unit));
    let rest = time.rem_euclid(unit);
    if rest != 0 {
        out.extend_from_slice(format!(".{:03}", rest * 1000 / unit).as_bytes());
    }
}

/// Compat: right-aligned to ten characters, as `%10lu`.
#[inline]
fn push_row_time(out: &mut Vec<u8>, time: i64, units_per_second: u32) {
    // Since September 2001, whole seconds have ten digits.
    if units_per_second == 1 && (TIME_MAX / 10..TIME_MAX).contains(&time) {
        let mut digits = [0; TIME_WIDTH];
        let high = (time / 100_000_000) as u8;
        digits[0] = b'0' + high / 10;
        digits[1] = b'0' + high % 10;
        digits[2..].copy_from_slice(&rrd::format::eight_digits((time % 100_000_000) as u32));
        return out.extend_from_slice(&digits);
    }
    let line_start = out.len();
    push_time(out, time, units_per_second);
    let width = out.len() - line_start;
    if width < TIME_WIDTH {
        out.splice(line_start..line_start, std::iter::repeat_n(b' ', TIME_WIDTH - width));
    }
}

/// Decodes the answer to FETCH or FETCHRES: six header lines, then `time: value value...`; `None` for any
/// other lines.
pub fn read_text(lines: &[Vec<u8>]) -> Option<FetchRows> {
    let mut lines = lines.iter().map(Vec::as_slice);
    let mut field = |name: &str| -> Option<&[u8]> {
        lines.next()?.strip_prefix(name.as_bytes())?.strip_prefix(b": ").map(<[u8]>::trim_ascii)
    };
    field("FlushVersion")?;
    let (start, end, step) = (moment(field("Start")?)?, moment(field("End")?)?, moment(field("Step")?)?);
    field("DSCount")?;
    let ds_names =
        String::from_utf8_lossy(field("DSName")?).split(' ').map(str::to_string).collect::<Vec<_>>();
    let mut values = Vec::new();
    for line in lines {
        let mut words = line.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
        words.next()?;
        let before = values.len();
        for word in words {
            // Exact to the last bit; RRDtool's own parsing of numbers loses some.
            values.push(std::str::from_utf8(word).ok()?.parse().ok()?);
        }
        if values.len() - before != ds_names.len() {
            return None;
        }
    }
    // Times with decimals: an RRD with a step below a second.
    let fine = [start, end, step].iter().any(|moment| moment % 1000 != 0);
    let (units_per_second, scale) = if fine { (1000, 1) } else { (1, 1000) };
    let step = u64::try_from(step / scale).ok()?;
    Some(FetchRows { start: start / scale, end: end / scale, step, units_per_second, ds_names, values })
}

/// Parses seconds with up to three decimals, in thousandths.
fn moment(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let thousandths: i64 = format!("{decimals:0<3}").get(..3)?.parse().ok()?;
    whole.parse::<i64>().ok()?.checked_mul(1000)?.checked_add(thousandths)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(rows: &FetchRows) -> String {
        let mut out = Vec::new();
        push_text(&mut out, rows, &[1]);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rows_are_text_or_binary() {
        let ds_names = vec!["a".to_string(), "b".to_string()];
        let values = vec![0.0, 1.0, 2.0, 3.0];
        let rows = FetchRows { start: 100, end: 120, step: 10, units_per_second: 1, ds_names, values };
        let (one, three) = ("1.00000000000000000e+00", "3.00000000000000000e+00");
        let want = format!(
            "8 Success\nFlushVersion: 1\nStart: 100\nEnd: 120\nStep: 10\nDSCount: 1\nDSName: b\n       110: {one}\n       120: {three}\n"
        );
        assert_eq!(text(&rows), want);
        let fine = FetchRows { start: 1000, end: 1500, step: 250, units_per_second: 1000, ..rows.clone() };
        let want = "8 Success\nFlushVersion: 1\nStart: 1\nEnd: 1.500\nStep: 0.250\nDSCount: 1\nDSName: b\n";
        assert_eq!(text(&fine), format!("{want}     1.250: {one}\n     1.500: {three}\n"));
        for start in [999_999_980, 1_234_567_890, 9_999_999_970, 9_999_999_990, 10_000_000_000, -30] {
            let got = text(&FetchRows { start, end: start + 20, ..rows.clone() });
            let want = format!("{:10}: {one}\n{:10}: {three}\n", start + 10, start + 20);
            assert_eq!(got.rsplit("b\n").next(), Some(&*want));
        }
        let mut out = Vec::new();
        push_binary(&mut out, &rows, &[1]);
        let mut want = b"6 Success\nFlushVersion: 1\nStart: 100\nEnd: 120\nStep: 10\nDSCount: 1\n".to_vec();
        want.extend_from_slice(b"DSName-b: BinaryData 2 8 LITTLE\n");
        want.extend_from_slice(&1f64.to_le_bytes());
        want.extend_from_slice(&3f64.to_le_bytes());
        want.push(b'\n');
        assert_eq!(out, want);
    }

    fn read(heading: [&str; 4], rows: &[&str]) -> Option<FetchRows> {
        let [start, end, step, names] = heading;
        let mut lines = vec!["FlushVersion: 1".to_string(), format!("Start: {start}"), format!("End: {end}")];
        lines.extend([format!("Step: {step}"), "DSCount: 2".to_string(), format!("DSName: {names}")]);
        lines.extend(rows.iter().map(ToString::to_string));
        read_text(&lines.into_iter().map(String::into_bytes).collect::<Vec<_>>())
    }

    #[test]
    fn rows_are_decoded_to_the_last_bit() {
        let rows = read(["10", "30", "10", "a b"], &["20: 1.2345678901234567e-01 nan", "30: inf -0"]);
        let rows = rows.expect("rows");
        assert_eq!((rows.start, rows.end, rows.step, rows.units_per_second), (10, 30, 10, 1));
        assert_eq!(rows.ds_names, ["a", "b"]);
        let bits: Vec<u64> = rows.values.iter().map(|value| value.to_bits()).collect();
        let want = [0.123_456_789_012_345_67, f64::NAN, f64::INFINITY, -0.0].map(f64::to_bits);
        assert_eq!(bits, want);
    }

    #[test]
    fn decimals_are_thousandths() {
        let rows = read(["10.500", "11", "0.5", "a b"], &["11: 1 2"]).expect("rows");
        assert_eq!((rows.start, rows.end, rows.step, rows.units_per_second), (10_500, 11_000, 500, 1000));
    }

    #[test]
    fn other_lines_give_no_rows() {
        for rows in [&["20: 1"][..], &["20: 1 2 3"], &["20: 1 x"], &[""]] {
            assert_eq!(read(["10", "30", "10", "a b"], rows), None, "{rows:?}");
        }
        assert_eq!(read(["10", "30", "-10", "a b"], &[]), None);
        assert_eq!(read(["x", "30", "10", "a b"], &[]), None);
        assert_eq!(read_text(&[]), None);
    }
}
