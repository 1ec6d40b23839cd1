//! Values that are an integer over a known denominator, within a few units in the last place.
//!
//! Inputs have a few decimals or are whole; RRDtool multiplies and divides them by seconds, and averages
//! divide by the PDPs of a row. So `value = integer / (10^d * m)`, with `m` made of step and PDPs per row,
//! rounded at each stage. Two stages of rounding can be repeated exactly ([`Rounding`]); for longer sums the
//! difference is stored, in units in the last place.

use super::ints::{self, IntScratch, Plan};
use super::{CodecError, ColumnHint, ordered, unordered};
use rrd::codec::varint;

/// The most decimals tried; such a power of ten is exact in a `u64` and in a double.
const DECIMALS_MAX: u32 = 12;
/// Larger denominators and numerators are not exact in a double.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
/// Values tested before a whole column is tried.
const SAMPLES: usize = 5;
/// Denominators tried on a whole column.
const TRIALS_MAX: usize = 4;
/// One value in this many may be no such fraction; with more exceptions, the values came about differently.
const VALUES_PER_EXCEPTION: usize = 8;

/// The column has corrections.
const CORRECTED: u8 = 1;
/// Some of its values are stored verbatim.
const EXCEPTIONS: u8 = 2;
const ROUNDING_SHIFT: u32 = 2;
/// Bits of the tag that this module owns.
pub(super) const TAG_MASK: u8 = 0x0f;

/// The denominator is a power of ten times a number that follows.
const MULTIPLIED: u8 = 0x10;
/// All integers are multiples of a number that follows.
const DIVIDED: u8 = 0x20;
/// Integers are `quotient * unit + rest`, in two columns; the unit follows.
const SPLIT: u8 = 0x40;
const DECIMALS_MASK: u8 = 0x0f;
/// Denominators of this many decimals come from times in microseconds, whose remainders deserve a column.
const SPLIT_DECIMALS_MIN: u32 = 6;
/// Bits per value that a split must promise to save before it is tried.
const SPLIT_BITS_MIN: usize = 1;

/// What happened to the fraction after it was rounded to a double.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rounding {
    /// Nothing.
    None,
    /// Multiplied and divided by the step: an integer difference became a rate, an amount and a PDP.
    Once,
    /// The same twice: a gauge became an amount, a rate, an amount and a PDP.
    Twice,
    /// Rounded to single precision (Ganglia's floats).
    Single,
}

const ROUNDINGS: [Rounding; 4] = [Rounding::None, Rounding::Once, Rounding::Twice, Rounding::Single];

/// How an integer becomes a value.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Scale {
    decimals: u32,
    multiplier: u64,
    denominator: f64,
    rounding: Rounding,
    step: f64,
}

impl Scale {
    fn new(decimals: u32, multiplier: u64) -> Option<Scale> {
        let denominator = 10u64.checked_pow(decimals)?.checked_mul(multiplier)?;
        let exact = denominator > 0 && denominator as f64 <= EXACT_MAX;
        exact.then_some(Scale {
            decimals,
            multiplier,
            denominator: denominator as f64,
            rounding: Rounding::None,
            step: 1.0,
        })
    }

    #[inline]
    fn value(&self, integer: i64) -> f64 {
        let fraction = integer as f64 / self.denominator;
        match self.rounding {
            Rounding::None => fraction,
            Rounding::Once => fraction * self.step / self.step,
            Rounding::Twice => fraction * self.step / self.step * self.step / self.step,
            Rounding::Single => f64::from(fraction as f32),
        }
    }

    /// The nearest integer to `value`, and the error of its fraction in units in the last place.
    #[inline]
    fn split(&self, value: f64) -> Option<(i64, i64)> {
        let product = value * self.denominator;
        if product.is_nan() || product.abs() >= EXACT_MAX {
            return None;
        }
        let integer = product.round_ties_even() as i64;
        Some((integer, ordered(value).wrapping_sub(ordered(self.value(integer)))))
    }
}

/// Buffers reused for each column.
#[derive(Debug, Default)]
pub(super) struct ScaledScratch {
    hint: Option<ColumnHint>,
    /// Denominators to try for the hint, smallest first.
    candidates: Vec<Scale>,
    /// The scale that fitted the last column.
    last: Option<Scale>,
    trial: Trial,
    best: Trial,
}

/// A column split by a scale.
#[derive(Debug, Default)]
struct Trial {
    scale: Option<Scale>,
    integers: Vec<i64>,
    corrections: Vec<i64>,
    corrected: bool,
    exceptions: Vec<i64>,
    divisor: u64,
    /// Unit of a split column, or 0, with the remainders; `integers` are then the quotients.
    unit: i64,
    rests: Vec<i64>,
    quotients: Vec<i64>,
    rest_plan: Option<Plan>,
    integer_plan: Option<Plan>,
    correction_plan: Option<Plan>,
    bits: usize,
}

impl Trial {
    /// Divides the integers by their common divisor, and cancels it from the denominator as far as possible.
    fn divide(&mut self) {
        self.divisor = greatest_common_divisor(self.integers.iter().map(|integer| integer.unsigned_abs()));
        if self.divisor <= 1 {
            return;
        }
        self.integers.iter_mut().for_each(|integer| *integer /= self.divisor as i64);
        let Some(scale) = self.scale else { return };
        let shared = greatest_common_divisor([self.divisor, scale.multiplier].into_iter());
        if let Some(reduced) = Scale::new(scale.decimals, scale.multiplier / shared) {
            self.divisor /= shared;
            self.scale = Some(Scale { rounding: scale.rounding, step: scale.step, ..reduced });
        }
    }
}

/// The largest accepted error of a row's sums, in units in the last place: rounding errors add up like a
/// random walk.
fn correction_max(hint: &ColumnHint) -> i64 {
    4 + 2 * (hint.pdp_per_row.min(1 << 20) as f64).sqrt() as i64
}

fn candidates(hint: &ColumnHint, out: &mut Vec<Scale>) {
    let (step, rows) = (hint.step.max(1), hint.pdp_per_row.max(1));
    let products = [Some(1), Some(step), step.checked_mul(step)].into_iter().flatten();
    let multipliers: Vec<u64> =
        products.flat_map(|product| [Some(product), product.checked_mul(rows)]).flatten().collect();
    out.clear();
    for decimals in 0..=DECIMALS_MAX {
        out.extend(multipliers.iter().filter_map(|multiplier| Scale::new(decimals, *multiplier)));
    }
    out.sort_by(|a, b| a.denominator.total_cmp(&b.denominator).then(a.decimals.cmp(&b.decimals)));
    out.dedup_by_key(|scale| scale.denominator.to_bits());
}

/// Splits `values`; returns the size in bits if it is below `bits_max`, and then [`put`] writes the column.
pub(super) fn fit(
    values: &[f64],
    hint: &ColumnHint,
    bits_max: usize,
    scratch: &mut ScaledScratch,
    ints: &mut IntScratch,
) -> Option<usize> {
    if scratch.hint != Some(*hint) {
        candidates(hint, &mut scratch.candidates);
        scratch.hint = Some(*hint);
        scratch.last = None;
    }
    scratch.best.scale = None;
    scratch.best.bits = bits_max;
    let samples = samples(values);
    let correction_max = correction_max(hint);
    let last = scratch.last.filter(|last| fits_samples(last, &samples, correction_max));
    if let Some(last) = last {
        attempt(values, last, correction_max, hint, scratch, ints);
        if scratch.best.scale.is_some() && !scratch.best.corrected && scratch.best.exceptions.is_empty() {
            return Some(scratch.best.bits);
        }
    }
    let tried = last.map_or(0.0, |last| last.denominator);
    let mut trials = 0;
    for index in 0..scratch.candidates.len() {
        let scale = scratch.candidates[index];
        if scale.denominator == tried {
            if scratch.best.scale.is_some() && scratch.best.exceptions.is_empty() {
                break;
            }
        } else if fits_samples(&scale, &samples, correction_max) {
            let bits_before = scratch.best.bits;
            attempt(values, scale, correction_max, hint, scratch, ints);
            trials += 1;
            let won = scratch.best.bits < bits_before;
            if trials == TRIALS_MAX || (won && scratch.best.exceptions.is_empty()) {
                break;
            }
        }
    }
    if scratch.best.scale.is_none() {
        attempt_single(values, &samples, correction_max, hint, scratch, ints);
    }
    scratch.last = scratch.best.scale.map(|scale| Scale { rounding: Rounding::None, ..scale });
    scratch.best.scale.map(|_| scratch.best.bits)
}

/// Some values from all over the column, without zeros, which fit any scale.
fn samples(values: &[f64]) -> [f64; SAMPLES] {
    let mut samples = [0.0; SAMPLES];
    for (index, sample) in samples.iter_mut().enumerate() {
        let at = index * (values.len() - 1) / (SAMPLES - 1);
        *sample = values[at..].iter().copied().find(|value| *value != 0.0).unwrap_or(0.0);
    }
    samples
}

/// True when all samples but one are such fractions, and that is significant: the integers leave bits free.
fn fits_samples(scale: &Scale, samples: &[f64; SAMPLES], correction_max: i64) -> bool {
    let mut unfit = 0;
    for &sample in samples {
        let fit = scale.split(sample).is_some_and(|(integer, correction)| {
            let bits = super::bits::width_of(integer.unsigned_abs());
            correction.abs() <= correction_max.min(1i64 << 50u32.saturating_sub(bits)) && bits <= 50
        });
        unfit += u32::from(!fit);
        if unfit > 1 {
            return false;
        }
    }
    true
}

fn attempt(
    values: &[f64],
    scale: Scale,
    correction_max: i64,
    hint: &ColumnHint,
    scratch: &mut ScaledScratch,
    ints: &mut IntScratch,
) {
    let trial = &mut scratch.trial;
    if take_apart(values, scale, correction_max, hint, trial) {
        trial.divide();
        let mut plan = ints::plan(&trial.integers, ints);
        trial.unit = 0;
        trial.rest_plan = None;
        if let Some(unit) = unit_of(&scale, hint, trial) {
            plan = split_by(unit, plan, trial, ints);
        }
        trial.integer_plan = Some(plan);
        trial.correction_plan = trial.corrected.then(|| ints::plan_noise(&trial.corrections, ints));
        let correction_bits = trial.correction_plan.map_or(0, |plan| plan.bits);
        let rest_bits = trial.rest_plan.map_or(0, |plan| plan.bits);
        let multiplier = trial.scale.map_or(1, |scale| scale.multiplier);
        let factors = [multiplier, trial.divisor, trial.unit as u64].map(factor_bits).iter().sum::<usize>();
        trial.bits = 16 + factors + plan.bits + rest_bits + correction_bits + trial.exceptions.len() * 80;
        if trial.bits < scratch.best.bits {
            std::mem::swap(&mut scratch.trial, &mut scratch.best);
        }
    }
}

/// Doubles that were single-precision before, such as a Ganglia gauge with few decimals.
fn attempt_single(
    values: &[f64],
    samples: &[f64; SAMPLES],
    correction_max: i64,
    hint: &ColumnHint,
    scratch: &mut ScaledScratch,
    ints: &mut IntScratch,
) {
    if samples.iter().any(|&sample| f64::from(sample as f32).to_bits() != sample.to_bits()) {
        return;
    }
    for decimals in 1..=6 {
        let Some(scale) = Scale::new(decimals, 1).map(|scale| Scale { rounding: Rounding::Single, ..scale })
        else {
            return;
        };
        if samples.iter().all(|&sample| scale.split(sample).is_some_and(|(_, correction)| correction == 0)) {
            attempt(values, scale, correction_max.min(0), hint, scratch, ints);
            return;
        }
    }
}

/// Splits every value; false when too many are no such fraction.
fn take_apart(
    values: &[f64],
    scale: Scale,
    correction_max: i64,
    hint: &ColumnHint,
    trial: &mut Trial,
) -> bool {
    let exceptions_max = values.len() / VALUES_PER_EXCEPTION;
    trial.integers.clear();
    trial.corrections.clear();
    trial.exceptions.clear();
    trial.scale = Some(scale);
    let mut off = 0;
    let mut fill = 0;
    for (index, &value) in values.iter().enumerate() {
        match scale.split(value).filter(|(_, correction)| correction.abs() <= correction_max) {
            Some((integer, correction)) => {
                off += usize::from(correction != 0);
                fill = integer;
                trial.corrections.push(correction);
            }
            None if trial.exceptions.len() == exceptions_max => return false,
            None => {
                trial.exceptions.push(index as i64);
                trial.corrections.push(0);
            }
        }
        trial.integers.push(fill);
    }
    if off > 0 && scale.rounding == Rounding::None {
        off = repeat_rounding(values, scale, hint, off, trial);
    }
    trial.corrected = off > 0;
    true
}

/// Tries to explain the corrections by multiplying and dividing by the step; returns how many remain.
fn repeat_rounding(values: &[f64], scale: Scale, hint: &ColumnHint, off: usize, trial: &mut Trial) -> usize {
    let mut best = (off, Rounding::None);
    let step = hint.step as f64 / f64::from(hint.units_per_second.max(1));
    for rounding in [Rounding::Once, Rounding::Twice] {
        let again = Scale { rounding, step, ..scale };
        let unlike = |(value, integer): &(&f64, &i64)| again.value(**integer).to_bits() != value.to_bits();
        let unlike_count = values.iter().zip(&trial.integers).filter(unlike).count();
        let off = unlike_count.saturating_sub(trial.exceptions.len());
        if off < best.0 {
            best = (off, rounding);
        }
    }
    // It does not explain sums of many values; few corrections must remain to make the change worthwhile.
    if best.1 == Rounding::None || best.0 * 4 > off * 3 {
        return off;
    }
    let scale = Scale { rounding: best.1, step, ..scale };
    trial.scale = Some(scale);
    for (index, correction) in trial.corrections.iter_mut().enumerate() {
        *correction = ordered(values[index]).wrapping_sub(ordered(scale.value(trial.integers[index])));
    }
    trial.exceptions.iter().for_each(|&index| trial.corrections[index as usize] = 0);
    best.0
}

/// Bits of a factor in the column's head; 0 and 1 take none.
fn factor_bits(factor: u64) -> usize {
    if factor > 1 { ints::varint_bits(factor) } else { 0 }
}

fn split(integer: i64, unit: i64) -> (i64, i64) {
    let quotient = (integer + integer.signum() * (unit >> 1)) / unit;
    (quotient, integer - quotient * unit)
}

/// The unit that makes the remainders smallest: what the value would be if every sample had been on time.
fn unit_of(scale: &Scale, hint: &ColumnHint, trial: &Trial) -> Option<i64> {
    if scale.decimals < SPLIT_DECIMALS_MIN || trial.divisor > 1 {
        return None;
    }
    let denominator = scale.denominator as i64;
    let probe = &trial.integers[..trial.integers.len().min(64)];
    let saved = |unit: i64| {
        let width = super::bits::width_of(unit as u64) as usize;
        let rests: usize = probe
            .iter()
            .map(|&integer| super::bits::width_of(split(integer, unit).1.unsigned_abs()) as usize)
            .sum();
        (width * probe.len()).saturating_sub(rests + 2 * probe.len())
    };
    let rows = hint.pdp_per_row.clamp(1, 1 << 20) as i64;
    let coarse = [1, 10, 100, 1000].into_iter().flat_map(|tens| [tens, tens * rows]);
    let units = coarse.filter(|coarse| denominator % coarse == 0 && denominator / coarse >= 1000);
    let best = units.map(|coarse| denominator / coarse).max_by_key(|unit| saved(*unit))?;
    (saved(best) >= SPLIT_BITS_MIN * probe.len()).then_some(best)
}

/// Splits the integers if that is shorter than `whole`; returns the plan of what is then in `integers`.
fn split_by(unit: i64, whole: Plan, trial: &mut Trial, ints: &mut IntScratch) -> Plan {
    trial.rests.clear();
    trial.rests.extend(trial.integers.iter().map(|&integer| split(integer, unit).1));
    trial.quotients.clear();
    trial.quotients.extend(trial.integers.iter().map(|&integer| split(integer, unit).0));
    let quotients = ints::plan(&trial.quotients, ints);
    let rests = ints::plan_noise(&trial.rests, ints);
    if quotients.reckoned() + rests.reckoned() >= whole.reckoned() {
        return whole;
    }
    std::mem::swap(&mut trial.integers, &mut trial.quotients);
    trial.unit = unit;
    trial.rest_plan = Some(rests);
    quotients
}

fn greatest_common_divisor(numbers: impl Iterator<Item = u64>) -> u64 {
    let mut divisor = 0u64;
    for number in numbers {
        let (mut a, mut b) = (divisor, number);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        divisor = a;
        if divisor == 1 {
            break;
        }
    }
    divisor
}

/// Appends what [`fit`] found; the tag is `family` plus this module's bits. Only valid after `fit` succeeded.
pub(super) fn put(
    family: u8,
    values: &[f64],
    scratch: &mut ScaledScratch,
    ints: &mut IntScratch,
    out: &mut Vec<u8>,
) {
    let best = &scratch.best;
    let (Some(scale), Some(plan)) = (best.scale, best.integer_plan) else { return };
    let tag = family
        | if best.corrected { CORRECTED } else { 0 }
        | if best.exceptions.is_empty() { 0 } else { EXCEPTIONS }
        | ((scale.rounding as u8) << ROUNDING_SHIFT);
    out.push(tag);
    let divided = best.divisor > 1;
    let multiplied = scale.multiplier > 1;
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    let shape = flag(multiplied, MULTIPLIED) | flag(divided, DIVIDED) | flag(best.unit > 0, SPLIT);
    out.push(scale.decimals as u8 | shape);
    if multiplied {
        varint::put(out, scale.multiplier);
    }
    if divided {
        varint::put(out, best.divisor);
    }
    if best.unit > 0 {
        varint::put(out, best.unit as u64);
    }
    if matches!(scale.rounding, Rounding::Once | Rounding::Twice) {
        put_step(scale.step, out);
    }
    ints::encode_planned(&best.integers, plan, ints, out);
    if let Some(plan) = best.rest_plan {
        ints::encode_planned(&best.rests, plan, ints, out);
    }
    if let Some(plan) = best.correction_plan {
        ints::encode_planned(&best.corrections, plan, ints, out);
    }
    if !best.exceptions.is_empty() {
        varint::put(out, best.exceptions.len() as u64);
        ints::encode(&best.exceptions, ints, out);
        let kept = best.exceptions.iter().map(|&index| values[index as usize]);
        out.extend(kept.flat_map(|value| value.to_bits().to_le_bytes()));
    }
}

/// Writes the step: whole seconds as such, anything else as zero and its bits.
fn put_step(step: f64, out: &mut Vec<u8>) {
    if step.fract() == 0.0 && (1.0..EXACT_MAX).contains(&step) {
        varint::put(out, step as u64);
    } else {
        varint::put(out, 0);
        out.extend_from_slice(&step.to_bits().to_le_bytes());
    }
}

fn take_step(bytes: &mut &[u8]) -> Result<f64, CodecError> {
    match take_number(bytes)? {
        0 => {
            let (word, rest) = bytes.split_first_chunk::<8>().ok_or(CodecError::Cut)?;
            *bytes = rest;
            Ok(f64::from_bits(u64::from_le_bytes(*word)))
        }
        step => Ok(step as f64),
    }
}

fn take_number(bytes: &mut &[u8]) -> Result<u64, CodecError> {
    varint::take(bytes).ok_or(CodecError::Cut)
}

/// Buffers for decoding.
#[derive(Debug, Default)]
pub(super) struct IntBuffers {
    integers: Vec<i64>,
    corrections: Vec<i64>,
}

/// Decodes `count` values into `out` and advances `bytes`, which start after `tag`, past them.
pub(super) fn decode(
    tag: u8,
    bytes: &mut &[u8],
    count: usize,
    buffers: &mut IntBuffers,
    out: &mut Vec<f64>,
) -> Result<(), CodecError> {
    let (&shape, rest) = bytes.split_first().ok_or(CodecError::Cut)?;
    *bytes = rest;
    if shape & !(DECIMALS_MASK | MULTIPLIED | DIVIDED | SPLIT) != 0 {
        return Err(CodecError::Field("scale"));
    }
    let multiplier = if shape & MULTIPLIED != 0 { take_number(bytes)? } else { 1 };
    let divisor = if shape & DIVIDED != 0 { take_number(bytes)? } else { 1 };
    let unit = if shape & SPLIT != 0 { take_number(bytes)? } else { 1 };
    let scale =
        Scale::new(u32::from(shape & DECIMALS_MASK), multiplier).ok_or(CodecError::Field("denominator"))?;
    let rounding = ROUNDINGS[usize::from((tag & TAG_MASK) >> ROUNDING_SHIFT)];
    let repeated = matches!(rounding, Rounding::Once | Rounding::Twice);
    let step = if repeated { take_step(bytes)? } else { 1.0 };
    let scale = Scale { rounding, step, ..scale };
    buffers.integers.clear();
    ints::decode(bytes, count, &mut buffers.integers)?;
    if shape & SPLIT != 0 {
        buffers.corrections.clear();
        ints::decode(bytes, count, &mut buffers.corrections)?;
        for (integer, rest) in buffers.integers.iter_mut().zip(&buffers.corrections) {
            *integer = integer.wrapping_mul(unit as i64).wrapping_add(*rest);
        }
    }
    let integers = buffers.integers.iter().map(|integer| integer.wrapping_mul(divisor as i64));
    let from = out.len();
    if tag & CORRECTED == 0 {
        match rounding {
            Rounding::None => out.extend(integers.map(|integer| integer as f64 / scale.denominator)),
            _ => out.extend(integers.map(|integer| scale.value(integer))),
        }
    } else {
        buffers.corrections.clear();
        ints::decode(bytes, count, &mut buffers.corrections)?;
        let both = integers.zip(&buffers.corrections);
        out.extend(
            both.map(|(integer, correction)| {
                unordered(ordered(scale.value(integer)).wrapping_add(*correction))
            }),
        );
    }
    if tag & EXCEPTIONS != 0 { decode_exceptions(bytes, buffers, &mut out[from..]) } else { Ok(()) }
}

fn decode_exceptions(
    bytes: &mut &[u8],
    buffers: &mut IntBuffers,
    values: &mut [f64],
) -> Result<(), CodecError> {
    let count = usize::try_from(take_number(bytes)?).unwrap_or(usize::MAX);
    if count == 0 || count > values.len() {
        return Err(CodecError::Field("exception count"));
    }
    buffers.corrections.clear();
    ints::decode(bytes, count, &mut buffers.corrections)?;
    for &place in &buffers.corrections {
        let (word, rest) = bytes.split_first_chunk::<8>().ok_or(CodecError::Cut)?;
        *bytes = rest;
        let value = usize::try_from(place).ok().and_then(|place| values.get_mut(place));
        *value.ok_or(CodecError::Field("exception place"))? = f64::from_bits(u64::from_le_bytes(*word));
    }
    Ok(())
}
