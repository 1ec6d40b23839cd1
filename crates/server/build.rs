//! Compresses the page's files, so that the daemon only copies them. What is in `assets` is what is served.

use std::fmt::Write as _;
use std::hash::Hasher;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::{env, fs};

use brotli::enc::BrotliEncoderParams;
use flate2::Compression;
use flate2::write::GzEncoder;
use xxhash_rust::xxh3::Xxh3;

/// What is served, by the ends of names. Licences go with the files they are about.
const KINDS: [(&str, &str); 4] = [
    (".js", "text/javascript; charset=utf-8"),
    (".css", "text/css; charset=utf-8"),
    (".svg", "image/svg+xml"),
    ("LICENSE", "text/plain; charset=utf-8"),
];

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=assets");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("assets");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let mut files = Vec::new();
    collect(&root, &mut files)?;
    files.sort();
    // A build without optimisation is for a first look: it does not wait for the last percent.
    let is_quick = env::var_os("OPT_LEVEL").is_some_and(|level| level == "0");
    let params = BrotliEncoderParams { quality: if is_quick { 5 } else { 11 }, ..Default::default() };
    let gzip_level = if is_quick { Compression::default() } else { Compression::best() };
    let mut hash = Xxh3::new();
    let mut list = String::from("&[\n");
    for (number, path) in files.iter().enumerate() {
        let name = path.strip_prefix(&root).unwrap_or(path).to_string_lossy().into_owned();
        let Some((_, kind)) = KINDS.iter().find(|(end, _)| name.ends_with(end)) else { continue };
        let text = fs::read(path)?;
        hash.write(name.as_bytes());
        hash.write(&text);
        let mut encoder = GzEncoder::new(Vec::new(), gzip_level);
        encoder.write_all(&text)?;
        let gzip = out.join(format!("asset{number}.gz"));
        fs::write(&gzip, encoder.finish()?)?;
        let brotli = out.join(format!("asset{number}.br"));
        // A seventh less than gzip; browsers take it over TLS and from loopback.
        brotli::BrotliCompress(&mut text.as_slice(), &mut fs::File::create(&brotli)?, &params)?;
        writeln!(
            list,
            "Asset {{ name: {name:?}, content: {kind:?}, plain: include_bytes!({path:?}), gzip: include_bytes!({gzip:?}), brotli: include_bytes!({brotli:?}) }},"
        )
        .map_err(io::Error::other)?;
    }
    list.push(']');
    fs::write(out.join("assets.rs"), list)?;
    println!("cargo:rustc-env=ROUNDEL_ASSETS_HASH={:016x}", hash.finish());
    Ok(())
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() { collect(&path, files)? } else { files.push(path) }
    }
    Ok(())
}
