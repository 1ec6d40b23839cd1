//! The file of tokens, read again when it changes.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use ::access::{Rights, TokenHash, Tokens};

use super::{Origin, Principal};
use crate::limits::TOKENS_LOOK_EVERY;
use crate::watched::WatchedFile;

/// A file of tokens, and who has them.
#[derive(Debug)]
pub struct TokenFile(Mutex<State>);

#[derive(Debug)]
struct State {
    file: WatchedFile,
    tokens: Tokens,
    /// Who has a token, since it was first used: what is left of its rates goes on.
    principals: HashMap<TokenHash, Arc<Principal>>,
    looked: Instant,
}

impl TokenFile {
    /// Reads the file; one that is not there has no tokens.
    ///
    /// # Errors
    /// What cannot be used, with the file's name.
    pub fn open(path: &Path) -> Result<Self, String> {
        let mut file = WatchedFile::new(path);
        let tokens = if path.exists() { read(&mut file)? } else { Tokens::default() };
        Ok(TokenFile(Mutex::new(State { file, tokens, principals: HashMap::new(), looked: Instant::now() })))
    }

    /// Whether there is a token.
    pub fn has_any(&self) -> bool {
        !self.state().tokens.accounts().is_empty()
    }

    /// Who has the token of this hash now.
    pub fn find(&self, hash: &TokenHash) -> Option<Arc<Principal>> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_secs() as i64);
        let mut state = self.state();
        if state.tokens.find(hash, now).is_none() {
            // It may have been made a moment ago.
            state.look();
        }
        let state = &mut *state;
        let account = state.tokens.find(hash, now)?;
        if let Some(known) = state.principals.get(hash) {
            return Some(Arc::clone(known));
        }
        let rights = Rights::new(account).ok()?;
        let principal = Principal::new(&account.name, Origin::Token(*hash), rights);
        state.principals.insert(*hash, Arc::clone(&principal));
        Some(principal)
    }

    /// Has the next call look at the file, as if enough time had passed.
    #[cfg(test)]
    pub fn expire(&self) {
        self.state().looked -= TOKENS_LOOK_EVERY;
    }

    /// What the file says, or said not long ago.
    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.looked.elapsed() >= TOKENS_LOOK_EVERY {
            state.look();
        }
        state
    }
}

impl State {
    /// Reads the file if it has changed. One that cannot be used leaves in force what was read before; one that is gone has no tokens.
    fn look(&mut self) {
        self.looked = Instant::now();
        if self.file.has_changed() {
            match read(&mut self.file) {
                Ok(tokens) => self.replace(tokens),
                Err(error) => {
                    tracing::error!(%error, "the tokens were not read again: what was read before stays in force")
                }
            }
        } else if !self.tokens.accounts().is_empty() && self.file.is_gone() {
            tracing::warn!(file = %self.file.path().display(), "the file of tokens is gone: no token is in force");
            self.replace(Tokens::default());
        }
    }

    /// Principals whose accounts are the same stay.
    fn replace(&mut self, tokens: Tokens) {
        let account = |tokens: &Tokens, hash: &TokenHash| tokens.find(hash, 0).cloned();
        self.principals.retain(|hash, _| account(&tokens, hash) == account(&self.tokens, hash));
        self.tokens = tokens;
    }
}

fn read(file: &mut WatchedFile) -> Result<Tokens, String> {
    let bytes = file.read()?;
    let in_file = |error: String| format!("\"{}\": {error}", file.path().display());
    let text = String::from_utf8(bytes).map_err(|_| in_file("it is not UTF-8".to_string()))?;
    Tokens::parse(&text).map_err(in_file)
}
