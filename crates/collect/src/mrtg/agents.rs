//! The SNMP terms of a configuration on the SNMP engine: which agents there are, what each is asked for, where interfaces are that
//! are known by name, and what the answers mean.
//!
//! An agent is first asked where its interfaces are, then polled. When one has moved, it is looked up again, and polled once more in
//! the same round, as MRTG does.

mod events;
pub mod known;
mod lookup;
mod rows;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;

use ::snmp::message::Version;
use ::snmp::oid::Oid;
use ::snmp::usm::Secret;
use ::snmp::usm::keys::{AuthProtocol, PrivProtocol};

use self::events::State;
use self::lookup::Kind;
use self::rows::{Interfaces, TermWalk};
use super::plan::{Answer, MrtgPlan, TermId};
use super::term::{AgentAddress, SnmpIdentity, SnmpTerm, Term};
use crate::complaints::Notice;
use crate::snmp::device::{Credentials, DeviceOptions, FixedWait};
use crate::snmp::engine::{DeviceId, Engine, Now};
use crate::snmp::totals::Totals;
use crate::snmp::users::{UserSpec, Users};

/// How long after a walk that failed, or did not find an interface, an agent's interfaces are looked up again. MRTG leaves an agent
/// for so long that timed out in a walk.
const LOOK_AGAIN_MICROS: u64 = 300_000_000;

/// Agents are polled one after the other so many microseconds apart, so that a round of many is no burst: an agent with a hundred
/// targets keeps us busy for about as long.
const APART_MICROS: u64 = 250;

/// Tokens of walks from here on are those of terms; below are those of interfaces.
const FIRST_WALK: u32 = 16;

/// Which terms a pass is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Wanted {
    /// All of the agent.
    #[default]
    All,
    /// These, because their interfaces had moved or were not known.
    Some(Vec<TermId>),
}

/// An agent, asked in one name.
#[derive(Debug)]
struct Agent {
    /// Host and port, for messages.
    name: String,
    address: AgentAddress,
    is_v1: bool,
    terms: Vec<TermId>,
    /// The targets that use them, for messages.
    users: String,
    /// The columns that its terms need, as far as they are known.
    interfaces: Interfaces,
    kinds: Vec<Kind>,
    /// Lookups that have not ended.
    looking: usize,
    /// What is polled after them.
    wanted: Wanted,
    /// Whether the plan in force is for some terms only.
    is_partial: bool,
    /// Terms that the plan in force should have but has not: they are unknown when the pass ends.
    unplanned: Vec<TermId>,
    /// Terms whose interface turned out to have moved, in this pass.
    moved: Vec<TermId>,
    /// Terms whose interface was not where it was looked up, either.
    lost: Vec<TermId>,
    walks: Vec<TermWalk>,
    look_again: Option<u64>,
    has_begun: bool,
    has_address: bool,
}

/// All agents of a configuration.
#[derive(Debug)]
pub struct Agents {
    engine: Engine,
    /// The engine's handles, by the agent's number.
    ids: Vec<DeviceId>,
    state: State,
    names: HashSet<String>,
    /// When an agent's interfaces are to be looked up again, at the earliest.
    look_at: u64,
}

impl Agents {
    /// The agents of `plan`, with at most `window` requests in flight. See [`Engine::new`] for `seed`.
    pub fn new(now: Now, plan: &Arc<MrtgPlan>, window: usize, seed: u64) -> Self {
        let mut agents = Agents {
            engine: Engine::new(now, window, seed),
            ids: Vec::new(),
            state: State::new(Arc::clone(plan)),
            names: HashSet::new(),
            look_at: u64::MAX,
        };
        let mut users = Users::new(seed);
        let mut by_agent: HashMap<(AgentAddress, SnmpIdentity, [bool; 3]), usize> = HashMap::new();
        for (id, (_, term)) in plan.terms.iter().enumerate() {
            let Term::Snmp(term) = term else { continue };
            let Ok(credentials) = credentials(&term.identity, &mut users) else { continue };
            let differing = [term.options.single_request, term.options.short_request_ids, is_lenient(term)];
            let key = (term.agent.clone(), term.identity.clone(), differing);
            let number = *by_agent.entry(key).or_insert_with(|| agents.add(plan, term, credentials));
            let agent = &mut agents.state.agents[number];
            agent.terms.push(id);
            if let (true, Some(known)) = (agent.interfaces.is_empty(), plan.known.of(term)) {
                agent.interfaces = known.clone();
            }
            for (kind, _) in rows::references(term).filter_map(Kind::of) {
                if !agent.kinds.contains(&kind) {
                    agent.kinds.push(kind);
                }
            }
            agents.state.add_term(id, number, term);
        }
        for agent in &mut agents.state.agents {
            agent.users = plan.describe_users(&agent.terms);
        }
        agents
    }

    fn add(&mut self, plan: &MrtgPlan, term: &SnmpTerm, credentials: Credentials) -> usize {
        let number = self.ids.len();
        let name = self.name(term);
        let mut options = DeviceOptions::new(plan.interval.step(), &name);
        options.offset = (number as u64 * APART_MICROS) % (options.step / 4 * 3);
        options.retries = u8::try_from(term.patience.sends.saturating_sub(1)).unwrap_or(u8::MAX);
        options.patience = Some(FixedWait {
            micros: (term.patience.timeout_seconds * 1e6) as u64,
            backoff: term.patience.backoff,
        });
        options.objects_max = u16::from(term.options.single_request);
        options.any_source = is_lenient(term);
        options.has_short_ids = term.options.short_request_ids;
        options.has_uptime = plan.asks_uptime;
        self.ids.push(self.engine.add(None, credentials, options));
        self.state.agents.push(Agent {
            name,
            address: term.agent.clone(),
            is_v1: matches!(term.identity, SnmpIdentity::V1 { .. }),
            terms: Vec::new(),
            users: String::new(),
            interfaces: BTreeMap::new(),
            kinds: Vec::new(),
            looking: 0,
            wanted: Wanted::All,
            is_partial: false,
            unplanned: Vec::new(),
            moved: Vec::new(),
            lost: Vec::new(),
            walks: Vec::new(),
            look_again: None,
            has_begun: false,
            has_address: false,
        });
        number
    }

    /// What messages call an agent: with the version if it is asked in several.
    fn name(&mut self, term: &SnmpTerm) -> String {
        let name = format!("{}:{}", term.agent.host, term.agent.port);
        let version = match term.identity {
            SnmpIdentity::V1 { .. } => "1",
            SnmpIdentity::V2c { .. } => "2c",
            SnmpIdentity::V3(_) => "3",
        };
        let also = (2..).map(|number| format!("{name} (version {version}, {number})"));
        let names = [name.clone(), format!("{name} (version {version})")].into_iter().chain(also);
        let free = names.into_iter().find(|name| !self.names.contains(name)).unwrap_or(name);
        self.names.insert(free.clone());
        free
    }

    /// Where the agents are said to be, by their number.
    pub fn addresses(&self) -> impl ExactSizeIterator<Item = &AgentAddress> {
        self.state.agents.iter().map(|agent| &agent.address)
    }

    /// Notes where an agent is; it is polled from now on.
    pub fn set_address(&mut self, now: Now, number: usize, address: SocketAddr) {
        self.engine.set_address(self.ids[number], Some(address));
        let agent = &mut self.state.agents[number];
        agent.has_begun = true;
        if std::mem::replace(&mut agent.has_address, true) {
            return;
        }
        // What was known before is checked with the first poll.
        match self.state.unlocated(number).is_empty() {
            true => self.adopt(now, number, Wanted::All),
            false => self.look_up(now, number, Wanted::All),
        }
    }

    /// Notes that an agent's name has no address: its terms are unknown until it has one.
    pub fn cannot_resolve(&mut self, now: Now, number: usize, error: &str) {
        let agent = &mut self.state.agents[number];
        let text = format!("its address cannot be found: {error} ({})", agent.users);
        self.state.complaints.raise(&agent.name, text);
        if !std::mem::replace(&mut agent.has_begun, true) {
            self.adopt(now, number, Wanted::All);
        }
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> usize {
        self.engine.in_flight()
    }

    /// Whether no answer is awaited, and none will be soon.
    pub fn is_resting(&self, now: Now) -> bool {
        self.engine.is_resting(now)
    }

    /// When [`Agents::tick`] is due, at the latest.
    pub fn next_tick(&self) -> Option<u64> {
        let look_at = (self.look_at != u64::MAX).then_some(self.look_at);
        self.engine.next_tick().into_iter().chain(look_at).min()
    }

    /// Does what is due.
    pub fn tick(&mut self, now: Now) {
        self.look_again(now);
        self.engine.tick(now, &mut self.state);
        self.digest(now);
    }

    /// Takes a datagram.
    pub fn receive(&mut self, now: Now, from: SocketAddr, datagram: &[u8]) {
        self.engine.receive(now, from, datagram, &mut self.state);
        self.digest(now);
    }

    /// Passes each datagram that is to be sent to `send`, with the number of its agent.
    pub fn send_all(&mut self, mut send: impl FnMut(usize, SocketAddr, &[u8])) {
        self.state.outbox.send_all(|device, to, datagram| send(device.index(), to, datagram));
    }

    /// Exchanges the answers since the last call for an empty vector, whose memory is used for the next ones.
    pub fn swap_answers(&mut self, empty: &mut Vec<(TermId, Answer)>) {
        std::mem::swap(&mut self.state.answers, empty);
    }

    /// What is wrong since the last call, and what no longer is.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        self.state.complaints.take_notices()
    }

    /// Counters since the start.
    pub fn totals(&self) -> Totals {
        self.engine.totals()
    }

    /// Looks up the interfaces of agents for which it is time.
    fn look_again(&mut self, now: Now) {
        if now.mono < self.look_at {
            return;
        }
        self.look_at = u64::MAX;
        for number in 0..self.ids.len() {
            let agent = &mut self.state.agents[number];
            let Some(again) = agent.look_again else { continue };
            if again > now.mono || agent.looking > 0 {
                self.look_at = self.look_at.min(again.max(now.mono + 1_000_000));
                continue;
            }
            agent.look_again = None;
            let mut wanted = std::mem::take(&mut agent.lost);
            wanted.extend(self.state.unlocated(number));
            wanted.sort_unstable();
            wanted.dedup();
            self.look_up(now, number, Wanted::Some(wanted));
        }
    }

    fn look_later(&mut self, now: Now, number: usize) {
        let at = now.mono + LOOK_AGAIN_MICROS;
        self.state.agents[number].look_again.get_or_insert(at);
        self.look_at = self.look_at.min(at);
    }

    /// Asks where the interfaces are, and then polls.
    fn look_up(&mut self, now: Now, number: usize, wanted: Wanted) {
        let agent = &mut self.state.agents[number];
        if agent.kinds.is_empty() || !agent.has_address {
            return self.adopt(now, number, wanted);
        }
        (agent.wanted, agent.looking) = (wanted, agent.kinds.len());
        for kind in agent.kinds.clone() {
            let column = Oid::from_arcs(kind.column());
            self.engine.walk(self.ids[number], kind as u32, column.into_iter().collect());
        }
    }

    /// Polls these terms now, and all of them in the passes after that.
    fn adopt(&mut self, now: Now, number: usize, wanted: Wanted) {
        if self.engine.has_pass(self.ids[number]) {
            // The next pass goes by what was found.
            self.plan(now, number, Wanted::All);
        } else {
            self.plan(now, number, wanted);
            self.engine.poll_now(now, self.ids[number]);
        }
        self.complain_of_lost(now, number);
    }

    fn plan(&mut self, now: Now, number: usize, wanted: Wanted) {
        let agent = &self.state.agents[number];
        let (terms, is_partial) = match &wanted {
            Wanted::All => (&agent.terms, false),
            Wanted::Some(terms) => (terms, true),
        };
        let terms: Vec<TermId> = terms.clone();
        let specs = terms.iter().filter_map(|term| Some((*term, self.state.spec(*term)?)));
        let (plan, unplanned) = rows::plan(&agent.interfaces, specs.clone());
        let walks = specs.flat_map(|(term, spec)| rows::walks(&agent.interfaces, term, spec)).collect();
        let agent = &mut self.state.agents[number];
        (agent.is_partial, agent.unplanned, agent.walks) = (is_partial, unplanned, walks);
        self.engine.set_plan(now, self.ids[number], plan);
    }

    /// Says which interfaces an agent does not have, and looks again later.
    fn complain_of_lost(&mut self, now: Now, number: usize) {
        let agent = &self.state.agents[number];
        if !agent.has_address {
            return;
        }
        let subject = format!("{}: interfaces", agent.name);
        let all = agent.terms.iter().filter_map(|term| self.state.spec(*term)).flat_map(rows::references);
        let mut lost: Vec<String> = all
            .filter(|reference| !rows::is_located(&agent.interfaces, reference))
            .map(rows::describe_interface)
            .collect();
        lost.dedup();
        let Some(first) = lost.first() else { return self.state.complaints.resolve(&subject) };
        let more = if lost.len() > 1 { format!(" and {} more", lost.len() - 1) } else { String::new() };
        let users = self.state.plan.describe_users(&self.state.unlocated(number));
        let text = format!("it does not have {first}{more}, or more than one ({users})");
        self.state.complaints.raise(&subject, text);
        self.look_later(now, number);
    }
}

/// How an agent is told who asks.
///
/// # Errors
/// What the engine cannot do.
fn credentials(identity: &SnmpIdentity, users: &mut Users) -> Result<Credentials, String> {
    let (version, community) = match identity {
        SnmpIdentity::V1 { community } => (Version::V1, community),
        SnmpIdentity::V2c { community } => (Version::V2c, community),
        SnmpIdentity::V3(pairs) => return Ok(users.credentials(&user(pairs)?)),
    };
    Ok(Credentials::Community { version, community: community.clone().into_bytes() })
}

/// The user that `SnmpOptions` describes. Protocols that are not named are those of Net::SNMP(3pm): MD5 and DES.
fn user(pairs: &[(String, String)]) -> Result<UserSpec, String> {
    let value = |wanted: &str| pairs.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    let bytes = |name: &str| {
        value(name).map(|text| hex(text).ok_or_else(|| format!("{name} is no hexadecimal number")))
    };
    let secret = |password: &str, key: &str| match (value(password), bytes(key).transpose()?) {
        (Some(_), Some(_)) => Err(format!("{password} and {key} are two secrets for one thing")),
        (Some(password), None) => Ok(Some(Secret::from(password))),
        (None, key) => Ok(key.map(Secret::LocalKey)),
    };
    let unknown = |name: &str| format!("there is no protocol \"{name}\"");
    let (auth, privacy) = (value("authprotocol").unwrap_or("md5"), value("privprotocol").unwrap_or("des"));
    let auth = AuthProtocol::find(auth).ok_or_else(|| unknown(auth))?;
    // Net::SNMP names the mode, too: aescfb128.
    let mode = privacy.to_lowercase().replace("cfb", "");
    let privacy = PrivProtocol::find(&mode).ok_or_else(|| unknown(privacy))?;
    let spec = UserSpec {
        name: value("username").unwrap_or_default().to_string(),
        auth: secret("authpassword", "authkey")?.map(|secret| (auth, secret)),
        privacy: secret("privpassword", "privkey")?.map(|secret| (privacy, secret)),
        context: value("contextname").unwrap_or_default().to_string(),
        context_engine: bytes("contextengineid").transpose()?.unwrap_or_default(),
    };
    spec.check().map(|()| spec)
}

/// The bytes of a hexadecimal number, with or without `0x`.
fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let is_hex = digits.len().is_multiple_of(2) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let bytes = || (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok());
    if is_hex && !digits.is_empty() { bytes().collect() } else { None }
}

/// Whether answers are taken from other addresses than the one that was asked: MRTG's default.
fn is_lenient(term: &SnmpTerm) -> bool {
    term.options.lenient_address && term.options.lenient_port
}

/// Why a term cannot be polled, if it cannot.
pub fn obstacle(term: &SnmpTerm) -> Option<String> {
    if rows::queries(term).any(|(_, query)| Oid::from_arcs(&query.oid).is_none()) {
        return Some("there is no such object".to_string());
    }
    match &term.identity {
        SnmpIdentity::V3(pairs) => user(pairs).err(),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
