//! TLS between nodes: each shows a certificate, and trusts those of the cluster's own authority only.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// What is spoken above TLS (ALPN): a port for something else refuses it.
const PROTOCOL: &[u8] = b"roundel-cluster";

/// Certificates for the connections between nodes, in both directions.
#[derive(Clone, Debug)]
pub struct NodeTls {
    /// For calls to other nodes.
    pub client: Arc<ClientConfig>,
    /// For calls from them.
    pub server: Arc<ServerConfig>,
}

impl NodeTls {
    /// Reads this node's certificate chain and key, and the certificates of the authority, all in PEM. The certificate must have the name or
    /// IP address by which other nodes reach this one.
    ///
    /// # Errors
    /// Which file cannot be used, and why.
    pub fn from_files(certificate: &Path, key: &Path, authority: &Path) -> Result<Self, String> {
        let chain = certificates(certificate)?;
        let mut roots = RootCertStore::empty();
        for one in certificates(authority)? {
            roots.add(one).map_err(|error| {
                format!("a certificate of \"{}\" cannot be used: {error}", authority.display())
            })?;
        }
        let unfit = |error: rustls::Error| {
            format!("certificate \"{}\" and its key do not go together: {error}", certificate.display())
        };
        let roots = Arc::new(roots);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(Arc::clone(&roots))
            .with_client_auth_cert(chain.clone(), private_key(key)?)
            .map_err(unfit)?;
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider))
            .build()
            .map_err(|error| format!("\"{}\" cannot verify nodes: {error}", authority.display()))?;
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, private_key(key)?)
            .map_err(unfit)?;
        client.alpn_protocols = vec![PROTOCOL.to_vec()];
        server.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(NodeTls { client: Arc::new(client), server: Arc::new(server) })
    }
}

/// The key in a file of PEM.
pub(crate) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_file(path)
        .map_err(|error| format!("no private key can be read from \"{}\": {error}", path.display()))
}

/// The certificates in a file of PEM, at least one.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let cannot = |cause: &dyn std::fmt::Display| {
        format!("no certificate can be read from \"{}\": {cause}", path.display())
    };
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    match found {
        Ok(found) if found.is_empty() => Err(cannot(&"it has none in PEM")),
        Ok(found) => Ok(found),
        Err(error) => Err(cannot(&error)),
    }
}
