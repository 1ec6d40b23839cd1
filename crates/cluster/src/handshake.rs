//! How two nodes recognise each other: a version that both speak, the same cluster, and both know its secret.
//!
//! The caller says the newest version that it speaks, and the node that was called the one that both will speak. Then the caller sends a nonce and who it is,
//! the other one another nonce; then each shows an HMAC-SHA256 of all of that, the caller first,
//! so that a stranger who calls gets nothing to guess secrets by. All of it takes less than a kilobyte, and must be over in [`HANDSHAKE_MAX`].
//!
//! Programs of version 2 answer no version, and refuse every other one; a caller that is refused so calls once more in
//! that version ([`Called::Older`]). Its nonce then ends in a mark, which says what it could speak. The nonce is covered by the HMAC, so a node that could speak more, too, finds
//! out that something between them has changed what they said.

use std::fmt;
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

use crate::frames::is_timeout;
use crate::stream::Stream;
use crate::tls::NodeTls;
use crate::wire::{VERSION_MAX, VERSION_MIN};

const MAGIC: [u8; 4] = *b"RNDP";
const NONCE_BYTES: usize = 32;
/// The version whose handshake says no version but its own.
const FIXED_VERSION: u8 = 2;
/// The end of a nonce in that handshake, when the caller could speak more: its newest version follows.
const MARK: [u8; 7] = *b"speaks\0";
const MAC_BYTES: usize = 32;
/// Longest name of a cluster or a node.
pub const NAME_BYTES_MAX: usize = 255;
/// The fewest bytes of a secret: 128 bits, if they are random.
pub const SECRET_BYTES_MIN: usize = 16;
/// How long it may take, TLS included.
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);

/// What makes a node one of its cluster.
#[derive(Clone)]
pub struct Membership {
    /// The name of the cluster.
    pub cluster: String,
    /// The name of this node.
    pub node: String,
    key: hmac::Key,
    /// The newest version of the protocol that it speaks.
    newest: u8,
    /// TLS, unless the network between the nodes is trusted.
    pub tls: Option<NodeTls>,
}

impl fmt::Debug for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.node, self.cluster)
    }
}

impl Membership {
    /// A node of a cluster whose nodes share `secret`.
    ///
    /// # Errors
    /// When a name is empty or too long, or the secret too short.
    pub fn new(cluster: &str, node: &str, secret: &[u8], tls: Option<NodeTls>) -> Result<Self, String> {
        for (what, name) in [("cluster", cluster), ("node", node)] {
            if name.is_empty() || name.len() > NAME_BYTES_MAX {
                return Err(format!("the name of a {what} has 1 to {NAME_BYTES_MAX} bytes"));
            }
        }
        if secret.len() < SECRET_BYTES_MIN {
            return Err(format!(
                "the secret of a cluster has at least {SECRET_BYTES_MIN} bytes; draw it at random"
            ));
        }
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let (cluster, node) = (cluster.to_owned(), node.to_owned());
        Ok(Membership { cluster, node, key, newest: VERSION_MAX, tls })
    }

    /// The same as a program that speaks no version after `newest`, for tests: one of version 2 answers as such programs do.
    #[must_use]
    pub fn speaking(self, newest: u8) -> Self {
        Membership { newest: newest.clamp(VERSION_MIN, VERSION_MAX), ..self }
    }

    /// The newest version of the protocol that it speaks.
    pub(crate) fn newest(&self) -> u8 {
        self.newest
    }

    /// What the side `role` shows for a handshake.
    fn proof(&self, role: &str, shared: &[u8]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(b"roundel cluster ");
        context.update(role.as_bytes());
        context.update(&[0]);
        context.update(shared);
        context.sign()
    }

    fn check(&self, role: &str, shared: &[u8], shown: &[u8]) -> bool {
        let message = [b"roundel cluster ", role.as_bytes(), &[0], shared].concat();
        hmac::verify(&self.key, &message, shown).is_ok()
    }

    /// Who it is.
    fn names(&self) -> Vec<u8> {
        let mut names = Vec::new();
        for name in [&self.cluster, &self.node] {
            names.push(name.len() as u8);
            names.extend_from_slice(name.as_bytes());
        }
        names
    }
}

fn nonce() -> io::Result<[u8; NONCE_BYTES]> {
    let mut nonce = [0; NONCE_BYTES];
    SystemRandom::new().fill(&mut nonce).map_err(|_| io::Error::other("no random numbers"))?;
    Ok(nonce)
}

/// Writes into a nonce that its sender could speak a newer version than it does.
fn mark(nonce: &mut [u8; NONCE_BYTES], newest: u8) {
    let at = NONCE_BYTES - MARK.len() - 1;
    nonce[at..NONCE_BYTES - 1].copy_from_slice(&MARK);
    nonce[NONCE_BYTES - 1] = newest;
}

/// The newest version that its sender speaks.
fn marked(nonce: &[u8; NONCE_BYTES]) -> u8 {
    match nonce.split_last() {
        Some((newest, rest)) if rest.ends_with(&MARK) => *newest,
        _ => FIXED_VERSION,
    }
}

/// A handshake's end in time.
struct Until(Instant);

impl Until {
    fn check(&self) -> io::Result<()> {
        match Instant::now() < self.0 {
            true => Ok(()),
            false => Err(io::Error::new(io::ErrorKind::TimedOut, "the handshake takes too long")),
        }
    }

    /// Reads exactly so many bytes.
    fn read<const N: usize>(&self, stream: &mut dyn Read) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(stream, &mut bytes)?;
        Ok(bytes)
    }

    fn fill(&self, stream: &mut dyn Read, bytes: &mut [u8]) -> io::Result<()> {
        let mut filled = 0;
        while filled < bytes.len() {
            self.check()?;
            match stream.read(&mut bytes[filled..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => filled += count,
                Err(error) if is_timeout(&error) || error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads bytes after their number.
    fn counted(&self, stream: &mut dyn Read) -> io::Result<Vec<u8>> {
        let [count] = self.read(stream)?;
        let mut bytes = vec![0; usize::from(count)];
        self.fill(stream, &mut bytes)?;
        Ok(bytes)
    }
}

const REFUSED: u8 = 0;
const GOES_ON: u8 = 1;

/// Reads whether the other side goes on, or why not.
fn verdict(until: &Until, stream: &mut dyn Read) -> io::Result<Result<(), String>> {
    match until.read(stream)? {
        [GOES_ON] => Ok(Ok(())),
        [REFUSED] => {
            let why = until.counted(stream)?;
            Ok(Err(String::from_utf8_lossy(&why).into_owned()))
        }
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "what answers there is no node of Roundel")),
    }
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, format!("it refuses this node: {why}"))
}

/// Says why not, and gives the same as an error.
fn refuse(stream: &mut dyn Write, why: &str) -> io::Error {
    let mut out = vec![REFUSED, why.len().min(255) as u8];
    out.extend_from_slice(&why.as_bytes()[..why.len().min(255)]);
    let _ = stream.write_all(&out);
    io::Error::new(io::ErrorKind::PermissionDenied, why.to_owned())
}

const OTHER_SECRET: &str = "it has another secret than the other nodes of the cluster";

/// How a node says, since the first release, that it speaks another version: what it was told, and what it speaks.
fn other_version(said: u8, spoken: impl fmt::Display) -> String {
    format!("it has version {said} of the protocol between nodes, the others {spoken}")
}

/// The older version that a node of one version says it speaks, if this program knows it.
fn older_version(said: u8, why: &str) -> Option<u8> {
    (VERSION_MIN..said).find(|version| why == other_version(said, version))
}

/// What became of a call.
#[derive(Debug)]
pub(crate) enum Called {
    /// Both know each other, and speak this version.
    Speaks(u8),
    /// The other node speaks only this older version; it has to be called once more.
    Older(u8),
}

/// The side that calls, in the newest version that it speaks or in one that it was told.
///
/// # Errors
/// The system's; when the other one is no node of the cluster, or does not take this one for one.
pub(crate) fn call(stream: &mut Stream, membership: &Membership, version: u8) -> io::Result<Called> {
    let until = Until(Instant::now() + HANDSHAKE_MAX);
    stream.complete(&|| until.check())?;
    let mut own = nonce()?;
    let mut shared = [&MAGIC[..], &[version]].concat();
    let mut agreed = version;
    if version == FIXED_VERSION {
        if membership.newest > version {
            mark(&mut own, membership.newest);
        }
    } else {
        // Alone: an older node reads no further, and what it left unread could cost its answer.
        stream.write.write_all(&shared)?;
        if let Err(why) = verdict(&until, &mut stream.read)? {
            let older = older_version(version, &why);
            return older.map(Called::Older).ok_or_else(|| refused(&why));
        }
        [agreed] = until.read(&mut stream.read)?;
        if !(VERSION_MIN.max(FIXED_VERSION + 1)..=version).contains(&agreed) {
            let why = format!(
                "it answers in version {agreed} of the protocol between nodes, and this one has {VERSION_MIN} to {version}"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        shared.push(agreed);
    }
    let hello = [&membership.names(), &own[..]].concat();
    shared.extend_from_slice(&hello);
    let unsent = if version == FIXED_VERSION { &shared } else { &hello };
    stream.write.write_all(unsent)?;
    verdict(&until, &mut stream.read)?.map_err(|why| refused(&why))?;
    let theirs: [u8; NONCE_BYTES] = until.read(&mut stream.read)?;
    shared.extend_from_slice(&theirs);
    shared.extend_from_slice(&stream.binding);
    stream.write.write_all(membership.proof("caller", &shared).as_ref())?;
    verdict(&until, &mut stream.read)?.map_err(|why| refused(&why))?;
    let shown: [u8; MAC_BYTES] = until.read(&mut stream.read)?;
    match membership.check("called", &shared, &shown) {
        true => Ok(Called::Speaks(agreed)),
        false => Err(io::Error::new(io::ErrorKind::PermissionDenied, OTHER_SECRET)),
    }
}

/// Reads what the caller speaks, and says in which version it is answered; returns all that was said, and that.
fn agree(until: &Until, stream: &mut Stream, membership: &Membership) -> io::Result<(Vec<u8>, u8)> {
    let magic: [u8; 4] = until.read(&mut stream.read)?;
    if magic != MAGIC {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no node of Roundel"));
    }
    let [said] = until.read(&mut stream.read)?;
    let mut shared = [&magic[..], &[said]].concat();
    if membership.newest == FIXED_VERSION && said != FIXED_VERSION {
        return Err(refuse(&mut stream.write, &other_version(said, FIXED_VERSION)));
    }
    if said < VERSION_MIN {
        let spoken = format!("{VERSION_MIN} to {}: upgrade it", membership.newest);
        return Err(refuse(&mut stream.write, &other_version(said, spoken)));
    }
    let agreed = said.min(membership.newest);
    if said != FIXED_VERSION {
        stream.write.write_all(&[GOES_ON, agreed])?;
        shared.push(agreed);
    }
    Ok((shared, agreed))
}

/// The side that is called; returns the name of the node that calls, and the version that both speak.
///
/// # Errors
/// The system's; when the caller is no node of the cluster.
pub(crate) fn answer(stream: &mut Stream, membership: &Membership) -> io::Result<(String, u8)> {
    let until = Until(Instant::now() + HANDSHAKE_MAX);
    stream.complete(&|| until.check())?;
    let (mut shared, agreed) = agree(&until, stream, membership)?;
    let cluster = until.counted(&mut stream.read)?;
    let node = until.counted(&mut stream.read)?;
    let theirs: [u8; NONCE_BYTES] = until.read(&mut stream.read)?;
    if cluster != membership.cluster.as_bytes() {
        return Err(refuse(&mut stream.write, "it belongs to another cluster"));
    }
    let own = nonce()?;
    stream.write.write_all(&[&[GOES_ON], &own[..]].concat())?;
    for name in [&cluster, &node] {
        shared.push(name.len() as u8);
        shared.extend_from_slice(name);
    }
    for more in [&theirs[..], &own[..], &stream.binding] {
        shared.extend_from_slice(more);
    }
    let shown: [u8; MAC_BYTES] = until.read(&mut stream.read)?;
    if !membership.check("caller", &shared, &shown) {
        return Err(refuse(&mut stream.write, OTHER_SECRET));
    }
    let both = marked(&theirs).min(membership.newest);
    if agreed == FIXED_VERSION && both > FIXED_VERSION {
        return Err(refuse(&mut stream.write, &changed_between(both)));
    }
    let proof = membership.proof("called", &shared);
    stream.write.write_all(&[&[GOES_ON], proof.as_ref()].concat())?;
    Ok((String::from_utf8_lossy(&node).into_owned(), agreed))
}

/// Why a caller is refused that was made to speak an older version than both could. Once that is no wonder: this node was upgraded between
/// its two calls.
fn changed_between(both: u8) -> String {
    format!(
        "it speaks version {FIXED_VERSION} of the protocol between nodes although both could speak {both}: if that lasts, what they say is changed on its way"
    )
}

#[cfg(test)]
mod tests;
