//! An object store with the faults of real ones, as a seed says: slow, erring, losing and tearing uploads, full, and with lists
//! that lie.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// What goes wrong, in how many of a hundred requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub slow: u64,
    pub erring: u64,
    pub losing: u64,
    pub tearing: u64,
    pub full: u64,
    /// Of the objects of a list.
    pub hiding: u64,
    /// The server's clock is so many seconds ahead.
    pub ahead: i64,
}

#[derive(Debug)]
pub struct Faulty {
    pub inner: InMemory,
    faults: Mutex<Faults>,
    state: AtomicU64,
    pub puts: AtomicU64,
    /// The process ends in the middle of a request.
    pub dead_after: AtomicU64,
    pub is_dead: AtomicBool,
    /// So many deletions are done, the rest fails.
    pub deletions: AtomicU64,
    /// Names with this in them answer as if they were not there.
    hidden: Mutex<Option<String>>,
    /// There is no room for names with this in them.
    full_for: Mutex<String>,
    /// Seconds that have passed on the server's clock beside those of this machine's.
    passed: AtomicI64,
    /// `passed` at the time when each object was written.
    written: Mutex<BTreeMap<String, i64>>,
}

impl Faulty {
    pub fn new(seed: u64, faults: Faults) -> Arc<Self> {
        Arc::new(Faulty {
            inner: InMemory::new(),
            faults: Mutex::new(faults),
            state: AtomicU64::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            puts: AtomicU64::new(0),
            dead_after: AtomicU64::new(u64::MAX),
            is_dead: AtomicBool::new(false),
            deletions: AtomicU64::new(u64::MAX),
            hidden: Mutex::new(None),
            full_for: Mutex::new("-".to_string()),
            passed: AtomicI64::new(0),
            written: Mutex::default(),
        })
    }

    pub fn set(&self, faults: Faults) {
        *self.faults.lock().unwrap() = faults;
    }

    /// Objects whose names have this in them are missing.
    pub fn hide(&self, name: &str) {
        *self.hidden.lock().unwrap() = Some(name.to_string());
    }

    pub fn show_all(&self) {
        *self.hidden.lock().unwrap() = None;
    }

    /// There is no room for objects whose names have this in them.
    pub fn full_for(&self, name: &str) {
        *self.full_for.lock().unwrap() = name.to_string();
    }

    /// Lets time pass on the server's clock.
    pub fn pass(&self, time: Duration) {
        self.passed.fetch_add(time.as_secs() as i64, Ordering::Relaxed);
    }

    fn is_hidden(&self, location: &Path) -> bool {
        let hidden = self.hidden.lock().unwrap();
        hidden.as_ref().is_some_and(|hidden| location.as_ref().contains(hidden.as_str()))
    }

    /// True in so many of a hundred cases.
    fn happens(&self, percent: impl Fn(&Faults) -> u64) -> bool {
        let next = |state: u64| {
            let state = state ^ (state << 13);
            let state = state ^ (state >> 7);
            Some(state ^ (state << 17))
        };
        let state = self.state.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap();
        (state >> 33) % 100 < percent(&self.faults.lock().unwrap())
    }

    fn error(what: &str) -> Error {
        Error::Generic { store: "faulty", source: what.to_string().into() }
    }

    /// Shows a time by the server's clock.
    fn shift(&self, meta: &mut ObjectMeta) {
        let written = self.written.lock().unwrap().get(meta.location.as_ref()).copied().unwrap_or(0);
        shift(self.faults.lock().unwrap().ahead + written, meta);
    }

    async fn ask(&self) -> Result<()> {
        if self.is_dead.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        if self.happens(|faults| faults.slow) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        match self.happens(|faults| faults.erring) {
            true => Err(Self::error("503 Slow Down\n<html>")),
            false => Ok(()),
        }
    }
}

fn shift(ahead: i64, meta: &mut ObjectMeta) {
    let (written, by) = (SystemTime::from(meta.last_modified), Duration::from_secs(ahead.unsigned_abs()));
    meta.last_modified = if ahead < 0 { written - by } else { written + by }.into();
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("faulty")
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.ask().await?;
        if self.puts.fetch_add(1, Ordering::Relaxed) >= self.dead_after.load(Ordering::Relaxed) {
            self.is_dead.store(true, Ordering::Relaxed);
        }
        let is_full = location.as_ref().contains(self.full_for.lock().unwrap().as_str());
        if is_full || self.happens(|faults| faults.full) {
            return Err(Self::error("507 Insufficient Storage"));
        }
        if self.happens(|faults| faults.losing) {
            return Ok(PutResult { e_tag: None, version: None, extensions: Default::default() });
        }
        if self.happens(|faults| faults.tearing) {
            let bytes: Vec<u8> = payload.iter().flatten().copied().collect();
            let half = bytes[..bytes.len() / 2].to_vec();
            return self.inner.put(location, half.into()).await;
        }
        let put = self.inner.put_opts(location, payload, options).await;
        self.written.lock().unwrap().insert(location.to_string(), self.passed.load(Ordering::Relaxed));
        if self.is_dead.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        put
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        Err(Self::error("not needed"))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.ask().await?;
        if self.is_hidden(location) {
            return Err(Error::NotFound { path: location.to_string(), source: "hidden".into() });
        }
        let mut got = self.inner.get_opts(location, options).await?;
        self.shift(&mut got.meta);
        Ok(got)
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let is_done = |left: u64| left.checked_sub(1);
        match self.deletions.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_done) {
            Ok(_) => self.inner.delete_stream(locations),
            Err(_) => {
                futures_util::stream::once(std::future::ready(Err(Self::error("503 Slow Down")))).boxed()
            }
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let hidden: Vec<bool> = (0..1000).map(|_| self.happens(|faults| faults.hiding)).collect();
        let mut at = 0;
        let lie = move |_: &Result<ObjectMeta>| {
            at += 1;
            std::future::ready(!hidden[at % hidden.len()])
        };
        let ahead = self.faults.lock().unwrap().ahead;
        let written = self.written.lock().unwrap().clone();
        let hidden = self.hidden.lock().unwrap().clone();
        let is_shown = move |seen: &Result<ObjectMeta>| {
            let name = seen.as_ref().map(|meta| meta.location.to_string()).unwrap_or_default();
            std::future::ready(hidden.as_ref().is_none_or(|hidden| !name.contains(hidden.as_str())))
        };
        let shifted = move |mut seen: Result<ObjectMeta>| {
            if let Ok(meta) = &mut seen {
                shift(ahead + written.get(meta.location.as_ref()).copied().unwrap_or(0), meta);
            }
            seen
        };
        self.inner.list(prefix).filter(lie).filter(is_shown).map(shifted).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        Err(Self::error("not needed"))
    }
}
