//! In place of `remote.rs` in a build without the feature `http-client`.

use std::convert::Infallible;
use std::path::Path;

use super::Result;

/// Never exists.
pub struct Server(Infallible);

impl Server {
    /// Refuses.
    ///
    /// # Errors
    /// Always: this build lacks the feature.
    pub fn new(url: &str) -> Result<Self> {
        Err(args::feature::missing(&format!("a request to {url}"), "http-client"))
    }

    /// Refuses.
    ///
    /// # Errors
    /// Always: this build lacks the feature.
    pub fn daemon(url: &str, _authority: Option<&Path>) -> Result<Self> {
        Server::new(url)
    }

    /// Is never called.
    ///
    /// # Errors
    /// None.
    pub fn get(&self, _path: &str, _query: &[(&str, &str)]) -> Result<Vec<u8>> {
        match self.0 {}
    }

    /// Is never called.
    ///
    /// # Errors
    /// None.
    pub fn post(&self, _path: &str, _form: &[(&str, String)]) -> Result<(u16, Vec<u8>)> {
        match self.0 {}
    }
}
