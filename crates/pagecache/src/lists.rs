//! Page faults per update in Linux' page cache, for files that are mapped with advice RANDOM, as formulas: a sequel to
//! [`crate::model`], with its symbols. Ours, derived in `docs/capacity.md`.
//!
//! Touches through such a mapping do not count for the kernel, so that a page's place is that of its arrival: what is new waits in
//! the inactive list, first in, first out. A page that is missed again soon after it was dropped comes into the active list, which
//! may take half of the cache, and stays.

use crate::geometry::Geometry;
use crate::model::Kind;

/// The active list's share of the cache: it is made smaller as soon as it is longer than the inactive one (with less than 1 GiB; the
/// kernel allows it more of larger caches, which only lowers the faults).
const ACTIVE_SHARE: f64 = 0.5;
/// How much more than the cache may lie between two touches of a page that is still noticed as missed again. Measured with Ganglia's
/// RRDs by `lab/staircase.py`: noticed with 1.98 pages of 2, not with 1.46.
const NOTICED: f64 = 1.1;
/// Steps until the faults have settled; they do after about twenty.
const STEPS_MAX: usize = 1_000;

/// Pages of an RRD that are touched every so many updates.
struct Class {
    interval: f64,
    pages: f64,
    /// Whether more pages are touched from one touch to the next than the cache has room for: then each touch misses.
    gone: bool,
}

impl Geometry {
    /// Page faults per update in a cache of two lists that has room for `pages` pages of each RRD, when `batch` updates are written
    /// at once.
    pub fn faults_in_lists(&self, pages: f64, batch: u64) -> f64 {
        let batch = batch.max(1);
        let mut classes = self.classes(batch);
        // Where the ring was before, unless whole rings fit; there both caches do the same.
        let entered = self.entered_of_all().min(self.faults_in_lru(pages, batch));
        let cold = self.faults(0, batch);
        let active = keep_active(&mut classes, pages);
        // Faults bring pages in, and what comes in drops the others: the least rate that agrees with itself.
        let mut faults = entered.max(f64::MIN_POSITIVE);
        for _ in 0..STEPS_MAX {
            let stay = (pages - active) / faults;
            let touches =
                |class: &Class| if class.gone { 1.0 } else { (stay / class.interval).ceil().max(1.0) };
            let missed = |class: &Class| class.pages / (touches(class) * class.interval);
            let next = entered + classes.iter().map(missed).sum::<f64>();
            if next <= faults * 1.000_001 {
                break;
            }
            faults = next;
        }
        faults.min(cold)
    }

    /// Pages per update that rows enter, whether or not another archive's newest row is there.
    fn entered_of_all(&self) -> f64 {
        let archives = self.archives.iter().enumerate();
        archives
            .map(|(index, one)| self.sharing.ring(index).entered_per_row() / one.updates_per_row as f64)
            .sum()
    }

    /// The header and the pages of the newest rows, those that are touched most often first.
    fn classes(&self, batch: u64) -> Vec<Class> {
        let header = Class { interval: batch as f64, pages: self.header_pages() as f64, gone: false };
        // Whole pages, as in the staircase: the constants here were measured with RRDs whose archives share next to none.
        let mut below = self.header_pages();
        let archive = |kind: Kind| {
            let all = self.pages_kept(kind.interval, batch);
            let pages = (all - below) as f64;
            below = all;
            Class { interval: kind.interval as f64, pages, gone: false }
        };
        let mut classes: Vec<Class> = vec![header];
        classes.extend(self.kinds(batch, false).into_iter().map(archive));
        classes.sort_by(|one, other| one.interval.total_cmp(&other.interval));
        classes
    }
}

/// Takes out of the classes what the active list keeps, marks those that nothing keeps, and returns how many pages the list has.
fn keep_active(classes: &mut [Class], pages: f64) -> f64 {
    let all = pages * ACTIVE_SHARE;
    let touched = |interval: f64, classes: &[Class]| -> f64 {
        classes.iter().filter(|one| one.interval <= interval).map(|one| one.pages).sum()
    };
    let between: Vec<f64> = classes.iter().map(|one| touched(one.interval, classes)).collect();
    let mut room = all;
    for (class, between) in classes.iter_mut().zip(between) {
        class.gone = between > pages * NOTICED;
        if !class.gone {
            let kept = class.pages.min(room);
            class.pages -= kept;
            room -= kept;
        }
    }
    all - room
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::check_falls;
    use crate::presets::Preset;

    /// What `lab/staircase.py` measured (cache in pages per RRD, pages read per update), and how far off the formula may be.
    fn check(preset: Preset, batch: u64, points: &[(f64, f64, f64)]) {
        for &(pages, measured, tolerance) in points {
            let faults = preset.geometry().faults_in_lists(pages, batch);
            let off = (faults / measured - 1.0).abs();
            assert!(off <= tolerance, "{preset:?}, {pages} pages: {faults} and not {measured}");
        }
    }

    #[test]
    fn measured_points_of_mrtg() {
        let (near, far) = (0.2, 0.6);
        check(Preset::Mrtg, 1, &[(2.08, 3.3089, near), (6.14, 0.2298, near), (7.04, 0.1015, near)]);
        check(Preset::Mrtg, 1, &[(8.84, 0.0436, near), (10.01, 0.0297, near), (12.27, 0.0192, near)]);
        check(
            Preset::Mrtg,
            1,
            &[(3.26, 0.7198, far), (4.61, 0.4719, far), (5.24, 0.2204, far), (7.94, 0.0363, far)],
        );
        check(Preset::Mrtg, 12, &[(1.77, 0.4846, near), (5.65, 0.2025, near), (9.69, 0.0303, near)]);
    }

    #[test]
    fn measured_points_of_others() {
        let (near, far) = (0.2, 0.75);
        check(
            Preset::Ganglia,
            1,
            &[(1.463, 2.195, near), (1.976, 0.785, near), (2.588, 0.507, near), (3.943, 0.0253, near)],
        );
        check(Preset::Ganglia, 1, &[(3.176, 0.0706, far), (4.389, 0.00248, 3.5)]);
        check(
            Preset::Collectd,
            1,
            &[(1.633, 4.410, near), (2.981, 4.035, near), (3.882, 1.507, near), (5.233, 0.8237, near)],
        );
        // The first has more faults than the formula says.
        check(
            Preset::Collectd,
            1,
            &[(6.586, 0.5121, 0.3), (8.383, 0.1589, near), (10.189, 0.0832, near), (11.994, 0.0498, near)],
        );
    }

    /// But for the rounding up of how long a page stays, which makes steps.
    #[test]
    fn more_memory_never_costs() {
        check_falls(Geometry::faults_in_lists, 1.05, 1e-9);
    }
}
