//! Objects by name: sent, checked, fetched and listed, with limits and retries.
//!
//! Nothing is believed that the server says of a success: after an object was sent, its length is asked for, so that one that
//! was lost or torn is sent again. What a fetched object holds is checked against its name. A list is only a hint.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use futures_util::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};
use tokio::time::{Instant, sleep_until, timeout};

use crate::location::Location;
use crate::seal::{Keys, SealError};

/// How often an object is sent or fetched before its round fails.
const ATTEMPTS: u32 = 4;
/// The pause after the first failure; it doubles.
const PAUSE: Duration = Duration::from_millis(200);
/// A server that does not answer is one that fails.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(180);

/// The longest object: what a manifest may be, and its seal. A place that holds more under one of our names does not fill the memory.
const OBJECT_BYTES_MAX: usize = (256 << 20) + 4096;
/// So many names of a list are looked at: a server that never ends a list does not fill the memory, and a list is only a hint.
const LISTED_MAX: usize = 20_000_000;

/// What a server may be asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes a second that are sent or fetched; `None` = any number.
    pub bytes_per_second: Option<u64>,
    /// Requests a second; `None` = any number.
    pub requests_per_second: Option<u64>,
}

/// What was asked for.
#[derive(Debug, Default)]
pub struct Traffic {
    /// Bytes of objects sent, again if it was twice.
    pub bytes_sent: AtomicU64,
    /// Bytes of objects fetched.
    pub bytes_fetched: AtomicU64,
    /// Requests.
    pub requests: AtomicU64,
}

/// Why an object was not sent or fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectError {
    /// There is none of this name.
    Missing(String),
    /// Its content is not that of this name.
    Bad(String, SealError),
    /// The server fails.
    Failed(String, String),
}

impl std::fmt::Display for ObjectError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ObjectError::Missing(name) => write!(f, "object {name} is missing"),
            ObjectError::Bad(name, error) => write!(f, "object {name}: {error}"),
            ObjectError::Failed(name, error) => write!(f, "object {name}: {error}"),
        }
    }
}

impl std::error::Error for ObjectError {}

impl ObjectError {
    /// True when the object is gone or damaged, and trying again later would not help.
    pub fn is_loss(&self) -> bool {
        match self {
            ObjectError::Missing(_) => true,
            ObjectError::Bad(_, error) => matches!(error, SealError::Damaged | SealError::Foreign),
            ObjectError::Failed(..) => false,
        }
    }
}

/// An object as a list or a look shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its name, without the prefix.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// When it was written, by the server's clock.
    pub written: SystemTime,
}

/// The objects of a backup.
#[derive(Debug)]
pub struct Objects {
    location: Location,
    /// What they are named and sealed with.
    pub keys: Keys,
    limits: Limits,
    /// When the limits allow the next request.
    next: Mutex<Option<Instant>>,
    /// What was asked for so far.
    pub traffic: Traffic,
}

impl Objects {
    /// The objects at a location.
    pub fn new(location: Location, keys: Keys, limits: Limits) -> Self {
        Objects { location, keys, limits, next: Mutex::new(None), traffic: Traffic::default() }
    }

    fn path(&self, name: &str) -> Path {
        match self.location.prefix.as_str() {
            "" => Path::from(name),
            prefix => Path::from(format!("{prefix}/{name}")),
        }
    }

    /// Waits until the limits allow a request with so many bytes.
    async fn wait_for_turn(&self, bytes: u64) {
        self.traffic.requests.fetch_add(1, Ordering::Relaxed);
        let of_bytes = self.limits.bytes_per_second.map(|rate| bytes as f64 / rate.max(1) as f64);
        let of_requests = self.limits.requests_per_second.map(|rate| 1.0 / rate.max(1) as f64);
        let cost = of_bytes.unwrap_or(0.0).max(of_requests.unwrap_or(0.0));
        if cost == 0.0 {
            return;
        }
        let turn = {
            let mut next = self.next.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let turn = next.unwrap_or_else(Instant::now).max(Instant::now());
            *next = Some(turn + Duration::from_secs_f64(cost));
            turn
        };
        sleep_until(turn).await;
    }

    /// The name of the object with a content, which follows from its hash; in folders, because directories with a million files are slow.
    pub fn content_name(&self, plain: &[u8]) -> String {
        let hash = self.keys.hash(plain);
        format!("objects/{}/{hash}", &hash[..2])
    }

    /// Sends an object, and makes sure that it is there.
    ///
    /// # Errors
    /// When it cannot be encrypted; when the server fails, or loses or tears it again and again.
    pub async fn put(&self, name: &str, plain: Vec<u8>) -> Result<(), ObjectError> {
        let path = self.path(name);
        let sealed = self.keys.seal(name, plain);
        let payload = PutPayload::from(sealed.map_err(|error| ObjectError::Bad(name.to_string(), error))?);
        let bytes = payload.content_length() as u64;
        let mut pause = PAUSE;
        let mut last = String::new();
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            self.wait_for_turn(bytes).await;
            let sent = timeout(ANSWER_TIMEOUT, self.location.store.put(&path, payload.clone())).await;
            self.traffic.bytes_sent.fetch_add(bytes, Ordering::Relaxed);
            match sent {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => {
                    last = plain_text(&error);
                    continue;
                }
                Err(_) => {
                    last = "the server does not answer".to_string();
                    continue;
                }
            }
            match self.look(name).await {
                Ok(Some(seen)) if seen.bytes == bytes => return Ok(()),
                Ok(Some(seen)) => last = format!("{} of {bytes} bytes arrived", seen.bytes),
                Ok(None) => last = "the server took it, but it is not there".to_string(),
                Err(error) => last = error.to_string(),
            }
        }
        Err(ObjectError::Failed(name.to_string(), last))
    }

    /// What the server says of an object; `None`: there is none of this name.
    ///
    /// # Errors
    /// When the server fails.
    pub async fn look(&self, name: &str) -> Result<Option<Seen>, ObjectError> {
        self.wait_for_turn(0).await;
        match timeout(ANSWER_TIMEOUT, self.location.store.head(&self.path(name))).await {
            Ok(Ok(meta)) => {
                let written = SystemTime::from(meta.last_modified);
                Ok(Some(Seen { name: name.to_string(), bytes: meta.size, written }))
            }
            Ok(Err(object_store::Error::NotFound { .. })) => Ok(None),
            Ok(Err(error)) => Err(ObjectError::Failed(name.to_string(), plain_text(&error))),
            Err(_) => Err(ObjectError::Failed(name.to_string(), "the server does not answer".to_string())),
        }
    }

    /// Fetches the content of an object. One that arrives damaged is fetched once more.
    ///
    /// # Errors
    /// When it is missing or damaged, or the server fails.
    pub async fn get(&self, name: &str) -> Result<Vec<u8>, ObjectError> {
        let mut pause = PAUSE;
        let mut last = None;
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            match self.get_once(name).await {
                Ok(plain) => return Ok(plain),
                Err(error @ ObjectError::Missing(_)) => return Err(error),
                Err(error @ ObjectError::Bad(_, _)) if attempt > 0 => return Err(error),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| ObjectError::Missing(name.to_string())))
    }

    async fn get_once(&self, name: &str) -> Result<Vec<u8>, ObjectError> {
        let failed = |error: String| ObjectError::Failed(name.to_string(), error);
        self.wait_for_turn(0).await;
        let path = self.path(name);
        let fetch = async {
            let mut stored = Vec::new();
            let mut pieces = self.location.store.get(&path).await?.into_stream();
            while let Some(piece) = pieces.try_next().await? {
                stored.extend_from_slice(&piece);
                if stored.len() > OBJECT_BYTES_MAX {
                    return Ok(None);
                }
            }
            Ok(Some(stored))
        };
        let stored = match timeout(ANSWER_TIMEOUT, fetch).await {
            Ok(Ok(Some(stored))) => stored,
            Ok(Ok(None)) => return Err(ObjectError::Bad(name.to_string(), SealError::Foreign)),
            Ok(Err(object_store::Error::NotFound { .. })) => {
                return Err(ObjectError::Missing(name.to_string()));
            }
            Ok(Err(error)) => return Err(failed(plain_text(&error))),
            Err(_) => return Err(failed("the server does not answer".to_string())),
        };
        self.traffic.bytes_fetched.fetch_add(stored.len() as u64, Ordering::Relaxed);
        let bad = |error| ObjectError::Bad(name.to_string(), error);
        let plain = self.keys.open(name, &stored).map_err(bad)?;
        match name.strip_prefix("objects/") {
            Some(_) if self.content_name(&plain) != name => Err(bad(SealError::Damaged)),
            _ => Ok(plain),
        }
    }

    /// Deletes an object; one that is gone is deleted.
    ///
    /// # Errors
    /// When the server fails.
    pub async fn delete(&self, name: &str) -> Result<(), ObjectError> {
        self.wait_for_turn(0).await;
        match timeout(ANSWER_TIMEOUT, self.location.store.delete(&self.path(name))).await {
            Ok(Ok(()) | Err(object_store::Error::NotFound { .. })) => Ok(()),
            Ok(Err(error)) => Err(ObjectError::Failed(name.to_string(), plain_text(&error))),
            Err(_) => Err(ObjectError::Failed(name.to_string(), "the server does not answer".to_string())),
        }
    }

    /// What the server says there is below a folder: perhaps not all, perhaps more.
    ///
    /// # Errors
    /// When the server fails.
    pub async fn list(&self, folder: &str) -> Result<Vec<Seen>, ObjectError> {
        self.wait_for_turn(0).await;
        let from = self.path(folder);
        let listed: Result<Vec<_>, _> =
            self.location.store.list(Some(&from)).take(LISTED_MAX).try_collect().await;
        let listed = listed.map_err(|error| ObjectError::Failed(folder.to_string(), plain_text(&error)))?;
        // As the server has it: without empty parts, and with some bytes encoded.
        let prefix = Path::from(self.location.prefix.as_str());
        let seen = |meta: object_store::ObjectMeta| {
            let parts: Vec<_> = meta.location.prefix_match(&prefix)?.collect();
            let name = parts.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join("/");
            Some(Seen { name, bytes: meta.size, written: meta.last_modified.into() })
        };
        Ok(listed.into_iter().filter_map(seen).collect())
    }
}

/// The first line of an error: servers answer with pages.
fn plain_text(error: &object_store::Error) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().chars().take(300).collect()
}
