//! The page's scripts and styles, from the executable.

use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::http::failure::Failure;
use crate::http::packed::takes;

/// A file of `crates/server/assets`.
struct Asset {
    name: &'static str,
    content: &'static str,
    plain: &'static [u8],
    gzip: &'static [u8],
    brotli: &'static [u8],
}

/// All of them (`build.rs`).
const ASSETS: &[Asset] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// A hash of all of them: a part of their URLs, so that browsers may keep them for ever.
pub const HASH: &str = env!("ROUNDEL_ASSETS_HASH");

/// The script that pages load; it imports others.
const MAIN: &str = "main.js";

/// The scripts that are loaded when a page needs them.
const LATER: [&str; 2] = ["expression.js", "tree.js"];

/// The names of the scripts that `main.js` imports at once.
pub fn modules() -> impl Iterator<Item = &'static str> {
    let names = ASSETS.iter().map(|asset| asset.name);
    names.filter(|name| name.ends_with(".js") && *name != MAIN && !LATER.contains(name))
}

/// `GET /assets/HASH/NAME`
///
/// # Errors
/// 404.
pub async fn asset(
    Path((hash, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let missing = || Failure::new(StatusCode::NOT_FOUND, format!("no file is called \"{name}\""));
    let asset = ASSETS.iter().find(|asset| asset.name == name).ok_or_else(missing)?;
    // After an update of the daemon, an open page asks for files of the old one: it gets the new ones, but keeps none.
    let caching = if hash == HASH { "public, max-age=31536000, immutable" } else { "no-store" };
    let common = [
        (header::CONTENT_TYPE, asset.content),
        (header::CACHE_CONTROL, caching),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::VARY, "accept-encoding"),
    ];
    let encoded =
        [("br", asset.brotli), ("gzip", asset.gzip)].into_iter().find(|(name, _)| takes(name, &headers));
    Ok(match encoded {
        Some((name, bytes)) => (common, [(header::CONTENT_ENCODING, name)], bytes).into_response(),
        None => (common, asset.plain).into_response(),
    })
}
