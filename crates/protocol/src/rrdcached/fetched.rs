//! The client's side of FETCH and FETCHRES: rows out of an answer's lines.

/// Rows, row-major, one value a data source; the first row's time is `start + step`.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// In units.
    pub start: i64,
    /// Time of the last row, in units.
    pub end: i64,
    /// Units in a row.
    pub step: u64,
    /// Units in a second.
    pub units_per_second: u32,
    /// Names of the data sources.
    pub names: Vec<String>,
    /// The values.
    pub values: Vec<f64>,
}

impl Rows {
    /// Reads six lines of heading, then `time: value value...`; `None` where they are something else.
    pub fn read(lines: &[Vec<u8>]) -> Option<Rows> {
        let mut lines = lines.iter().map(Vec::as_slice);
        let mut field = |name: &str| -> Option<&[u8]> {
            lines.next()?.strip_prefix(name.as_bytes())?.strip_prefix(b": ").map(<[u8]>::trim_ascii)
        };
        field("FlushVersion")?;
        let (start, end, step) = (moment(field("Start")?)?, moment(field("End")?)?, moment(field("Step")?)?);
        field("DSCount")?;
        let names =
            String::from_utf8_lossy(field("DSName")?).split(' ').map(str::to_string).collect::<Vec<_>>();
        let mut values = Vec::new();
        for line in lines {
            let mut words = line.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
            words.next()?;
            let before = values.len();
            for word in words {
                // To the last bit, where RRDtool's own reading of numbers loses some.
                values.push(std::str::from_utf8(word).ok()?.parse().ok()?);
            }
            if values.len() - before != names.len() {
                return None;
            }
        }
        // Times with decimals: an RRD with a step below a second.
        let fine = [start, end, step].iter().any(|moment| moment % 1000 != 0);
        let (units_per_second, scale) = if fine { (1000, 1) } else { (1, 1000) };
        let step = u64::try_from(step / scale).ok()?;
        Some(Rows { start: start / scale, end: end / scale, step, units_per_second, names, values })
    }
}

/// Seconds with up to three decimals, in thousandths.
fn moment(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let thousandths: i64 = format!("{decimals:0<3}").get(..3)?.parse().ok()?;
    whole.parse::<i64>().ok()?.checked_mul(1000)?.checked_add(thousandths)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(heading: [&str; 4], rows: &[&str]) -> Option<Rows> {
        let [start, end, step, names] = heading;
        let mut lines = vec!["FlushVersion: 1".to_string(), format!("Start: {start}"), format!("End: {end}")];
        lines.extend([format!("Step: {step}"), "DSCount: 2".to_string(), format!("DSName: {names}")]);
        lines.extend(rows.iter().map(ToString::to_string));
        Rows::read(&lines.into_iter().map(String::into_bytes).collect::<Vec<_>>())
    }

    #[test]
    fn rows_are_read_to_the_last_bit() {
        let rows = read(["10", "30", "10", "a b"], &["20: 1.2345678901234567e-01 nan", "30: inf -0"]);
        let rows = rows.expect("rows");
        assert_eq!((rows.start, rows.end, rows.step, rows.units_per_second), (10, 30, 10, 1));
        assert_eq!(rows.names, ["a", "b"]);
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
    fn what_is_no_answer_gives_no_rows() {
        for rows in [&["20: 1"][..], &["20: 1 2 3"], &["20: 1 x"], &[""]] {
            assert_eq!(read(["10", "30", "10", "a b"], rows), None, "{rows:?}");
        }
        assert_eq!(read(["10", "30", "-10", "a b"], &[]), None);
        assert_eq!(read(["x", "30", "10", "a b"], &[]), None);
        assert_eq!(Rows::read(&[]), None);
    }
}
