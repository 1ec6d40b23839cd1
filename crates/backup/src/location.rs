//! Where a backup is: a bucket of an S3 server, or a directory.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};

/// How long a request may take; one of 8 MiB at 70 kB a second.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Retries within a request; beyond them, a round ends and the next one goes on.
const RETRIES: usize = 3;
/// How long these may take.
const RETRY_TIMEOUT: Duration = Duration::from_secs(150);

/// What a location needs beside its URL; what is not given here, the environment has (AWS_ENDPOINT_URL, AWS_REGION,
/// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and others of AWS's).
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// The server's URL, if it is not Amazon's.
    pub endpoint: Option<String>,
    /// The region.
    pub region: Option<String>,
    /// The name of the key.
    pub access_key_id: Option<String>,
    /// The key.
    pub secret_access_key: Option<String>,
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the key.
        f.debug_struct("Access")
            .field("endpoint", &self.endpoint)
            .field("region", &self.region)
            .finish_non_exhaustive()
    }
}

/// A place for objects, and what their names begin with there.
#[derive(Clone, Debug)]
pub struct Location {
    /// The place.
    pub store: Arc<dyn ObjectStore>,
    /// What all names begin with, without a slash at the end; may be empty.
    pub prefix: String,
}

/// A URL in its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A bucket and a prefix.
    S3(String, String),
    /// A directory.
    Directory(PathBuf),
}

impl Target {
    /// Reads a URL or path.
    ///
    /// # Errors
    /// When it is none that is known.
    pub fn parse(url: &str) -> Result<Target, String> {
        if let Some(rest) = url.strip_prefix("s3://") {
            let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
            let is_bucket = !bucket.is_empty()
                && bucket.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
            let is_prefix = !prefix.split('/').any(|part| part == "..");
            return match is_bucket && is_prefix {
                true => Ok(Target::S3(bucket.to_string(), prefix.trim_matches('/').to_string())),
                false => Err(format!("\"{url}\" is not s3://BUCKET/PREFIX")),
            };
        }
        let path = url.strip_prefix("file://").unwrap_or(url);
        match path.is_empty() || path.contains("://") {
            true => Err(format!("\"{url}\" is not s3://BUCKET/PREFIX, file:///DIR or a directory")),
            false => std::path::absolute(path).map(Target::Directory).map_err(|error| error.to_string()),
        }
    }
}

impl Location {
    /// The place of a URL. A directory is made if it is missing and `create` is set.
    ///
    /// # Errors
    /// When the URL is not known, something that it needs is missing, or the directory cannot be opened.
    pub fn open(url: &str, access: &Access, create: bool) -> Result<Location, String> {
        let cannot = |error: &dyn std::fmt::Display| format!("cannot use \"{url}\": {error}");
        match Target::parse(url)? {
            Target::Directory(path) => {
                if create {
                    std::fs::create_dir_all(&path).map_err(|error| cannot(&error))?;
                }
                let local = LocalFileSystem::new_with_prefix(&path).map_err(|error| cannot(&error))?;
                // Durable before it is answered: a manifest must not survive what it names.
                Ok(Location { store: Arc::new(local.with_fsync(true)), prefix: String::new() })
            }
            Target::S3(bucket, prefix) => {
                // An error means that it is there already.
                let _ = rustls::crypto::ring::default_provider().install_default();
                let store = s3(&bucket, access).map_err(|error| cannot(&error))?;
                Ok(Location { store, prefix })
            }
        }
    }
}

fn s3(bucket: &str, access: &Access) -> object_store::Result<Arc<dyn ObjectStore>> {
    let client = ClientOptions::new()
        .with_allow_http(access.endpoint.as_deref().is_none_or(|endpoint| endpoint.starts_with("http://")))
        .with_timeout(REQUEST_TIMEOUT)
        .with_connect_timeout(CONNECT_TIMEOUT);
    let retry =
        RetryConfig { backoff: BackoffConfig::default(), max_retries: RETRIES, retry_timeout: RETRY_TIMEOUT };
    let mut builder =
        AmazonS3Builder::from_env().with_bucket_name(bucket).with_client_options(client).with_retry(retry);
    if let Some(endpoint) = &access.endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    if let Some(region) = &access.region {
        builder = builder.with_region(region);
    }
    if let Some(id) = &access.access_key_id {
        builder = builder.with_access_key_id(id);
    }
    if let Some(key) = &access.secret_access_key {
        builder = builder.with_secret_access_key(key);
    }
    Ok(Arc::new(builder.build()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_buckets_and_directories() {
        let s3 = |bucket: &str, prefix: &str| Ok(Target::S3(bucket.to_string(), prefix.to_string()));
        assert_eq!(Target::parse("s3://bucket"), s3("bucket", ""));
        assert_eq!(Target::parse("s3://my.bucket-1/a/b/"), s3("my.bucket-1", "a/b"));
        assert_eq!(Target::parse("file:///srv/backup"), Ok(Target::Directory("/srv/backup".into())));
        assert_eq!(Target::parse("/srv/backup"), Ok(Target::Directory("/srv/backup".into())));
        for bad in ["", "s3://", "s3:///x", "s3://a b/x", "s3://a/../b", "ftp://x", "file://"] {
            assert!(Target::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn keys_are_not_shown() {
        let access = Access { secret_access_key: Some("hidden".to_string()), ..Access::default() };
        assert!(!format!("{access:?}").contains("hidden"));
    }
}
