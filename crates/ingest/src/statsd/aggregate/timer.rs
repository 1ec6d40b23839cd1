//! The times of a timer between two flushes, and what follows from them.

/// Values of a timer that are kept for its percentiles; of more, each second, fourth and so on.
const KEPT_MAX: usize = 16_384;
/// Values for which a timer keeps its memory from one flush to the next.
const KEPT_AT_REST: usize = 64;

#[derive(Debug)]
pub(super) struct Timer {
    /// Values for percentiles.
    kept: Vec<f64>,
    /// Of so many values one is kept.
    stride: u64,
    /// Values, each once.
    heard: u64,
    /// Values, each as many as it stands for.
    weight: f64,
    sum: f64,
    sum_squares: f64,
    lower: f64,
    upper: f64,
}

impl Default for Timer {
    fn default() -> Self {
        Timer {
            kept: Vec::new(),
            stride: 1,
            heard: 0,
            weight: 0.0,
            sum: 0.0,
            sum_squares: 0.0,
            lower: f64::INFINITY,
            upper: f64::NEG_INFINITY,
        }
    }
}

impl Timer {
    /// Adds a value; returns how many more are kept.
    pub(super) fn add(&mut self, time: f64, weight: f64, may_keep: bool) -> usize {
        self.heard += 1;
        self.weight += weight;
        self.sum += time;
        self.sum_squares += time * time;
        self.lower = self.lower.min(time);
        self.upper = self.upper.max(time);
        if !may_keep || !self.heard.is_multiple_of(self.stride) {
            return 0;
        }
        if self.kept.len() == KEPT_MAX {
            let mut index = 0;
            self.kept.retain(|_| {
                index += 1;
                index % 2 == 0
            });
            self.stride *= 2;
        }
        self.kept.push(time);
        1
    }

    /// Tells the ends of names and their values, and begins again.
    pub(super) fn flush(&mut self, seconds: f64, percentiles: &[f64], tell: &mut dyn FnMut(&str, f64)) {
        tell("count", self.weight);
        tell("count_ps", self.weight / seconds);
        if self.heard > 0 {
            self.tell_values(percentiles, tell);
        }
        let mut kept = std::mem::take(&mut self.kept);
        // There may be many that are silent from now on.
        kept.clear();
        kept.shrink_to(KEPT_AT_REST);
        *self = Timer { kept, ..Timer::default() };
    }

    fn tell_values(&mut self, percentiles: &[f64], tell: &mut dyn FnMut(&str, f64)) {
        let mean = self.sum / self.heard as f64;
        tell("lower", self.lower);
        tell("upper", self.upper);
        tell("sum", self.sum);
        tell("sum_squares", self.sum_squares);
        tell("mean", mean);
        if self.kept.is_empty() {
            return;
        }
        self.kept.sort_unstable_by(f64::total_cmp);
        let kept = &self.kept;
        let middle = kept.len() / 2;
        let median =
            if kept.len() % 2 == 1 { kept[middle] } else { f64::midpoint(kept[middle - 1], kept[middle]) };
        tell("median", median);
        let spread: f64 = kept.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / kept.len() as f64;
        tell("std", spread.sqrt());
        for percentile in percentiles {
            // As statsd has it: a single value is its own percentile.
            let within = match kept.len() {
                1 => 1,
                count => (percentile / 100.0 * count as f64).round() as usize,
            };
            let Some(within) = kept.get(..within).filter(|within| !within.is_empty()) else { continue };
            let number = percentile.to_string().replace('.', "_");
            let sum: f64 = within.iter().sum();
            tell(&format!("count_{number}"), (within.len() as u64 * self.stride) as f64);
            tell(&format!("mean_{number}"), sum / within.len() as f64);
            tell(&format!("upper_{number}"), within[within.len() - 1]);
            tell(&format!("sum_{number}"), sum * self.stride as f64);
            let squares: f64 = within.iter().map(|time| time * time).sum();
            tell(&format!("sum_squares_{number}"), squares * self.stride as f64);
        }
    }
}
