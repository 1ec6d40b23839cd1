//! A connection to a played daemon, which refuses what is called `bad...` and may end at any request.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use protocol::frames::code::ErrorCode;
use protocol::frames::request::Update;
use roundel_client::ClientError;
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread::yield_now;

pub type Refusals = Vec<(u32, ClientError)>;

/// What a played daemon did with an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Answered,
    /// The connection ended between request and answer.
    Lost,
}

/// A played daemon. Its lock is the real one, held for no switch of threads.
#[derive(Debug, Default)]
pub struct Played {
    /// How likely a connection ends at a request.
    pub mortality: f64,
    pub seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
pub struct Seen {
    /// Names in the order in which they came.
    pub order: Vec<String>,
    pub fates: HashMap<String, Fate>,
    /// Connections that are open.
    pub open: usize,
    pub largest_batch: usize,
}

#[derive(Debug)]
pub struct Connection {
    played: Arc<Played>,
    used: bool,
    ended: bool,
}

impl Connection {
    pub fn open(played: &Arc<Played>) -> Self {
        yield_now();
        played.seen.lock().unwrap().open += 1;
        Connection { played: Arc::clone(played), used: false, ended: false }
    }

    pub fn may_be_stale(&self, error: &io::Error) -> bool {
        self.used && error.kind() == io::ErrorKind::BrokenPipe
    }

    pub fn update<'a>(
        &mut self,
        updates: impl ExactSizeIterator<Item = Update<'a>> + Clone,
    ) -> io::Result<Refusals> {
        let names: Vec<String> =
            updates.map(|update| String::from_utf8_lossy(update.name).into_owned()).collect();
        self.begin()?;
        let fate = self.end();
        let mut seen = self.played.seen.lock().unwrap();
        seen.largest_batch = seen.largest_batch.max(names.len());
        for name in &names {
            seen.order.push(name.clone());
            let before = seen.fates.insert(name.clone(), fate);
            assert_eq!(before, None, "{name} is sent once");
        }
        if fate == Fate::Lost {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let bad = (0..).zip(names).filter(|(_, name)| name.starts_with("bad"));
        let refused = |name: String| ClientError::Refused { code: ErrorCode::Other, text: name.into_bytes() };
        Ok(bad.map(|(index, name)| (index, refused(name))).collect())
    }

    /// Any other request.
    pub fn ask(&mut self) -> io::Result<()> {
        self.begin()?;
        match self.end() {
            Fate::Answered => Ok(()),
            Fate::Lost => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// A connection may have ended since its last answer: nothing is sent.
    fn begin(&mut self) -> io::Result<()> {
        assert!(!self.ended, "a connection that has ended is not used again");
        self.ended = self.used && thread_rng().gen_bool(self.played.mortality);
        if self.ended { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
    }

    fn end(&mut self) -> Fate {
        yield_now();
        self.used = true;
        self.ended = thread_rng().gen_bool(self.played.mortality);
        if self.ended { Fate::Lost } else { Fate::Answered }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Also while a failed assertion unwinds.
        self.played.seen.lock().unwrap_or_else(PoisonError::into_inner).open -= 1;
    }
}
