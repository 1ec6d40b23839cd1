//! How two nodes recognise each other: the same version and cluster, and both know its secret.
//!
//! The caller sends a nonce and who it is, the node that was called another nonce; then each shows an HMAC-SHA256 of all of that, the caller first,
//! so that a stranger who calls gets nothing to guess secrets by. All of it takes less than a kilobyte, and must be over in [`HANDSHAKE_MAX`].

use std::fmt;
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

use crate::frames::is_timeout;
use crate::stream::Stream;
use crate::tls::NodeTls;
use crate::wire::VERSION;

const MAGIC: [u8; 4] = *b"RNDP";
const NONCE_BYTES: usize = 32;
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
        Ok(Membership { cluster: cluster.to_owned(), node: node.to_owned(), key, tls })
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

    fn hello(&self, nonce: &[u8]) -> Vec<u8> {
        let mut hello = MAGIC.to_vec();
        hello.push(VERSION);
        for name in [&self.cluster, &self.node] {
            hello.push(name.len() as u8);
            hello.extend_from_slice(name.as_bytes());
        }
        hello.extend_from_slice(nonce);
        hello
    }
}

fn nonce() -> io::Result<[u8; NONCE_BYTES]> {
    let mut nonce = [0; NONCE_BYTES];
    SystemRandom::new().fill(&mut nonce).map_err(|_| io::Error::other("no random numbers"))?;
    Ok(nonce)
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
fn verdict(until: &Until, stream: &mut dyn Read) -> io::Result<()> {
    match until.read(stream)? {
        [GOES_ON] => Ok(()),
        [REFUSED] => {
            let why = until.counted(stream)?;
            let text = format!("it refuses this node: {}", String::from_utf8_lossy(&why));
            Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
        }
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "what answers there is no node of Roundel")),
    }
}

/// Says why not, and gives the same as an error.
fn refuse(stream: &mut dyn Write, why: &str) -> io::Error {
    let mut out = vec![REFUSED, why.len().min(255) as u8];
    out.extend_from_slice(&why.as_bytes()[..why.len().min(255)]);
    let _ = stream.write_all(&out);
    io::Error::new(io::ErrorKind::PermissionDenied, why.to_owned())
}

const OTHER_SECRET: &str = "it has another secret than the other nodes of the cluster";

/// The side that calls.
///
/// # Errors
/// The system's; when the other one is no node of the cluster, or does not take this one for one.
pub(crate) fn call(stream: &mut Stream, membership: &Membership) -> io::Result<()> {
    let until = Until(Instant::now() + HANDSHAKE_MAX);
    stream.complete(&|| until.check())?;
    let own = nonce()?;
    let hello = membership.hello(&own);
    stream.write.write_all(&hello)?;
    verdict(&until, &mut stream.read)?;
    let theirs: [u8; NONCE_BYTES] = until.read(&mut stream.read)?;
    let shared = [&hello, &theirs[..], &stream.binding].concat();
    stream.write.write_all(membership.proof("caller", &shared).as_ref())?;
    verdict(&until, &mut stream.read)?;
    let shown: [u8; MAC_BYTES] = until.read(&mut stream.read)?;
    match membership.check("called", &shared, &shown) {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::PermissionDenied, OTHER_SECRET)),
    }
}

/// The side that is called; returns the name of the node that calls.
///
/// # Errors
/// The system's; when the caller is no node of the cluster.
pub(crate) fn answer(stream: &mut Stream, membership: &Membership) -> io::Result<String> {
    let until = Until(Instant::now() + HANDSHAKE_MAX);
    stream.complete(&|| until.check())?;
    let magic: [u8; 4] = until.read(&mut stream.read)?;
    if magic != MAGIC {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no node of Roundel"));
    }
    let [version] = until.read(&mut stream.read)?;
    if version != VERSION {
        let why = format!("it has version {version} of the protocol between nodes, the others {VERSION}");
        return Err(refuse(&mut stream.write, &why));
    }
    let cluster = until.counted(&mut stream.read)?;
    let node = until.counted(&mut stream.read)?;
    let theirs: [u8; NONCE_BYTES] = until.read(&mut stream.read)?;
    if cluster != membership.cluster.as_bytes() {
        return Err(refuse(&mut stream.write, "it belongs to another cluster"));
    }
    let own = nonce()?;
    stream.write.write_all(&[&[GOES_ON], &own[..]].concat())?;
    let node = String::from_utf8_lossy(&node).into_owned();
    let caller = Membership { node, ..membership.clone() };
    let shared = [&caller.hello(&theirs), &own[..], &stream.binding].concat();
    let shown: [u8; MAC_BYTES] = until.read(&mut stream.read)?;
    if !membership.check("caller", &shared, &shown) {
        return Err(refuse(&mut stream.write, OTHER_SECRET));
    }
    let proof = membership.proof("called", &shared);
    stream.write.write_all(&[&[GOES_ON], proof.as_ref()].concat())?;
    Ok(caller.node)
}
