//! The pictures of `roundel capacity`: page faults against the number of RRDs, or against memory beside what was measured.

use std::path::Path;

use graph::picture::options::ImageFormat;
use pagecache::chart::{AxisLabel, Chart, Look, Series, Shade};
use pagecache::plan::{Layout, Machine};
use pagecache::simulate::Setup;
use render::{Fonts, RenderCache};
use serde_json::Value;

use super::{Arguments, Result};

/// Points of a curve.
const CURVE_POINTS: u32 = 400;
/// RRDs of a simulation beside measured points; what counts is memory per RRD.
const SIMULATED_RRDS: u32 = 2_000;
/// Longest file of measured points, in bytes.
const POINTS_BYTES_MAX: u64 = 16 << 20;

/// Draws the chart into a file.
pub(super) fn draw(path: &Path, arguments: &Arguments, machine: &Machine) -> Result {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let format = match extension {
        "svg" => ImageFormat::Svg,
        "png" => ImageFormat::Png,
        _ => {
            return Err(format!(
                "cannot draw \"{}\": give it a name that ends in .svg or .png",
                path.display()
            ));
        }
    };
    let chart = match &arguments.points {
        Some(points) => beside_measured(points, arguments, machine)?,
        None => against_rrds(arguments, machine),
    };
    let shade = if arguments.dark { Shade::Dark } else { Shade::Light };
    let scene = chart.draw(shade, &Fonts::new());
    let image = render::image(&scene, format, &mut RenderCache::default())
        .map_err(|error| format!("cannot draw \"{}\": {error}", path.display()))?;
    std::fs::write(path, image).map_err(|error| format!("cannot write \"{}\": {error}", path.display()))
}

/// Faults per update in this memory, for numbers of RRDs around the given one.
fn against_rrds(arguments: &Arguments, machine: &Machine) -> Chart {
    let mut layouts = vec![machine.layout];
    for name in [super::LayoutName::Readahead, super::LayoutName::Advice, super::LayoutName::Rrdcached] {
        let layout = arguments.layout(name, machine.geometry.step);
        if !layouts.contains(&layout) && machine.layout != Layout::RoundelStripes {
            layouts.push(layout);
        }
    }
    let curve = |(index, layout): (usize, &Layout)| {
        let at = |point: u32| {
            let share = f64::from(point) / f64::from(CURVE_POINTS);
            let rrds = ((machine.rrds as f64 / 30.0).max(1.0) * 300f64.powf(share)) as u64;
            (rrds as f64, Machine { rrds, layout: *layout, ..machine.clone() }.load().faults)
        };
        Series {
            name: layout.name(),
            look: if index == 0 { Look::Line } else { Look::Dashed },
            points: (0..=CURVE_POINTS).map(at).collect(),
        }
    };
    Chart {
        title: format!("Page faults per update, {:.1} GB of memory", machine.memory as f64 / 1e9),
        x: AxisLabel { title: "RRDs".to_string(), logarithmic: true },
        y: AxisLabel { title: "page faults per update (models)".to_string(), logarithmic: true },
        series: layouts.iter().enumerate().map(curve).collect(),
    }
}

/// Faults per update against pages per RRD: model, simulations, and points that were measured.
fn beside_measured(path: &Path, arguments: &Arguments, machine: &Machine) -> Result<Chart> {
    let measured = read_points(path, arguments.source.preset_name())?;
    let most = measured.iter().flat_map(|series| &series.points).map(|point| point.0).fold(1.0, f64::max);
    let geometry = &machine.geometry;
    let curve = |faults: &dyn Fn(f64) -> f64| -> Vec<(f64, f64)> {
        let at = |point: u32| 1.1 * most * f64::from(point) / f64::from(CURVE_POINTS);
        (1..=CURVE_POINTS).map(|point| (at(point), faults(at(point)))).collect()
    };
    let stairs = geometry.staircase(1);
    let level = |pages: f64| {
        stairs
            .iter()
            .rev()
            .find(|level| level.pages_per_rrd as f64 <= pages)
            .map_or(0.0, |level| level.faults)
    };
    let mut series = vec![
        Series {
            name: "model, LRU".to_string(),
            look: Look::Line,
            points: curve(&|pages| geometry.faults_in_lru(pages, 1)),
        },
        Series {
            name: "model, Linux with advice".to_string(),
            look: Look::Line,
            points: curve(&|pages| geometry.faults_in_lists(pages, 1)),
        },
        Series { name: "model, staircase".to_string(), look: Look::Dashed, points: curve(&level) },
    ];
    if arguments.simulate {
        let setup = arguments.setup(machine)?;
        let mut points = Vec::new();
        for pages in measured.iter().flat_map(|series| &series.points).map(|point| point.0) {
            let cache_pages = (f64::from(SIMULATED_RRDS) * pages) as u64;
            let one = Setup { rrds: SIMULATED_RRDS, cache_pages, ..setup.clone() };
            points.push((pages, one.run(&mut |_| true)?.faults));
        }
        let name = format!("simulated, {:?}", arguments.policy).to_lowercase();
        series.push(Series { name, look: Look::Points, points });
    }
    series.extend(measured);
    Ok(Chart {
        title: "Page faults per update in limited memory".to_string(),
        x: AxisLabel {
            title: "pages of each RRD that the page cache has room for".to_string(),
            logarithmic: false,
        },
        y: AxisLabel { title: "page faults per update".to_string(), logarithmic: true },
        series,
    })
}

/// The points of each side in what `lab/staircase.py` wrote, of a preset if there is one: pages in the cache per RRD, and pages read per
/// update.
fn read_points(path: &Path, preset: Option<&str>) -> Result<Vec<Series>> {
    let cannot = |why: String| format!("cannot read the points in \"{}\": {why}", path.display());
    let length = std::fs::metadata(path).map_err(|error| cannot(error.to_string()))?.len();
    if length > POINTS_BYTES_MAX {
        return Err(cannot(format!("more than {} MiB", POINTS_BYTES_MAX >> 20)));
    }
    let text = std::fs::read(path).map_err(|error| cannot(error.to_string()))?;
    let value: Value = serde_json::from_slice(&text).map_err(|error| cannot(error.to_string()))?;
    let list = value.as_array().ok_or_else(|| cannot("it is no list of points".to_string()))?;
    let mut series: Vec<Series> = Vec::new();
    for (index, point) in list.iter().enumerate() {
        let number = |value: &Value| value.as_f64().filter(|number| number.is_finite() && *number >= 0.0);
        let place = number(&point["cache_pages"]).zip(number(&point["per_update"]["pages_read"]));
        let (Some(place), Some(side)) = (place, point["side"].as_str()) else {
            return Err(cannot(format!("point {index} lacks side, cache_pages or per_update.pages_read")));
        };
        // The first points were of MRTG's RRDs and do not say so.
        if preset.is_some_and(|preset| point["preset"].as_str().unwrap_or("mrtg") != preset) {
            continue;
        }
        let name = format!("measured, {side}");
        match series.iter_mut().find(|one| one.name == name) {
            Some(one) => one.points.push(place),
            None => series.push(Series { name, look: Look::Points, points: vec![place] }),
        }
    }
    match (series.is_empty(), preset) {
        (true, Some(preset)) => Err(cannot(format!("it has none of RRDs of {preset}"))),
        (true, None) => Err(cannot("it has none".to_string())),
        _ => Ok(series),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_read_or_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("points");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_points(&path, Some("mrtg"))
        };
        let good = r#"[{"side": "librrd", "cache_pages": 3.5, "per_update": {"pages_read": 1.2}}]"#;
        assert_eq!(read(good).unwrap()[0].points, [(3.5, 1.2)]);
        let other = good.replace("{\"side", "{\"preset\": \"ganglia\", \"side");
        assert!(read(&other).unwrap_err().contains("none of RRDs of mrtg"));
        assert_eq!(read_points(&path, Some("ganglia")).unwrap().len(), 1);
        for bad in ["", "{}", "[1]", r#"[{"side": "x", "cache_pages": -1, "per_update": {"pages_read": 1}}]"#]
        {
            assert!(read(bad).unwrap_err().contains("points\""), "{bad}");
        }
    }
}
