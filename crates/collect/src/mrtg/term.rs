//! What a target reads: an object or two of an SNMP agent, or a program. The SNMP engine polls an [`SnmpTerm`].

use std::net::Ipv4Addr;

use ::snmp::names;

/// What one part of a target's expression reads. Equal terms are read once a round.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// Objects of an agent.
    Snmp(Box<SnmpTerm>),
    /// A program whose output is four lines: in, out, uptime, name.
    Program(String),
    /// Nothing: what it says cannot be read, and why. Its value is unknown.
    Unreadable(String),
}

/// Two objects of one agent, and how to ask it.
#[derive(Clone, Debug, PartialEq)]
pub struct SnmpTerm {
    /// Whom to ask.
    pub agent: AgentAddress,
    /// In whose name.
    pub identity: SnmpIdentity,
    /// How patiently.
    pub patience: Patience,
    /// What is particular about the agent.
    pub options: ClientOptions,
    /// The first value.
    pub input: ObjectSpec,
    /// The second value.
    pub output: ObjectSpec,
}

/// Where an agent is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AgentAddress {
    /// Name or address, without brackets.
    pub host: String,
    /// UDP port, 161 unless given.
    pub port: u16,
    /// The address to send from.
    pub local_host: Option<String>,
    /// The port to send from.
    pub local_port: Option<u16>,
    /// Whether a name is first looked up as IPv6: `EnableIPv6` and no `IPv4Only`.
    pub is_ipv6_first: bool,
}

/// SNMP version and what it needs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SnmpIdentity {
    /// Version 1.
    V1 {
        /// Without its escapes.
        community: String,
    },
    /// Version 2c.
    V2c {
        /// Without its escapes.
        community: String,
    },
    /// Version 3: the pairs of `SnmpOptions` that concern it (`username`, `authpassword`, `authkey`, `authprotocol`,
    /// `privpassword`, `privkey`, `privprotocol`, `contextname`, `contextengineid`), by name.
    V3(Vec<(String, String)>),
}

/// How long an answer is awaited.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Patience {
    /// Seconds until the first repetition.
    pub timeout_seconds: f64,
    /// How often a request is sent in all.
    pub sends: u32,
    /// By how much each timeout is longer than the last.
    pub backoff: f64,
}

/// What `SnmpOptions` and global keywords say of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClientOptions {
    /// `SingleRequest`: one object a request.
    pub single_request: bool,
    /// Request ids of 16 bits.
    pub short_request_ids: bool,
    /// Answers from another port are accepted.
    pub lenient_port: bool,
    /// Answers from another address are accepted.
    pub lenient_address: bool,
    /// Repetitions of a GETBULK, if given.
    pub max_repetitions: Option<u32>,
    /// Longest message, if given.
    pub max_message_bytes: Option<u32>,
}

/// An object to read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ObjectSpec {
    /// Always 0.
    PseudoZero,
    /// Always 1.
    PseudoOne,
    /// An object of the agent.
    Object(ObjectQuery),
}

/// An object of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectQuery {
    /// The object, or the column when `interface` is given.
    pub oid: Vec<u32>,
    /// The interface whose ifIndex completes the column.
    pub interface: Option<InterfaceReference>,
    /// Before which part of `oid` the ifIndex is put (`IndexPOS`); `None` = at its end.
    pub index_position: Option<usize>,
    /// How it is asked for.
    pub how: How,
    /// `ifAdminHack` and `ifOperHack`: 1 stays 1, every other value becomes 0.
    pub is_status: bool,
}

/// The request for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum How {
    /// Its value.
    Get,
    /// The value of the next object (`GeTNEXT`).
    GetNext,
    /// The value of the n-th object below, from 0 (`WaLK`).
    Walk(u32),
    /// The number of objects below (`CnTWaLK`).
    CountWalk,
}

/// An interface by what stays the same when its ifIndex changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum InterfaceReference {
    /// ifIndex itself.
    Number(u32),
    /// ipAdEntIfIndex of this address.
    Ip(Ipv4Addr),
    /// ifDescr.
    Descr(String),
    /// ifName.
    Name(String),
    /// ifPhysAddress.
    Mac(Vec<u8>),
    /// ifType.
    Type(u32),
}

/// What surrounds a target.
#[derive(Clone, Debug, Default)]
pub struct TermContext {
    /// `SnmpOptions`, global ones first.
    pub options: Vec<(String, String)>,
    /// `EnableIPv6` and not `IPv4Only`.
    pub is_ipv6_first: bool,
    /// `noHC`
    pub no_high_capacity: bool,
    /// `SingleRequest`
    pub single_request: bool,
    /// Symbolic names of `LoadMIBs`.
    pub names: std::sync::Arc<std::collections::HashMap<String, Vec<u32>>>,
}

impl TermContext {
    fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().rev().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.option(name)?.parse().ok()
    }

    fn is_set(&self, name: &str) -> bool {
        self.option(name).is_some_and(|value| value != "0" && !value.is_empty())
    }
}

/// The fields after `community@`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields<'a> {
    /// With its escapes.
    pub community: &'a str,
    /// With its brackets.
    pub host: &'a str,
    /// `port:timeout:retries:backoff:version`, each may be empty.
    pub rest: &'a str,
}

/// Makes a term of the objects (`2`, `-#eth0`, `oid&oid`) and the fields of its agent.
pub fn snmp(objects: &str, fields: Fields<'_>, context: &TermContext) -> Term {
    match build(objects, fields, context) {
        Ok(term) => Term::Snmp(Box::new(term)),
        Err(cause) => Term::Unreadable(cause),
    }
}

fn build(objects: &str, fields: Fields<'_>, context: &TermContext) -> Result<SnmpTerm, String> {
    let mut parts = fields.rest.split(':');
    let mut next = || parts.next().unwrap_or("");
    let (port, timeout, sends, backoff, version) = (next(), next(), next(), next(), next());
    let version = match version.split('.').next().unwrap_or("") {
        "" => context.option("version").map_or(1, |version| version.starts_with('2') as u32 + 1),
        number => number.parse().map_err(|_| format!("\"{version}\" is no version of SNMP"))?,
    };
    if !(1..=3).contains(&version) {
        return Err(format!("\"{version}\" is no version of SNMP"));
    }
    let agent = address(fields.host, port, context)?;
    let (input, output) = objects_of(objects, version > 1 && !context.no_high_capacity, context)?;
    // An older client repeats v3 once after 5 s, and knows no backoff.
    let (default_timeout, default_sends) = if version == 3 { (5.0, 2) } else { (2.0, 5) };
    let number = |text: &str, name: &str, default: f64| -> f64 {
        text.parse().ok().or_else(|| context.number(name)).unwrap_or(default)
    };
    let patience = Patience {
        timeout_seconds: number(timeout, "timeout", default_timeout).clamp(0.01, 300.0),
        sends: number(sends, "retries", f64::from(default_sends)).clamp(1.0, 100.0) as u32,
        backoff: number(backoff, "backoff", 1.0).clamp(1.0, 10.0),
    };
    let community = unescape(fields.community);
    let identity = match version {
        1 => SnmpIdentity::V1 { community },
        2 => SnmpIdentity::V2c { community },
        _ => SnmpIdentity::V3(user(&community, context)),
    };
    let options = ClientOptions {
        single_request: context.single_request,
        short_request_ids: context.is_set("use_16bit_request_ids"),
        lenient_port: context.option("lenient_source_port_matching").is_none_or(|value| value != "0"),
        lenient_address: context.option("lenient_source_address_matching").is_none_or(|value| value != "0"),
        max_repetitions: context.number("default_max_repetitions"),
        max_message_bytes: context.number("maxmsgsize"),
    };
    Ok(SnmpTerm { agent, identity, patience, options, input, output })
}

/// The pairs that concern v3; the name before `@` is the user's unless `SnmpOptions` gives one.
fn user(community: &str, context: &TermContext) -> Vec<(String, String)> {
    const NAMES: [&str; 9] = [
        "username",
        "authpassword",
        "authkey",
        "authprotocol",
        "privpassword",
        "privkey",
        "privprotocol",
        "contextname",
        "contextengineid",
    ];
    let found = NAMES.iter().filter_map(|name| Some((name.to_string(), context.option(name)?.to_string())));
    let mut pairs: Vec<_> = found.collect();
    if pairs.iter().all(|(name, _)| name != "username") && !community.is_empty() {
        pairs.push(("username".to_string(), community.to_string()));
    }
    pairs
}

fn address(host: &str, port: &str, context: &TermContext) -> Result<AgentAddress, String> {
    let mut parts = port.split('!');
    let number = |text: &str| -> Result<Option<u16>, String> {
        if text.is_empty() {
            return Ok(None);
        }
        text.parse().map(Some).map_err(|_| format!("\"{text}\" is no UDP port"))
    };
    let remote = number(parts.next().unwrap_or(""))?;
    let local_host = parts.next().filter(|text| !text.is_empty()).map(str::to_string);
    let local_port = number(parts.next().unwrap_or(""))?;
    Ok(AgentAddress {
        host: host.trim_start_matches('[').trim_end_matches(']').to_string(),
        port: remote.or_else(|| context.number("port")).unwrap_or(161),
        local_host: local_host.or_else(|| context.option("localaddr").map(str::to_string)),
        local_port: local_port.or_else(|| context.number("localport")),
        is_ipv6_first: context.is_ipv6_first,
    })
}

/// The two objects, swapped after a leading `-`.
fn objects_of(
    objects: &str,
    is_high_capacity: bool,
    context: &TermContext,
) -> Result<(ObjectSpec, ObjectSpec), String> {
    let (swap, objects) = match objects.strip_prefix('-') {
        Some(objects) => (true, objects),
        None => (false, objects),
    };
    let (input, output) = match split_unescaped(objects, '&') {
        Some((input, output)) => (object(input, context)?, object(output, context)?),
        None => {
            let interface = if objects.bytes().all(|byte| byte.is_ascii_digit()) {
                InterfaceReference::Number(
                    objects.parse().map_err(|_| format!("there is no interface {objects}"))?,
                )
            } else {
                reference(objects)?
            };
            let column = |oid: &[u32]| {
                ObjectSpec::Object(ObjectQuery {
                    oid: oid.to_vec(),
                    interface: Some(interface.clone()),
                    index_position: None,
                    how: How::Get,
                    is_status: false,
                })
            };
            let (input, output) = if is_high_capacity {
                (names::IF_HC_IN_OCTETS, names::IF_HC_OUT_OCTETS)
            } else {
                (names::IF_IN_OCTETS, names::IF_OUT_OCTETS)
            };
            (column(input), column(output))
        }
    };
    Ok(if swap { (output, input) } else { (input, output) })
}

fn object(text: &str, context: &TermContext) -> Result<ObjectSpec, String> {
    match text {
        "PseudoZero" => return Ok(ObjectSpec::PseudoZero),
        "PseudoOne" => return Ok(ObjectSpec::PseudoOne),
        _ => {}
    }
    let (how, text) = if let Some(rest) = text.strip_prefix("WaLK") {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        (How::Walk(rest[..digits].parse().unwrap_or(0)), &rest[digits..])
    } else if let Some(rest) = text.strip_prefix("GeTNEXT") {
        (How::GetNext, rest)
    } else if let Some(rest) = text.strip_prefix("CnTWaLK") {
        (How::CountWalk, rest)
    } else {
        (How::Get, text)
    };
    let end = text.find(['/', '\\', '#', '!', '%']).unwrap_or(text.len());
    let (name, interface) = text.split_at(end);
    let interface = if interface.is_empty() { None } else { Some(reference(interface)?) };
    let (oid, index_position, is_status) = oid(name, context)?;
    Ok(ObjectSpec::Object(ObjectQuery { oid, interface, index_position, how, is_status }))
}

/// A numeric OID or a symbolic name with further numbers; where the index is put; whether it is a status.
fn oid(text: &str, context: &TermContext) -> Result<(Vec<u32>, Option<usize>, bool), String> {
    let unreadable = |part: &str| format!("\"{part}\" in \"{text}\" is no OID, and no name that is known");
    let mut oid = Vec::new();
    let (mut index_position, mut is_status, mut is_whole) = (None, false, false);
    for (nth, part) in text.trim_start_matches('.').split('.').enumerate() {
        if part == "IndexPOS" {
            index_position = Some(oid.len());
        } else if let Ok(number) = part.parse() {
            is_whole = false;
            oid.push(number);
        } else if nth == 0 {
            is_status = matches!(part, "ifAdminHack" | "ifOperHack");
            let own =
                || context.names.get(part).map(|oid| names::Name { oid: oid.clone(), is_scalar: false });
            let known = names::find(part).or_else(own).ok_or_else(|| unreadable(part))?;
            oid = known.oid;
            is_whole = known.is_scalar;
        } else {
            return Err(unreadable(part));
        }
    }
    if is_whole {
        oid.push(0);
    }
    if oid.len() < 2 || oid.len() > 128 {
        return Err(unreadable(text));
    }
    Ok((oid, index_position, is_status))
}

fn reference(text: &str) -> Result<InterfaceReference, String> {
    let key = unescape(text.get(1..).unwrap_or(""));
    let wrong = |what: &str| format!("\"{key}\" is no {what}");
    match text.as_bytes().first() {
        Some(b'/') => key.parse().map(InterfaceReference::Ip).map_err(|_| wrong("IPv4 address")),
        Some(b'\\') => Ok(InterfaceReference::Descr(key)),
        Some(b'#') => Ok(InterfaceReference::Name(key)),
        Some(b'%') => key.parse().map(InterfaceReference::Type).map_err(|_| wrong("ifType")),
        Some(b'!') => {
            let bytes = key.split(['-', ':']).map(|pair| u8::from_str_radix(pair, 16));
            bytes
                .collect::<Result<_, _>>()
                .map(InterfaceReference::Mac)
                .map_err(|_| wrong("Ethernet address"))
        }
        _ => Err(format!("\"{text}\" is no interface")),
    }
}

/// Splits at the first `mark` that no backslash precedes. A backslash at the beginning or after a letter may begin the
/// description of an interface, and only protects what could end it.
pub fn split_unescaped(text: &str, mark: char) -> Option<(&str, &str)> {
    let mut escaped = false;
    for (at, letter) in text.char_indices() {
        if letter == mark && !escaped {
            return Some((&text[..at], &text[at + mark.len_utf8()..]));
        }
        escaped = letter == '\\' && !escaped;
    }
    None
}

/// Without the backslashes before blanks, `:`, `&` and `@`.
pub fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letters.peek() {
            Some(next @ (' ' | ':' | '&' | '@')) if letter == '\\' => {
                plain.push(*next);
                letters.next();
            }
            _ => plain.push(letter),
        }
    }
    plain
}
