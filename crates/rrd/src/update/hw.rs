//! Holt-Winters forecasting: HWPREDICT, MHWPREDICT, SEASONAL, DEVSEASONAL, DEVPREDICT and FAILURES.
//!
//! The archives of one forecast refer to each other and are updated one after the other. So each checks
//! whether the archive it needs comes before it: that one has already advanced, and the number meant is the
//! one it kept from before. Sources do not affect each other. Every number is computed in RRDtool's order;
//! its treatment of gaps (see [`Forecast::skip`]) is its own, and pinned by the oracle.

use super::pdp::canonical;
use super::season;
use crate::definition::{Cf, Consolidation, Definition};
use crate::live::{CdpPrep, HeadMut, HeadShape, Season, UNKNOWN};

/// Most PDPs of one update that the forecast follows one by one; more are skipped.
const FOLLOWED_PDPS_MAX: u64 = 2;
/// Flags of a FAILURES cell: bytes, newest first.
const FLAGS: usize = 28;

/// Indexes into the words of [`crate::live::HwPrep`].
pub(super) const COEFFICIENT: usize = 0;
pub(super) const LAST_COEFFICIENT: usize = 1;
const SLOPE: usize = 2;
const LAST_SLOPE: usize = 3;
const NULL_COUNT: usize = 4;
const LAST_NULL_COUNT: usize = 5;

/// The archives of one RRD while its forecast advances.
pub(super) struct Forecast<'a, 'h> {
    pub definition: &'a Definition,
    pub shape: &'a HeadShape,
    pub head: &'a mut HeadMut<'h>,
    pub seasons: &'a [Season],
}

impl Forecast<'_, '_> {
    /// Advances every Holt-Winters archive by `elapsed` PDPs of the same values. Writes no rows: it leaves
    /// them in each cell's primary and secondary value.
    pub(super) fn advance(mut self, points: &[f64], elapsed: u64) {
        let archives = self.definition.rra.iter().enumerate();
        let archives = archives.filter(|(_, rra)| rra.cf.is_holt_winters()).map(|(index, _)| index);
        if elapsed > FOLLOWED_PDPS_MAX {
            archives.for_each(|index| self.skip(index, elapsed));
            return;
        }
        for nth in 1..=elapsed {
            for index in archives.clone() {
                for (ds, &point) in points.iter().enumerate() {
                    let value = self.follow(index, ds, point, elapsed + nth);
                    let cell = &mut self.head.cdp[index * self.shape.ds_count() + ds];
                    if nth == 1 {
                        cell.primary = value;
                    } else {
                        cell.secondary = value;
                    }
                }
            }
        }
    }

    fn words(&self, rra: usize, ds: usize) -> &[u64; 6] {
        let hw = self.shape.hw_index(rra).expect("callers pass Holt-Winters archives only");
        &self.head.hw[hw * self.shape.ds_count() + ds].words
    }

    fn words_mut(&mut self, rra: usize, ds: usize) -> &mut [u64; 6] {
        let hw = self.shape.hw_index(rra).expect("callers pass Holt-Winters archives only");
        &mut self.head.hw[hw * self.shape.ds_count() + ds].words
    }

    /// The seasonal coefficient or deviation of archive `of`, for the current row of archive `reader`.
    fn coefficient(&self, of: usize, reader: usize, ds: usize) -> f64 {
        let word = if of < reader { LAST_COEFFICIENT } else { COEFFICIENT };
        f64::from_bits(self.words(of, ds)[word])
    }

    /// The intercept and the baseline of archive `predict` before this PDP, as archive `reader` sees them. The
    /// baseline is the intercept plus the slope for every PDP since the intercept was known.
    fn baseline(&self, predict: usize, reader: usize, ds: usize) -> (f64, f64) {
        let words = self.words(predict, ds);
        let (intercept, slope, nulls) = if predict < reader {
            (words[LAST_COEFFICIENT], words[LAST_SLOPE], words[LAST_NULL_COUNT])
        } else {
            (words[COEFFICIENT], words[SLOPE], words[NULL_COUNT])
        };
        let (intercept, slope) = (f64::from_bits(intercept), f64::from_bits(slope));
        (intercept, intercept + slope * nulls as f64)
    }

    /// The prediction of `predict` for this PDP, as archive `reader` sees it; `None` while a part is unknown.
    fn prediction(&self, predict: usize, reader: usize, ds: usize) -> Option<f64> {
        let Consolidation::Predict { multiplicative, seasonal, .. } = self.definition.rra[predict].cf else {
            return None;
        };
        let coefficient = self.coefficient(seasonal, reader, ds);
        let (_, baseline) = self.baseline(predict, reader, ds);
        if coefficient.is_nan() || baseline.is_nan() {
            return None;
        }
        Some(canonical(if multiplicative { baseline * coefficient } else { baseline + coefficient }))
    }

    /// Advances one cell by one PDP. Returns the value of its row. The next coefficient is `ahead` rows after the
    /// row written last.
    fn follow(&mut self, rra: usize, ds: usize, point: f64, ahead: u64) -> f64 {
        match self.definition.rra[rra].cf {
            Consolidation::Plain { .. } => UNKNOWN,
            Consolidation::Predict { .. } => self.predict(rra, ds, point),
            Consolidation::Seasonal { deviation, gamma, predict, .. } => {
                let next = self.next_coefficient(rra, ds, ahead);
                let old = f64::from_bits(self.words(rra, ds)[COEFFICIENT]);
                let value = if deviation {
                    self.deviation(rra, ds, point, gamma, predict, old)
                } else {
                    self.seasonal(rra, ds, point, gamma, predict, old)
                };
                let words = self.words_mut(rra, ds);
                words[LAST_COEFFICIENT] = words[COEFFICIENT];
                words[COEFFICIENT] = next;
                value
            }
            Consolidation::DevPredict { devseasonal } => self.coefficient(devseasonal, rra, ds),
            Consolidation::Failures { .. } => self.failure(rra, ds, point),
        }
    }

    fn next_coefficient(&self, rra: usize, ds: usize, ahead: u64) -> u64 {
        let season = self.seasons.iter().find(|season| season.rra == rra);
        season.map_or(UNKNOWN.to_bits(), |season| {
            season::value(season, self.shape.ds_count(), ahead, ds).to_bits()
        })
    }

    fn predict(&mut self, rra: usize, ds: usize, point: f64) -> f64 {
        let Consolidation::Predict { multiplicative, alpha, beta, seasonal, .. } =
            self.definition.rra[rra].cf
        else {
            return UNKNOWN;
        };
        let coefficient = self.coefficient(seasonal, rra, ds);
        let (intercept, baseline) = self.baseline(rra, rra, ds);
        let prediction = self.prediction(rra, rra, ds);
        let words = self.words_mut(rra, ds);
        words[LAST_COEFFICIENT] = words[COEFFICIENT];
        words[LAST_SLOPE] = words[SLOPE];
        words[LAST_NULL_COUNT] = words[NULL_COUNT];
        if intercept.is_nan() {
            if !point.is_nan() {
                *words = [point.to_bits(), point.to_bits(), 0, 0, 1, 1];
            }
            return UNKNOWN;
        }
        let Some(prediction) = prediction else {
            return UNKNOWN;
        };
        if point.is_nan() {
            words[NULL_COUNT] = words[NULL_COUNT].wrapping_add(1);
            return prediction;
        }
        let slope = f64::from_bits(words[SLOPE]);
        let new = next_intercept(alpha, point, coefficient, baseline, multiplicative);
        words[COEFFICIENT] = new.to_bits();
        words[SLOPE] = canonical(beta * (new - intercept) + (1.0 - beta) * slope).to_bits();
        words[NULL_COUNT] = 1;
        prediction
    }

    fn seasonal(&self, rra: usize, ds: usize, point: f64, gamma: f64, predict: usize, old: f64) -> f64 {
        let Consolidation::Predict { multiplicative, alpha, .. } = self.definition.rra[predict].cf else {
            return UNKNOWN;
        };
        if point.is_nan() {
            return old;
        }
        let mut intercept = f64::from_bits(self.words(predict, ds)[COEFFICIENT]);
        let (_, baseline) = self.baseline(predict, rra, ds);
        if baseline.is_nan() {
            // A forecast that advances later will begin at this point.
            return match (predict > rra, multiplicative) {
                (false, _) => UNKNOWN,
                (true, false) => 0.0,
                (true, true) => 1.0,
            };
        }
        if predict > rra && !old.is_nan() {
            intercept = next_intercept(alpha, point, old, baseline, multiplicative);
        }
        let now = if multiplicative { ratio(point, intercept) } else { point - intercept };
        canonical(if old.is_nan() { now } else { gamma * now + (1.0 - gamma) * old })
    }

    fn deviation(&self, rra: usize, ds: usize, point: f64, gamma: f64, predict: usize, old: f64) -> f64 {
        let Some(prediction) = self.prediction(predict, rra, ds) else {
            return UNKNOWN;
        };
        if point.is_nan() {
            return old;
        }
        let now = (prediction - point).abs();
        if now.is_nan() {
            return f64::from_bits(UNKNOWN.to_bits() & !(1 << 63));
        }
        canonical(if old.is_nan() { now } else { gamma * now + (1.0 - gamma) * old })
    }

    fn failure(&mut self, rra: usize, ds: usize, point: f64) -> f64 {
        let Consolidation::Failures { delta_pos, delta_neg, devseasonal, window_length, threshold } =
            self.definition.rra[rra].cf
        else {
            return UNKNOWN;
        };
        let Consolidation::Seasonal { predict, .. } = self.definition.rra[devseasonal].cf else {
            return UNKNOWN;
        };
        let Consolidation::Predict { seasonal, .. } = self.definition.rra[predict].cf else {
            return UNKNOWN;
        };
        // Compat: RRDtool checks the position of the SEASONAL, not of the DEVSEASONAL that it reads.
        let word = if seasonal < rra { LAST_COEFFICIENT } else { COEFFICIENT };
        let deviation = f64::from_bits(self.words(devseasonal, ds)[word]);
        let prediction = self.prediction(predict, rra, ds).unwrap_or(UNKNOWN);
        let violation = !deviation.is_nan() && {
            point.is_nan()
                || point > prediction + delta_pos * deviation
                || point < prediction - delta_neg * deviation
        };
        let window = (window_length as usize).min(FLAGS);
        let mut flags = self.flags(rra, ds);
        flags.copy_within(0..window - 1, 1);
        flags[0] = u8::from(violation);
        self.set_flags(rra, ds, &flags);
        let count = flags[..window].iter().filter(|&&flag| flag != 0).count();
        if count as u64 >= threshold { 1.0 } else { 0.0 }
    }

    /// The flags share the bytes that other kinds use for their numbers.
    fn flags(&self, rra: usize, ds: usize) -> [u8; FLAGS] {
        let cell = &self.head.cdp[rra * self.shape.ds_count() + ds];
        let words = self.words(rra, ds);
        let mut bytes = [0; 32];
        for (chunk, word) in
            bytes.chunks_exact_mut(8).zip([cell.value.to_bits(), cell.unknown_pdps, words[0], words[1]])
        {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        std::array::from_fn(|index| bytes[index])
    }

    fn set_flags(&mut self, rra: usize, ds: usize, flags: &[u8; FLAGS]) {
        let word = |at: usize| {
            let mut bytes = [0; 8];
            let end = (at + 8).min(FLAGS);
            bytes[..end - at].copy_from_slice(&flags[at..end]);
            u64::from_le_bytes(bytes)
        };
        let words = self.words_mut(rra, ds);
        words[0] = word(16);
        words[1] = word(24);
        let cell = &mut self.head.cdp[rra * self.shape.ds_count() + ds];
        cell.value = f64::from_bits(word(0));
        cell.unknown_pdps = word(8);
    }

    /// Skips more PDPs than [`FOLLOWED_PDPS_MAX`].
    fn skip(&mut self, rra: usize, elapsed: u64) {
        for ds in 0..self.shape.ds_count() {
            let index = rra * self.shape.ds_count() + ds;
            match self.definition.rra[rra].cf.cf() {
                Cf::HwPredict | Cf::MhwPredict => {
                    let words = self.words_mut(rra, ds);
                    words[NULL_COUNT] = words[NULL_COUNT].wrapping_add(elapsed);
                    words[LAST_NULL_COUNT] = words[LAST_NULL_COUNT].wrapping_add(elapsed - 1);
                    set_row(&mut self.head.cdp[index], UNKNOWN);
                }
                Cf::Seasonal | Cf::DevSeasonal => {
                    let last = self.next_coefficient(rra, ds, elapsed);
                    let next = self.next_coefficient(rra, ds, elapsed.wrapping_add(1));
                    let words = self.words_mut(rra, ds);
                    words[LAST_COEFFICIENT] = last;
                    words[COEFFICIENT] = next;
                }
                Cf::DevPredict => set_row(&mut self.head.cdp[index], UNKNOWN),
                Cf::Failures => {
                    self.set_flags(rra, ds, &[0; FLAGS]);
                    set_row(&mut self.head.cdp[index], 0.0);
                }
                Cf::Average | Cf::Min | Cf::Max | Cf::Last => {}
            }
        }
    }
}

/// The intercept of a forecast after `point`.
fn next_intercept(alpha: f64, point: f64, coefficient: f64, baseline: f64, multiplicative: bool) -> f64 {
    let level = if multiplicative { ratio(point, coefficient) } else { point - coefficient };
    canonical(alpha * level + (1.0 - alpha) * baseline)
}

/// `value / by`, unknown for a divisor that is not positive: how multiplicative forecasts divide.
pub(super) fn ratio(value: f64, by: f64) -> f64 {
    if by <= 0.0 { UNKNOWN } else { value / by }
}

fn set_row(cell: &mut CdpPrep, value: f64) {
    cell.primary = value;
    cell.secondary = value;
}
