//! Looks up the addresses of hosts now and then; a resolver that hangs delays no poll.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

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
    sender: mpsc::Sender<Found<K>>,
    found: mpsc::Receiver<Found<K>>,
    permits: Arc<Semaphore>,
    /// Dropped, they end.
    tasks: JoinSet<()>,
}

impl<K> Default for Lookups<K> {
    fn default() -> Self {
        let (sender, found) = mpsc::channel(LOOKUPS_AT_ONCE);
        let permits = Arc::new(Semaphore::new(LOOKUPS_AT_ONCE));
        Lookups { sender, found, permits, tasks: JoinSet::new() }
    }
}

impl<K: Copy + Send + 'static> Lookups<K> {
    /// Looks up a further host. Of several addresses, the first that is `preferred` is found, or else the first.
    pub fn add(
        &mut self,
        key: K,
        host: &str,
        port: u16,
        preferred: impl Fn(&SocketAddr) -> bool + Send + Sync + 'static,
    ) {
        let (sender, permits, host) = (self.sender.clone(), Arc::clone(&self.permits), host.to_string());
        self.tasks.spawn(async move {
            loop {
                let found = {
                    let _permit = permits.acquire().await;
                    resolve(&host, port, &preferred).await
                };
                let pause = if found.is_ok() { LOOKUP_EVERY } else { LOOKUP_AGAIN };
                if sender.send((key, found)).await.is_err() || host.parse::<IpAddr>().is_ok() {
                    return;
                }
                tokio::time::sleep(pause).await;
            }
        });
    }

    /// Waits for the next one that has been looked up.
    pub async fn next(&mut self) -> Found<K> {
        match self.found.recv().await {
            Some(found) => found,
            // Cannot be: a sender is kept.
            None => std::future::pending().await,
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
        // What is an address is looked up once, what was not found again.
        let permits = Arc::clone(&lookups.permits);
        assert_eq!(Arc::strong_count(&permits), 3);
        drop(lookups);
        while Arc::strong_count(&permits) > 1 {
            tokio::task::yield_now().await;
        }
    }
}
