//! Who a client is, and what it may do: accounts of the configuration, tokens, programs on UNIX sockets, and those who do not say.
//!
//! What a client may do is decided by `access::Rights`. Where it is enforced: each client works with the [`Service`](crate::service::Service)
//! as its rights show it (`Service::seen_by`), whose store is a [`guard::Guard`], so that no request can forget to ask. What may not be
//! read is not there.

pub mod audit;
pub mod guard;
mod token_file;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use ::access::{Account, Rates, Rights, TokenHash, check_name};
use protocol::rrdcached::command::{Permissions, Verb};

use self::audit::{Audit, Event};
use self::token_file::TokenFile;
use crate::limits::TOKENS_LOOK_EVERY;
use crate::peer::Peer;
use crate::privileges;
use crate::rate::RateLimit;

/// How much of a rate may come at once, in seconds of it.
const BURST_SECONDS: u32 = 10;
/// Commands about the daemon or the store as a whole, and those that change how others are answered.
const OPERATING: [Verb; 14] = [
    Verb::Cluster,
    Verb::Promote,
    Verb::Replication,
    Verb::Snapshot,
    Verb::Queue,
    Verb::Stats,
    Verb::Suspend,
    Verb::Resume,
    Verb::SuspendAll,
    Verb::ResumeAll,
    Verb::Forget,
    Verb::Verify,
    Verb::Trash,
    Verb::Adoption,
];

/// What `[access]` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessSettings {
    /// Users whose rights are not everything.
    pub users: Vec<Account>,
    /// The file of tokens; it need not be there.
    pub tokens: Option<PathBuf>,
    /// The file to which refusals and changes are appended.
    pub audit: Option<PathBuf>,
}

impl AccessSettings {
    /// Checks the users, without a look at any file.
    ///
    /// # Errors
    /// What cannot be used, and why.
    pub fn check_users(&self) -> Result<(), String> {
        Access::of_users(&self.users).map(drop)
    }
}

/// What clients may do that do not say who they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Anonymous {
    /// Nothing.
    Nothing,
    /// Read everything.
    Read,
    /// Everything.
    All,
    /// What an account says.
    Account(Box<Account>),
}

impl Anonymous {
    /// The word that stands for it in a configuration.
    ///
    /// # Errors
    /// When it is another one.
    pub fn parse(word: &str) -> Result<Self, String> {
        match word {
            "none" => Ok(Anonymous::Nothing),
            "read" => Ok(Anonymous::Read),
            "all" => Ok(Anonymous::All),
            _ => Err(format!(
                "\"{word}\": give \"none\", \"read\", \"all\", or {{ read = [...], write = [...] }}"
            )),
        }
    }

    /// Who they are, then.
    ///
    /// # Errors
    /// Which pattern cannot be used.
    pub fn principal(&self) -> Result<Arc<Principal>, String> {
        let rights = match self {
            Anonymous::Nothing => return Ok(Principal::without_rights()),
            Anonymous::All => return Ok(Principal::everyone()),
            Anonymous::Read => Rights::read_all(),
            Anonymous::Account(account) => Rights::new(account)?,
        };
        Ok(Principal::new("anonymous", Origin::Anonymous, rights))
    }
}

/// How it is known who a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Anonymous,
    User,
    Token(TokenHash),
}

/// A client, or many that are the same to us, with what it may do and what is left of its rates.
#[derive(Debug)]
pub struct Principal {
    /// Its name, for logs.
    pub name: String,
    /// What it may do.
    pub rights: Rights,
    /// Tells it apart from all others.
    pub id: u64,
    origin: Origin,
    values: Option<RateLimit>,
    rows: Option<RateLimit>,
    new_rrds: Option<RateLimit>,
}

impl Principal {
    fn new(name: &str, origin: Origin, rights: Rights) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let Rates { values_per_second, rows_per_second, new_rrds_per_hour } = rights.rates;
        let rate = |limit: Option<u32>, second: Duration, burst: u32| {
            limit.map(|limit| match limit {
                0 => RateLimit::new(second, 0),
                limit => RateLimit::new(second / limit, limit.saturating_mul(burst)),
            })
        };
        let second = Duration::from_secs(1);
        Arc::new(Principal {
            name: name.to_string(),
            values: rate(values_per_second, second, BURST_SECONDS),
            rows: rate(rows_per_second, second, BURST_SECONDS),
            new_rrds: rate(new_rrds_per_hour, Duration::from_hours(1), 1),
            rights,
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            origin,
        })
    }

    /// One who may do everything.
    pub fn everyone() -> Arc<Self> {
        static EVERYONE: OnceLock<Arc<Principal>> = OnceLock::new();
        let new = || Principal::new("anonymous", Origin::Anonymous, Rights::all());
        Arc::clone(EVERYONE.get_or_init(new))
    }

    /// One who may do nothing.
    pub fn without_rights() -> Arc<Self> {
        static WITHOUT: OnceLock<Arc<Principal>> = OnceLock::new();
        let new = || Principal::new("anonymous", Origin::Anonymous, Rights::default());
        Arc::clone(WITHOUT.get_or_init(new))
    }

    /// The account that it has shown to be; `None` for one that has said nothing.
    pub fn account(&self) -> Option<&str> {
        (self.origin != Origin::Anonymous).then_some(&*self.name)
    }

    /// The commands that it may give, of those that its socket allows.
    pub fn commands(&self, allowed: Permissions) -> Permissions {
        if self.rights.is_nothing() {
            return Permissions::NONE;
        }
        if self.rights.operate {
            return allowed;
        }
        OPERATING.iter().fold(allowed, |allowed, verb| allowed.without(*verb))
    }
}

/// All who are known.
#[derive(Debug, Default)]
pub struct Access {
    users: HashMap<String, Arc<Principal>>,
    unix_users: HashMap<u32, Arc<Principal>>,
    unix_groups: HashMap<u32, Arc<Principal>>,
    tokens: Option<TokenFile>,
    /// Users without an account, who may do everything, and whose name only counts in the log.
    others: Mutex<HashMap<String, Arc<Principal>>>,
    /// What is recorded of what clients do.
    pub audit: Audit,
}

/// Names of users without an account that are kept.
const OTHERS_MAX: usize = 1000;

impl Access {
    /// What the settings say.
    ///
    /// # Errors
    /// What cannot be used, and why.
    pub fn new(settings: &AccessSettings) -> Result<Self, String> {
        let tokens = settings.tokens.as_deref().map(TokenFile::open).transpose()?;
        let audit = Audit::new(settings.audit.clone());
        Ok(Access { tokens, audit, ..Access::of_users(&settings.users)? })
    }

    fn of_users(users: &[Account]) -> Result<Self, String> {
        let mut access = Access::default();
        for account in users {
            access.add(account).map_err(|error| format!("[[access.user]] {:?}: {error}", account.name))?;
        }
        Ok(access)
    }

    fn add(&mut self, account: &Account) -> Result<(), String> {
        check_name(&account.name)?;
        if account.sha256.is_some() || account.expires.is_some() || account.made.is_some() {
            return Err("sha256, expires and made are for tokens: `roundel token add`".to_string());
        }
        let principal = Principal::new(&account.name, Origin::User, Rights::new(account)?);
        let ids = [
            (
                &account.unix_user,
                "user",
                privileges::user_id as fn(&str) -> Option<u32>,
                &mut self.unix_users,
            ),
            (&account.unix_group, "group", privileges::group_id, &mut self.unix_groups),
        ];
        for (text, kind, id_of, known) in ids {
            let Some(text) = text else { continue };
            let id = id_of(text).ok_or_else(|| format!("there is no {kind} \"{text}\" on this machine"))?;
            if known.insert(id, Arc::clone(&principal)).is_some() {
                return Err(format!("another one has the same unix_{kind}"));
            }
        }
        match self.users.insert(account.name.clone(), principal) {
            Some(_) => Err("there are two of that name".to_string()),
            None => Ok(()),
        }
    }

    /// Whether anyone can say who it is: there are tokens, or a file for them.
    pub fn has_tokens(&self) -> bool {
        self.tokens.as_ref().is_some_and(TokenFile::has_any)
    }

    /// Who gives this token.
    pub fn of_token(&self, token: &[u8]) -> Option<Arc<Principal>> {
        self.tokens.as_ref()?.find(&TokenHash::of(token)?)
    }

    /// Who has shown by a password or a certificate to be the user of this name: one with an account, or one who may do everything.
    pub fn of_user(&self, name: &str) -> Arc<Principal> {
        if let Some(user) = self.users.get(name) {
            return Arc::clone(user);
        }
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if others.len() >= OTHERS_MAX {
            others.clear();
        }
        let new = || Principal::new(name, Origin::User, Rights::all());
        Arc::clone(others.entry(name.to_string()).or_insert_with(new))
    }

    /// Who has a verified certificate of these names: the first of them with an account, else one who may do everything.
    pub fn of_certificate(&self, names: &[String]) -> Option<Arc<Principal>> {
        let known = names.iter().find_map(|name| self.users.get(name).map(Arc::clone));
        known.or_else(|| names.first().map(|name| self.of_user(name)))
    }

    /// Who is at the other end of a connection, if that says it.
    pub fn of_peer(&self, peer: &Peer) -> Option<Arc<Principal>> {
        match peer {
            Peer::Unix { uid, gid } => self.of_unix(*uid, *gid),
            Peer::Tcp { certificate, .. } => self.of_certificate(certificate.as_ref()?),
        }
    }

    /// Whose program is at the other end of a UNIX socket, if that has an account.
    pub fn of_unix(&self, user: u32, group: u32) -> Option<Arc<Principal>> {
        self.unix_users.get(&user).or_else(|| self.unix_groups.get(&group)).map(Arc::clone)
    }

    /// Whether a principal is still known: a token may have been revoked, or have ended.
    pub fn is_known(&self, principal: &Principal) -> bool {
        match &principal.origin {
            Origin::Token(hash) => {
                let found = self.tokens.as_ref().and_then(|tokens| tokens.find(hash));
                found.is_some_and(|found| found.id == principal.id)
            }
            Origin::Anonymous | Origin::User => true,
        }
    }

    /// Waits until a principal is no longer known: for the sessions that live for months without a request of their own.
    pub async fn no_longer_knows(&self, principal: &Principal) {
        if !Access::can_change(principal) {
            return std::future::pending().await;
        }
        while self.is_known(principal) {
            tokio::time::sleep(TOKENS_LOOK_EVERY).await;
        }
    }

    /// Whether this principal's standing can change while it is connected.
    pub fn can_change(principal: &Principal) -> bool {
        matches!(principal.origin, Origin::Token(_))
    }

    /// Records that a client could not say who it is.
    pub fn refused(&self, from: &str, what: &str) {
        self.audit.record(&Event { who: from, what: "refused", name: None, detail: Some(what) });
    }
}

#[cfg(test)]
mod tests;
