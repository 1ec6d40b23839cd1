//! Names of versions, cipher suites and curves: those of Go's `crypto/tls`, in which exporter-toolkit's files are written.
//!
//! Some that Go has are too weak for the library here, which does not have them. They are known, so that the file is accepted,
//! and left out; only when nothing is left is the file refused.

use rustls::crypto::CryptoProvider;
use rustls::{CipherSuite, NamedGroup, SupportedProtocolVersion};

/// Versions by their names, oldest first; the library has those with a value.
const VERSIONS: [(&str, Option<&SupportedProtocolVersion>); 4] = [
    ("TLS10", None),
    ("TLS11", None),
    ("TLS12", Some(&rustls::version::TLS12)),
    ("TLS13", Some(&rustls::version::TLS13)),
];

/// Suites of Go's `tls.CipherSuites`; the library has those with a value.
const SUITES: [(&str, Option<CipherSuite>); 13] = [
    ("TLS_AES_128_GCM_SHA256", Some(CipherSuite::TLS13_AES_128_GCM_SHA256)),
    ("TLS_AES_256_GCM_SHA384", Some(CipherSuite::TLS13_AES_256_GCM_SHA384)),
    ("TLS_CHACHA20_POLY1305_SHA256", Some(CipherSuite::TLS13_CHACHA20_POLY1305_SHA256)),
    ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", Some(CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256)),
    ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", Some(CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384)),
    ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", Some(CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256)),
    ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", Some(CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384)),
    (
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        Some(CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ),
    (
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        Some(CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
    ),
    ("TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", None),
    ("TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", None),
    ("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", None),
    ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", None),
];

/// Curves of Go's `tls.CurveID`; the library has those with a value.
const CURVES: [(&str, Option<NamedGroup>); 4] = [
    ("CurveP256", Some(NamedGroup::secp256r1)),
    ("CurveP384", Some(NamedGroup::secp384r1)),
    ("CurveP521", None),
    ("X25519", Some(NamedGroup::X25519)),
];

/// What a name stands for in one of the tables.
fn find<T: Copy>(table: &[(&str, T)], kind: &str, name: &str) -> Result<T, String> {
    let known = || table.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let found = table.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value).ok_or_else(|| format!("unknown {kind} \"{name}\"; there are {}", known()))
}

/// The versions from `least` to `most`; empty texts are the defaults.
pub(super) fn versions(least: &str, most: &str) -> Result<Vec<&'static SupportedProtocolVersion>, String> {
    let or = |name: &str, default: &str| if name.is_empty() { default.to_string() } else { name.to_string() };
    let (least, most) = (or(least, "TLS12"), or(most, "TLS13"));
    let place = |name: &str| {
        find(&VERSIONS, "TLS version", name)?;
        Ok::<_, String>(VERSIONS.iter().position(|(known, _)| *known == name).unwrap_or_default())
    };
    let (from, to) = (place(&least)?, place(&most)?);
    let found: Vec<_> = VERSIONS.iter().take(to + 1).skip(from).filter_map(|(_, version)| *version).collect();
    if found.is_empty() {
        return Err(format!("there is no version from {least} to {most}: TLS12 and TLS13 are possible"));
    }
    Ok(found)
}

/// The provider with no other suites of TLS 1.2 and curves than those named; all, where none are.
pub(super) fn provider(
    mut provider: CryptoProvider,
    suites: &[String],
    curves: &[String],
) -> Result<CryptoProvider, String> {
    if !suites.is_empty() {
        let find = |name: &String| find(&SUITES, "cipher suite", name);
        let wanted: Vec<_> = suites.iter().map(find).collect::<Result<_, _>>()?;
        provider
            .cipher_suites
            .retain(|suite| suite.tls13().is_some() || wanted.contains(&Some(suite.suite())));
    }
    if !curves.is_empty() {
        let find = |name: &String| find(&CURVES, "curve", name);
        let wanted: Vec<_> = curves.iter().map(find).collect::<Result<_, _>>()?;
        let place = |group: NamedGroup| wanted.iter().position(|name| *name == Some(group));
        provider.kx_groups.retain(|group| place(group.name()).is_some());
        provider.kx_groups.sort_by_key(|group| place(group.name()));
        if provider.kx_groups.is_empty() {
            return Err(
                "curve_preferences has none of CurveP256, CurveP384 and X25519, which are possible".into()
            );
        }
    }
    Ok(provider)
}
