//! Looks up the addresses of hosts now and then; a resolver that hangs delays no poll.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};

/// How often a host's address is looked up.
const LOOKUP_EVERY: Duration = Duration::from_secs(300);
/// The same for one that was not found.
const LOOKUP_AGAIN: Duration = Duration::from_secs(60);
/// How many are looked up at once.
const LOOKUPS_AT_ONCE: usize = 16;
/// How long to wait for a host's address.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// A host's address, or why there is none, by the key of the host.
pub(super) type Found<K> = (K, Result<SocketAddr, String>);

/// Hosts that are looked up; when it is dropped, no longer.
pub(super) struct Lookups<K> {
    /// With the number of the task.
    sender: mpsc::Sender<(u64, Found<K>)>,
    found: mpsc::Receiver<(u64, Found<K>)>,
    permits: Arc<Semaphore>,
    /// Dropped, they end.
    tasks: JoinSet<()>,
    /// The task of each host, and its number.
    running: HashMap<K, (u64, AbortHandle)>,
    last: u64,
}

impl<K> Default for Lookups<K> {
    fn default() -> Self {
        let (sender, found) = mpsc::channel(LOOKUPS_AT_ONCE);
        let permits = Arc::new(Semaphore::new(LOOKUPS_AT_ONCE));
        Lookups { sender, found, permits, tasks: JoinSet::new(), running: HashMap::new(), last: 0 }
    }
}

impl<K: Copy + Eq + Hash + Send + 'static> Lookups<K> {
    /// Looks up a further host, or another one of this key. Of several addresses, the first that is `preferred` is found, or else the first.
    pub fn add(
        &mut self,
        key: K,
        host: &str,
        port: u16,
        preferred: impl Fn(&SocketAddr) -> bool + Send + Sync + 'static,
    ) {
        let (sender, permits, host) = (self.sender.clone(), Arc::clone(&self.permits), host.to_string());
        self.last += 1;
        let number = self.last;
        let task = self.tasks.spawn(async move {
            loop {
                let found = {
                    let _permit = permits.acquire().await;
                    resolve(&host, port, &preferred).await
                };
                let pause = if found.is_ok() { LOOKUP_EVERY } else { LOOKUP_AGAIN };
                if sender.send((number, (key, found))).await.is_err() || host.parse::<IpAddr>().is_ok() {
                    return;
                }
                tokio::time::sleep(pause).await;
            }
        });
        self.remove(key);
        self.running.insert(key, (number, task));
        // Those that have ended.
        while self.tasks.try_join_next().is_some() {}
    }

    /// Looks up a host no more.
    pub fn remove(&mut self, key: K) {
        if let Some((_, task)) = self.running.remove(&key) {
            task.abort();
        }
    }

    /// Waits for the next one that has been looked up.
    pub async fn next(&mut self) -> Found<K> {
        loop {
            match self.found.recv().await {
                // Found of a host that has been removed since.
                Some((number, found)) if self.running.get(&found.0).is_some_and(|task| task.0 == number) => {
                    return found;
                }
                Some(_) => {}
                // Cannot be: a sender is kept.
                None => std::future::pending().await,
            }
        }
    }
}

/// The first address of a host that is `preferred`, else its first.
async fn resolve(
    host: &str,
    port: u16,
    preferred: impl Fn(&SocketAddr) -> bool,
) -> Result<SocketAddr, String> {
    let found = tokio::time::timeout(LOOKUP_TIMEOUT, tokio::net::lookup_host((host, port))).await;
    let found = found.map_err(|_| "the resolver does not answer".to_string())?;
    let found: Vec<SocketAddr> = found.map_err(|error| error.to_string())?.collect();
    let best = found.iter().find(|address| preferred(address)).or(found.first());
    best.copied().ok_or_else(|| "it has no address".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn hosts_are_looked_up_until_that_is_dropped() {
        let mut lookups = Lookups::default();
        lookups.add('a', "127.0.0.1", 161, |_| true);
        lookups.add('b', "a..b", 161, |_| true);
        let mut found = [lookups.next().await, lookups.next().await];
        found.sort_by_key(|(key, _)| *key);
        assert_eq!(found[0], ('a', Ok(([127, 0, 0, 1], 161).into())));
        assert!(found[1].1.is_err(), "{found:?}");
        lookups.add('a', "127.0.0.2", 161, |_| true);
        // Found, but not taken before another host has its place.
        while lookups.found.is_empty() {
            tokio::task::yield_now().await;
        }
        lookups.add('a', "127.0.0.3", 161, |_| true);
        assert_eq!(lookups.next().await, ('a', Ok(([127, 0, 0, 3], 161).into())));
        // What is an address is looked up once, what was not found again.
        let permits = Arc::clone(&lookups.permits);
        assert_eq!(Arc::strong_count(&permits), 3);
        drop(lookups);
        while Arc::strong_count(&permits) > 1 {
            tokio::task::yield_now().await;
        }
    }
}
