//! What the engine says of agents, and what follows: answers to terms, further lookups, complaints.

use std::net::SocketAddr;
use std::sync::Arc;

use super::lookup::{Column, Kind};
use super::rows::{self, PLACEHOLDER};
use super::{Agent, Agents, FIRST_WALK, Wanted};
use crate::complaints::Complaints;
use crate::mrtg::decimal::Decimal;
use crate::mrtg::operand::Operand;
use crate::mrtg::plan::{Answer, MrtgPlan, TermId};
use crate::mrtg::term::{How, ObjectSpec, SnmpTerm, Term};
use crate::snmp::answer::{Outcome, PassReport, Polled, Trouble, WalkedRow};
use crate::snmp::engine::{DeviceId, Handler, Now};
use crate::snmp::outbox::Outbox;

/// A term on its way.
#[derive(Debug)]
struct Polling {
    agent: usize,
    /// Whether a part of it comes by a walk.
    is_walked: bool,
    /// The parts that have come, if one comes by a walk.
    parts: [Option<Operand>; 2],
    /// Whether it has been said that a value is missing.
    is_lacking: bool,
}

/// The end of a pass.
#[derive(Clone, Copy, Debug)]
struct Ended {
    number: usize,
    time: i64,
    is_alive: bool,
}

/// All but the engine, which calls it.
#[derive(Debug)]
pub(super) struct State {
    pub plan: Arc<MrtgPlan>,
    pub agents: Vec<Agent>,
    pub answers: Vec<(TermId, Answer)>,
    pub complaints: Complaints,
    pub outbox: Outbox,
    terms: Vec<Option<Box<Polling>>>,
    walked: Vec<(usize, u32, Option<Vec<WalkedRow>>)>,
    ended: Vec<Ended>,
    /// Agents that did not answer a walk.
    silent: Vec<usize>,
}

impl State {
    pub(super) fn new(plan: Arc<MrtgPlan>) -> Self {
        State {
            agents: Vec::new(),
            answers: Vec::new(),
            complaints: Complaints::default(),
            outbox: Outbox::default(),
            terms: plan.terms.iter().map(|_| None).collect(),
            walked: Vec::new(),
            ended: Vec::new(),
            silent: Vec::new(),
            plan,
        }
    }

    pub(super) fn add_term(&mut self, id: TermId, agent: usize, spec: &SnmpTerm) {
        let is_walked = rows::queries(spec).any(|(_, query)| query.how != How::Get);
        let polling = Polling { agent, is_walked, parts: [None, None], is_lacking: false };
        self.terms[id] = Some(Box::new(polling));
    }

    pub(super) fn spec(&self, term: TermId) -> Option<&SnmpTerm> {
        spec_of(&self.plan, term)
    }

    /// The terms of an agent that name an interface which is not known.
    pub(super) fn unlocated(&self, number: usize) -> Vec<TermId> {
        let agent = &self.agents[number];
        let is_lost = |term: &TermId| {
            self.spec(*term).is_some_and(|spec| {
                rows::references(spec).any(|reference| !rows::is_located(&agent.interfaces, reference))
            })
        };
        agent.terms.iter().copied().filter(is_lost).collect()
    }

    fn answer(&mut self, term: TermId, time: i64, is_reset: bool, [input, output]: [Operand; 2]) {
        self.answers.push((term, Answer { time, input, output, is_reset }));
    }

    /// A term about which nothing was learnt: its constants are known all the same.
    fn answer_unknown(&mut self, term: TermId, time: i64) {
        let Some(polling) = self.terms.get_mut(term).and_then(Option::as_mut) else { return };
        let Some(spec) = spec_of(&self.plan, term) else { return };
        polling.parts = [None, None];
        let parts = [&spec.input, &spec.output].map(|object| constant(object).unwrap_or_default());
        self.answer(term, time, false, parts);
    }

    /// A part of a term that comes by walks.
    fn take_part(&mut self, term: TermId, is_output: bool, time: i64, value: Operand) {
        let Some(polling) = self.terms.get_mut(term).and_then(Option::as_mut) else { return };
        let Some(spec) = spec_of(&self.plan, term) else { return };
        polling.parts[usize::from(is_output)] = Some(value);
        let constants = [&spec.input, &spec.output].map(constant);
        for (part, constant) in polling.parts.iter_mut().zip(constants) {
            *part = part.take().or(constant);
        }
        if let [Some(_), Some(_)] = polling.parts {
            let parts = std::mem::take(&mut polling.parts).map(Option::unwrap_or_default);
            self.answer(term, time, false, parts);
        }
    }

    /// Says once that an agent has no number for a term, and when it has one again.
    fn note_lack(&mut self, term: TermId, values: &[Polled]) {
        let is_number =
            |value: &Polled| !matches!(value, Polled::Missing | Polled::NoNumber | Polled::Ticks(_));
        let is_lacking = !values.iter().all(is_number);
        let Some(polling) = self.terms.get_mut(term).and_then(Option::as_mut) else { return };
        if std::mem::replace(&mut polling.is_lacking, is_lacking) == is_lacking {
            return;
        }
        let Some(spec) = spec_of(&self.plan, term) else { return };
        let got = rows::queries(spec).filter(|(_, query)| query.how == How::Get).zip(values);
        let lacking: Vec<String> = got
            .filter(|(_, value)| !is_number(value) || !is_lacking)
            .map(|((_, query), value)| {
                let what = if *value == Polled::Missing { "has no" } else { "has no number as" };
                format!("{what} {}", rows::describe(query))
            })
            .collect();
        let agent = &self.agents[polling.agent].name;
        let objects: Vec<String> = rows::queries(spec).map(|(_, query)| rows::describe(query)).collect();
        let subject = format!("{agent}: {}", objects.join(" and "));
        match is_lacking {
            true => {
                let users = self.plan.describe_users(&[term]);
                let text = format!("the device {} ({users})", lacking.join(" and "));
                self.complaints.raise(&subject, text);
            }
            false => self.complaints.resolve(&subject),
        }
    }
}

impl Handler for State {
    fn send(&mut self, device: DeviceId, to: SocketAddr, datagram: &[u8]) {
        self.outbox.push(device, to, datagram);
    }

    fn outcome(&mut self, outcome: Outcome<'_>) {
        let Outcome { device, key, time, values, is_answered, is_reset, is_moved } = outcome;
        if key == PLACEHOLDER {
            return;
        }
        let term = key as TermId;
        if is_moved {
            return self.agents[device.index()].moved.push(term);
        }
        let is_v1 = self.agents[device.index()].is_v1;
        let Some(polling) = self.terms.get(term).and_then(Option::as_ref) else { return };
        let Some(spec) = spec_of(&self.plan, term) else { return };
        // Version 1 refuses the whole request of MRTG when an object is missing.
        let is_refused = is_v1 && values.contains(&Polled::Missing);
        let (is_walked, mut left) = (polling.is_walked, values.iter());
        let parts = [&spec.input, &spec.output].map(|object| match object {
            ObjectSpec::Object(query) if query.how == How::Get => {
                let value = left.next().copied().unwrap_or(Polled::Missing);
                Some(if is_refused { Operand::Unknown } else { operand(value, query.is_status) })
            }
            other => constant(other),
        });
        if is_walked {
            for (is_output, part) in [false, true].into_iter().zip(parts) {
                if let Some(part) = part {
                    self.take_part(term, is_output, time.whole, part);
                }
            }
        } else {
            self.answer(term, time.whole, is_reset, parts.map(Option::unwrap_or_default));
        }
        if is_answered {
            self.note_lack(term, values);
        }
    }

    fn pass_ended(&mut self, device: DeviceId, report: &PassReport) {
        let (time, is_alive) = (report.due.whole, report.is_alive);
        self.ended.push(Ended { number: device.index(), time, is_alive });
    }

    fn walked(&mut self, device: DeviceId, token: u32, rows: Option<Vec<WalkedRow>>) {
        self.walked.push((device.index(), token, rows));
    }

    fn trouble(&mut self, device: DeviceId, trouble: Trouble) {
        match trouble {
            Trouble::Silent | Trouble::Unauthorized(_) => self.silent.push(device.index()),
            // Said of the term, or of its interface.
            Trouble::NoSuchObject(_) => return,
            _ => {}
        }
        let name = &self.agents[device.index()].name;
        let subject = trouble.object().map_or_else(|| name.clone(), |oid| format!("{name}: {oid}"));
        self.complaints.raise(&subject, format!("{trouble} ({})", self.agents[device.index()].users));
    }

    fn is_well(&mut self, device: DeviceId) {
        let name = self.agents[device.index()].name.clone();
        self.complaints.resolve(&name);
    }
}

impl Agents {
    /// Does what follows from what the engine said, until it says no more.
    pub(super) fn digest(&mut self, now: Now) {
        while !(self.state.walked.is_empty() && self.state.ended.is_empty()) {
            let silent = std::mem::take(&mut self.state.silent);
            for (number, token, rows) in std::mem::take(&mut self.state.walked) {
                let agent = &mut self.state.agents[number];
                if rows.is_none() && agent.looking > 0 && silent.contains(&number) {
                    // It would not answer the other walks either.
                    agent.looking = 1;
                    self.engine.forget_walks(self.ids[number]);
                }
                match Kind::ALL.get(token as usize) {
                    Some(kind) => self.take_interfaces(now, number, *kind, rows),
                    None => self.take_walk(now, number, token, rows),
                }
            }
            for ended in std::mem::take(&mut self.state.ended) {
                self.take_end(now, ended);
            }
            self.engine.tick(now, &mut self.state);
        }
        self.state.silent.clear();
    }

    fn take_interfaces(&mut self, now: Now, number: usize, kind: Kind, rows: Option<Vec<WalkedRow>>) {
        let agent = &mut self.state.agents[number];
        // A walk that was forgotten while it was in flight is over at some time, too.
        let is_over = agent.looking == 1;
        agent.looking = agent.looking.saturating_sub(1);
        match rows {
            Some(rows) => {
                agent.interfaces.insert(kind, Column::of(kind, &rows));
                let name = agent.name.clone();
                self.state.complaints.resolve(&name);
            }
            None => self.look_later(now, number),
        }
        if is_over {
            let wanted = std::mem::take(&mut self.state.agents[number].wanted);
            self.adopt(now, number, wanted);
        }
    }

    /// A walk for a term: `WaLK`, `GeTNEXT`, `CnTWaLK`.
    fn take_walk(&mut self, now: Now, number: usize, token: u32, rows: Option<Vec<WalkedRow>>) {
        let nth = (token - FIRST_WALK) as usize;
        let Some(walk) = self.state.agents[number].walks.get(nth).cloned() else { return };
        let value = |at: usize| {
            let value = rows.as_ref()?.get(at)?.values.first()?.as_ref()?;
            Some(operand(Polled::of(&value.value()), false))
        };
        let value = match walk.how {
            How::CountWalk => rows.as_ref().map(|rows| Operand::Unsigned(rows.len() as u64)),
            How::Walk(at) => value(at as usize),
            How::GetNext | How::Get => value(0),
        };
        let seconds = now.wall.div_euclid(1_000_000);
        self.state.take_part(walk.term, walk.is_output, seconds, value.unwrap_or_default());
    }

    fn take_end(&mut self, now: Now, ended: Ended) {
        let Ended { number, time, is_alive } = ended;
        let agent = &mut self.state.agents[number];
        let moved = std::mem::take(&mut agent.moved);
        let (was_partial, is_looking) = (agent.is_partial, agent.looking > 0);
        let walked = agent.walks.iter().map(|walk| walk.term);
        let mut unknown: Vec<TermId> = match is_alive {
            true => agent
                .unplanned
                .iter()
                .copied()
                .filter(|term| !walked.clone().any(|other| other == *term))
                .collect(),
            false => agent.unplanned.iter().copied().chain(walked).collect(),
        };
        unknown.sort_unstable();
        unknown.dedup();
        unknown.into_iter().for_each(|term| self.state.answer_unknown(term, time));
        if is_alive {
            self.walk_terms(number);
        }
        if !moved.is_empty() && !was_partial && !is_looking && is_alive {
            // Once more in this round, where they are now.
            self.look_up(now, number, Wanted::Some(moved));
            return;
        }
        for term in &moved {
            self.state.answer_unknown(*term, time);
        }
        if !moved.is_empty() && is_alive {
            self.state.agents[number].lost = moved;
            self.look_later(now, number);
        }
        if was_partial && !is_looking {
            self.plan(now, number, Wanted::All);
        }
    }

    /// Begins the walks of terms.
    fn walk_terms(&mut self, number: usize) {
        let walks = self.state.agents[number].walks.clone();
        for (nth, walk) in walks.into_iter().enumerate() {
            let token = FIRST_WALK + nth as u32;
            match walk.how {
                How::GetNext => self.engine.walk_once(self.ids[number], token, walk.oid),
                _ => self.engine.walk(self.ids[number], token, vec![walk.oid]),
            }
        }
    }
}

/// A term that an agent answers.
fn spec_of(plan: &MrtgPlan, term: TermId) -> Option<&SnmpTerm> {
    match &plan.terms.get(term)?.1 {
        Term::Snmp(spec) => Some(spec),
        Term::Program(_) | Term::Unreadable(_) => None,
    }
}

/// The value of an object that no agent is asked for.
fn constant(object: &ObjectSpec) -> Option<Operand> {
    match object {
        ObjectSpec::PseudoZero => Some(Operand::Unsigned(0)),
        ObjectSpec::PseudoOne => Some(Operand::Unsigned(1)),
        ObjectSpec::Object(_) => None,
    }
}

/// TimeTicks are no number: MRTG gets them as a text of days and hours.
fn operand(value: Polled, is_status: bool) -> Operand {
    let operand = match value {
        Polled::Missing | Polled::NoNumber | Polled::Ticks(_) => Operand::Unknown,
        Polled::Counter32(number) => Operand::Unsigned(number.into()),
        Polled::Unsigned(number) => Operand::Unsigned(number),
        Polled::Signed(number) => Operand::Signed(number),
        Polled::Float(number) => Decimal::of_float(number).map_or(Operand::Unknown, Operand::Number),
    };
    match operand {
        Operand::Unknown => Operand::Unknown,
        Operand::Unsigned(1) | Operand::Signed(1) if is_status => Operand::Unsigned(1),
        _ if is_status => Operand::Unsigned(0),
        operand => operand,
    }
}
