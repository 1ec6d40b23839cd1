//! What can be said of TLS, in the words of exporter-toolkit's `tls_server_config`, in
//! `roundel.toml` as in a file of that format.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde::Deserialize;

use super::client_certificates::{ClientPolicy, verifier};
use super::{provider, words};

/// The options, as they are written. An empty text is as good as none.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct TlsOptions {
    /// The certificate chain as PEM, the server's own first.
    cert: String,
    /// Its key as PEM.
    key: String,
    /// The same as files.
    cert_file: PathBuf,
    key_file: PathBuf,
    /// Who may have signed the certificates of clients, as PEM.
    client_ca: String,
    /// The same as a file.
    client_ca_file: PathBuf,
    /// The name of a `tls.ClientAuthType` of Go; default `NoClientCert`.
    client_auth_type: String,
    /// One of these names must be among the subject's alternative names in a client's certificate.
    client_allowed_sans: Option<Vec<String>>,
    /// `TLS10` to `TLS13`; default `TLS12`.
    min_version: String,
    /// Default `TLS13`.
    max_version: String,
    /// Suites of TLS 1.2 by their names; those of TLS 1.3 are always offered.
    cipher_suites: Vec<String>,
    /// Groups of key exchange, best first.
    curve_preferences: Vec<String>,
    /// Accepted without effect, as there.
    prefer_server_cipher_suites: Option<bool>,
}

/// Reads a file of the options, which was looked at before.
pub(super) type ReadFile<'a> = &'a dyn Fn(&Path) -> Result<Vec<u8>, String>;

impl TlsOptions {
    /// Whether TLS is wanted: something of certificates is said. As `TLSConfig.IsEnabled` of exporter-toolkit.
    pub fn is_wanted(&self) -> bool {
        let texts = [&self.cert, &self.key, &self.client_ca, &self.client_auth_type];
        let files = [&self.cert_file, &self.key_file, &self.client_ca_file];
        texts.iter().any(|text| !text.is_empty()) || files.iter().any(|file| !file.as_os_str().is_empty())
    }

    /// Whether the names in a client's certificate are vouched for by an authority.
    pub fn verifies_clients(&self) -> bool {
        ClientPolicy::parse(&self.client_auth_type).is_ok_and(ClientPolicy::verifies)
    }

    /// Whether no client gets in without a certificate of an authority.
    pub fn demands_certificates(&self) -> bool {
        ClientPolicy::parse(&self.client_auth_type) == Ok(ClientPolicy::RequireAndVerify)
    }

    /// Makes relative paths relative to `directory`.
    pub fn set_directory(&mut self, directory: &Path) {
        for file in [&mut self.cert_file, &mut self.key_file, &mut self.client_ca_file] {
            if !file.as_os_str().is_empty() {
                *file = directory.join(&*file);
            }
        }
    }

    /// Whether HTTP/2 is possible over it: it demands one suite of those that TLS 1.2 has (RFC 9113, 9.2.2).
    ///
    /// # Errors
    /// A text that says which suite is missing.
    pub fn check_http2(&self) -> Result<(), String> {
        let required = ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"];
        let is_there = |name: &&str| self.cipher_suites.iter().any(|suite| suite == name);
        if self.cipher_suites.is_empty() || self.min_version == "TLS13" || required.iter().any(is_there) {
            return Ok(());
        }
        Err(format!(
            "cipher_suites has no suite that HTTP/2 requires; add {} or {}, or set http2 to false",
            required[0], required[1]
        ))
    }

    /// The files that it names.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        let files = [&self.cert_file, &self.key_file, &self.client_ca_file];
        files.into_iter().map(PathBuf::as_path).filter(|file| !file.as_os_str().is_empty())
    }

    /// The library's configuration of it.
    pub(super) fn server_config(
        &self,
        protocols: &[Vec<u8>],
        read: ReadFile<'_>,
    ) -> Result<ServerConfig, String> {
        let provider = Arc::new(words::provider(provider(), &self.cipher_suites, &self.curve_preferences)?);
        let versions = words::versions(&self.min_version, &self.max_version)?;
        let chain = self.chain(read)?;
        let key = self.private_key(read)?;
        let clients = self.verifier(&provider, read)?;
        let builder = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)
            .map_err(|error| format!("no cipher suite is left for these versions of TLS: {error}"))?;
        let mut config = builder
            .with_client_cert_verifier(clients)
            .with_single_cert(chain, key)
            .map_err(|error| format!("certificate and key do not go together: {error}"))?;
        config.alpn_protocols = protocols.to_vec();
        // What a client says before the handshake has ended could be repeated by others.
        config.max_early_data_size = 0;
        Ok(config)
    }

    fn chain(&self, read: ReadFile<'_>) -> Result<Vec<CertificateDer<'static>>, String> {
        let missing = "missing one of cert or cert_file";
        let (pem, from) = text_or_file("cert", &self.cert, &self.cert_file, read)?.ok_or(missing)?;
        certificates(&pem, &from)
    }

    fn private_key(&self, read: ReadFile<'_>) -> Result<PrivateKeyDer<'static>, String> {
        let missing = "missing one of key or key_file";
        let (pem, from) = text_or_file("key", &self.key, &self.key_file, read)?.ok_or(missing)?;
        PrivateKeyDer::from_pem_slice(&pem)
            .map_err(|error| format!("{from} has no private key in PEM: {error}"))
    }

    fn verifier(
        &self,
        provider: &Arc<rustls::crypto::CryptoProvider>,
        read: ReadFile<'_>,
    ) -> Result<Arc<dyn ClientCertVerifier>, String> {
        let policy = ClientPolicy::parse(&self.client_auth_type)?;
        let authorities = text_or_file("client_ca", &self.client_ca, &self.client_ca_file, read)?;
        if authorities.is_some() && policy == ClientPolicy::None {
            return Err(
                "client CA's have been configured without a Client Auth Policy; set client_auth_type"
                    .to_string(),
            );
        }
        let roots = match authorities {
            Some((pem, from)) => Some(roots(&pem, &from)?),
            None => None,
        };
        verifier(policy, roots, self.client_allowed_sans.as_deref(), provider)
    }
}

/// A text, or the content of a file, with what to call it in errors.
fn text_or_file(
    key: &str,
    text: &str,
    file: &Path,
    read: ReadFile<'_>,
) -> Result<Option<(Vec<u8>, String)>, String> {
    match (text, file.as_os_str().is_empty()) {
        (_, false) => Ok(Some((read(file)?, format!("\"{}\"", file.display())))),
        ("", true) => Ok(None),
        (text, true) => Ok(Some((text.as_bytes().to_vec(), format!("the text of {key}")))),
    }
}

/// The certificates of a PEM text, of which there must be one.
fn certificates(pem: &[u8], from: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(format!("{from} has no certificate in PEM")),
        Err(error) => Err(format!("{from} has no certificate in PEM: {error}")),
    }
}

/// The authorities of a PEM text.
fn roots(pem: &[u8], from: &str) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem, from)? {
        roots.add(certificate).map_err(|error| format!("a certificate of {from} cannot be used: {error}"))?;
    }
    Ok(roots)
}
