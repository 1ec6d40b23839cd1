//! Entry points for `fuzz/`, which tests call with seeded random bytes, too.

mod pushed;

pub use pushed::{
    fuzz_carbon_schemas, fuzz_collectd_json, fuzz_graphite, fuzz_influx, fuzz_otlp, fuzz_pickle, fuzz_statsd,
};

use crate::path::Template;
use crate::sample::{Kind, Samples};
use crate::table::CreateTable;

/// A series of any texts has a place that leads back to it, or a reason; a template of any text is one or is refused.
///
/// # Panics
/// When one of these does not hold.
pub fn fuzz_path(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut parts = text.split('|');
    let template = parts.next().unwrap_or_default();
    let mut samples = Samples::default();
    let mut series = samples.begin(parts.next().unwrap_or_default());
    while let (Some(label), Some(value)) = (parts.next(), parts.next()) {
        series.label(label, value);
    }
    let Ok(number) = series.end(Kind::Gauge) else { return };
    let series = samples.series(number);
    let table = CreateTable::default();
    let mut owner = Samples::default();
    if let Ok(place) = table.place(series) {
        assert!(
            !place.path.starts_with('/')
                && place.path.split('/').all(|part| !part.starts_with('.') && part.len() <= 255)
        );
        let found = table
            .owner(place.path.strip_suffix(".rrd").unwrap_or_default(), &mut owner)
            .expect("the RRD is this series'");
        assert_eq!(owner.series(found), series);
    }
    table.owner(&text, &mut owner);
    if let Ok(template) = Template::parse(template) {
        let mut path = String::new();
        if template.write(series, &[], &mut path).is_ok() {
            let found = template.read(path.strip_suffix(".rrd").unwrap_or(&path), &mut owner);
            assert_eq!(found.map(|found| owner.series(found)), Some(series), "{path}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_series_lead_back() {
        let pieces = [
            "|",
            "a",
            "{name}",
            "{x}/{name}",
            "{name/}",
            ".",
            "..",
            "/",
            "+",
            ",",
            "=",
            "%",
            "%2",
            "é",
            "-",
            "x",
            "instance",
            "host",
            "\u{7}",
            "long-long-long-long-long-long-long-long-long-long-long-long",
        ];
        let mut state = 7u64;
        for _ in 0..4_000 {
            let mut text = String::new();
            for _ in 0..state >> 20 & 31 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                text.push_str(pieces[(state >> 33) as usize % pieces.len()]);
            }
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            fuzz_path(text.as_bytes());
        }
    }
}
