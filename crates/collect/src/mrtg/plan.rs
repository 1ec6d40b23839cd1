//! What a configuration polls, and what it makes of the answers.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;

use rrd::time::Timestamp;

use super::agents::known::KnownInterfaces;
use super::config::{Config, TargetSettings};
use super::expression::Expression;
use super::fault::Place;
use super::interval::Interval;
use super::operand::Operand;
use super::snmp_options;
use super::spec::{self, DsType};
use super::target;
use super::term::{Term, TermContext};
use super::threshold::Thresholds;
use crate::inventory::{Inventory, InventoryFull, RrdId, RrdSpec};
use crate::reading::{Readings, Value};

/// Most RRDs of one configuration.
pub const RRDS_MAX: usize = 1_000_000;

/// How many targets a message names; of the others, only the number.
const TARGETS_NAMED: usize = 3;

/// A term by its number in a [`MrtgPlan`].
pub type TermId = usize;

/// What was read for a term in a round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// When it came, in seconds.
    pub time: i64,
    /// The first value.
    pub input: Operand,
    /// The second value.
    pub output: Operand,
    /// Whether what was asked has restarted since its last answer: counters do not go on.
    pub is_reset: bool,
}

/// A target.
#[derive(Clone, Debug)]
pub struct PlannedTarget {
    /// In lower case.
    pub name: String,
    /// Where its `Target` stands.
    pub place: Place,
    /// The RRD that it feeds.
    pub rrd: RrdId,
    /// The terms of its expression, by the numbers of the plan.
    pub terms: Vec<TermId>,
    /// What is computed of them, or why it cannot be.
    pub expression: Result<Expression, String>,
    /// The type of its data sources.
    pub ds_type: DsType,
    /// What is done when its rates leave their bounds.
    pub thresholds: Option<Box<Thresholds>>,
}

/// What a configuration polls.
#[derive(Clone, Debug)]
pub struct MrtgPlan {
    /// How often.
    pub interval: Interval,
    /// Every distinct term with its text.
    pub terms: Vec<(String, Term)>,
    /// By term: the targets that use it, and as which of their terms.
    pub users: Vec<Vec<(u32, u32)>>,
    /// Where interfaces were in MRTG's time.
    pub known: Arc<KnownInterfaces>,
    /// The targets in the order of the configuration.
    pub targets: Vec<PlannedTarget>,
    /// Their RRDs.
    pub inventory: Inventory,
    /// Whether agents are asked for `sysUpTime`: no `NoMib2`.
    pub asks_uptime: bool,
}

/// What the caller knows of a configuration's surroundings.
#[derive(Clone, Debug, Default)]
pub struct PlanContext {
    /// What the names of RRDs begin with.
    pub prefix: String,
    /// Symbolic names of `LoadMIBs`.
    pub names: Arc<HashMap<String, Vec<u32>>>,
    /// What MRTG's file `.ok` says.
    pub known: Arc<KnownInterfaces>,
}

impl MrtgPlan {
    /// What `config` polls.
    ///
    /// # Errors
    /// When it has too many targets.
    pub fn new(config: &Config, context: &PlanContext) -> Result<Self, InventoryFull> {
        let interval = spec::interval(config);
        let mut plan = MrtgPlan {
            interval,
            terms: Vec::new(),
            users: Vec::new(),
            known: Arc::clone(&context.known),
            targets: Vec::with_capacity(config.targets.len()),
            inventory: Inventory::new(RRDS_MAX),
            asks_uptime: config.get("nomib2").is_none_or(|value| value.eq_ignore_ascii_case("no")),
        };
        let max_age = config.get("maxage").and_then(|seconds| seconds.parse().ok());
        let mut numbers: HashMap<(String, String), TermId> = HashMap::new();
        // Many targets have RRDs of one kind.
        let mut specs: HashSet<Arc<RrdSpec>> = HashSet::new();
        for settings in &config.targets {
            let surroundings = term_context(config, settings, context);
            // Equal texts with other options are other terms.
            let discriminator = format!(
                "{:?} {} {}",
                surroundings.options, surroundings.is_ipv6_first, surroundings.no_high_capacity
            );
            let value = target::parse(settings.get("target").unwrap_or(""), &surroundings);
            let terms = value.terms.into_iter().map(|(text, term)| {
                let key = (
                    text.clone(),
                    if matches!(term, Term::Program(_)) { String::new() } else { discriminator.clone() },
                );
                *numbers.entry(key).or_insert_with(|| {
                    plan.terms.push((text, term));
                    plan.users.push(Vec::new());
                    plan.terms.len() - 1
                })
            });
            let terms: Vec<TermId> = terms.collect();
            let number = plan.targets.len() as u32;
            for (nth, term) in terms.iter().enumerate() {
                plan.users[*term].push((number, nth as u32));
            }
            let name = spec::rrd_name(settings, &context.prefix);
            let rrd = plan.inventory.find_or_add(name.as_bytes(), || {
                shared(&mut specs, spec::rrd_spec(settings, interval, max_age))
            })?;
            let place = settings.settings.get("target").map_or(&settings.place, |setting| &setting.place);
            plan.targets.push(PlannedTarget {
                name: settings.name.clone(),
                place: place.clone(),
                rrd,
                terms,
                expression: value.expression,
                ds_type: DsType::of(settings),
                thresholds: Thresholds::of(config, settings).map(Box::new),
            });
        }
        Ok(plan)
    }

    /// The targets that use these terms, for messages: `target[a], target[b] and 3 more`.
    pub fn describe_users(&self, terms: &[TermId]) -> String {
        let mut users: Vec<u32> =
            terms.iter().flat_map(|term| &self.users[*term]).map(|(target, _)| *target).collect();
        users.sort_unstable();
        users.dedup();
        let names = users.iter().take(TARGETS_NAMED).map(|user| &self.targets[*user as usize].name);
        let names: Vec<String> = names.map(|name| format!("target[{name}]")).collect();
        let more = users.len().saturating_sub(TARGETS_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        names.join(", ") + &more
    }

    /// Appends the reading of a target. `answers` has one entry a term; `now` is for targets of several terms, as in MRTG.
    pub fn push_reading(
        &self,
        target: &PlannedTarget,
        answers: &[Answer],
        now: i64,
        readings: &mut Readings,
    ) {
        let is_rounded = target.ds_type != DsType::Gauge;
        let time = match target.terms[..] {
            [term] => answers.get(term).map_or(now, |answer| answer.time),
            _ => now,
        };
        let is_reset =
            || target.terms.iter().any(|term| answers.get(*term).is_some_and(|answer| answer.is_reset));
        if matches!(target.ds_type, DsType::Counter | DsType::Derive) && is_reset() {
            // What lies between the last reading and this one is unknown, not the difference of two counters.
            let before = Timestamp::new(time - 1, 999_999);
            readings.push(target.rrd, before, [Value::Unknown, Value::Unknown]);
        }
        let mut texts = [String::new(), String::new()];
        let values = [0, 1].map(|side| {
            let operand = |term: usize| {
                let answer = answers.get(*target.terms.get(term)?)?;
                Some(if side == 0 { &answer.input } else { &answer.output })
            };
            let Ok(expression) = &target.expression else { return Kept::Unknown };
            // The ordinary case needs no arithmetic.
            if let Expression::Term(term) = expression {
                match operand(*term) {
                    Some(Operand::Unsigned(number)) => return Kept::Unsigned(*number),
                    Some(Operand::Signed(number)) => return Kept::Signed(*number),
                    _ => {}
                }
            }
            let value = expression.evaluate(&|term| operand(term)?.to_decimal());
            match value.map(|value| if is_rounded { value.rounded() } else { value }) {
                None => Kept::Unknown,
                Some(number) => {
                    write!(texts[side], "{number}").expect("writing to a String cannot fail");
                    Kept::Text
                }
            }
        });
        let values = [0, 1].map(|side| match values[side] {
            Kept::Unknown => Value::Unknown,
            Kept::Unsigned(number) => Value::Unsigned(number),
            Kept::Signed(number) => Value::Signed(number),
            Kept::Text => Value::Text(texts[side].as_bytes()),
        });
        readings.push(target.rrd, Timestamp::whole(time), values);
    }
}

/// A value, whose text is kept beside it.
#[derive(Clone, Copy)]
enum Kept {
    Unknown,
    Unsigned(u64),
    Signed(i64),
    Text,
}

/// The one of `known` that is equal to `new`, which is one of them from now on.
fn shared(known: &mut HashSet<Arc<RrdSpec>>, new: RrdSpec) -> Arc<RrdSpec> {
    if let Some(old) = known.get(&new) {
        return Arc::clone(old);
    }
    let new = Arc::new(new);
    known.insert(Arc::clone(&new));
    new
}

fn term_context(config: &Config, target: &TargetSettings, context: &PlanContext) -> TermContext {
    let pairs = |text: Option<&str>| text.and_then(snmp_options::parse).unwrap_or_default();
    let mut all = pairs(config.get("snmpoptions"));
    all.extend(pairs(target.get("snmpoptions")));
    let is_yes = |keyword: &str| target.get(keyword).is_some_and(|value| value.eq_ignore_ascii_case("yes"));
    let single = config.get("singlerequest").is_some_and(|value| !value.eq_ignore_ascii_case("no"));
    TermContext {
        options: all,
        is_ipv6_first: config.is_yes("enableipv6") && !is_yes("ipv4only"),
        no_high_capacity: is_yes("nohc"),
        single_request: single,
        names: Arc::clone(&context.names),
    }
}

#[cfg(test)]
mod tests;
