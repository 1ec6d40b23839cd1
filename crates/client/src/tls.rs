//! TLS to a daemon: whom to trust, and how to show who this is. What is wrong with a certificate is said by name, with what to do.
//!
//! Nothing of it is read or set up before an address asks for it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{AlertDescription, CertificateError, ClientConfig, Error, RootCertStore};

/// What is spoken above TLS (ALPN): a port for HTTP refuses it, so that requests do not go astray.
const PROTOCOL: &[u8] = b"rrdcached";

/// The files that a client of TLS needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// The authorities that are trusted, as PEM; `None` = those of this machine.
    pub ca: Option<PathBuf>,
    /// The certificate chain and its key that are shown to a daemon that asks; `None` = none.
    pub identity: Option<(PathBuf, PathBuf)>,
}

impl TlsFiles {
    /// Those that `ROUNDEL_CA_FILE`, `ROUNDEL_CERT_FILE` and `ROUNDEL_KEY_FILE` name.
    ///
    /// # Errors
    /// A certificate without its key.
    pub fn from_environment() -> Result<Self, String> {
        let path = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        let identity = match (path("ROUNDEL_CERT_FILE"), path("ROUNDEL_KEY_FILE")) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => return Err("give both ROUNDEL_CERT_FILE and ROUNDEL_KEY_FILE, or neither".to_string()),
        };
        Ok(TlsFiles { ca: path("ROUNDEL_CA_FILE"), identity })
    }

    /// Reads them.
    ///
    /// # Errors
    /// Which one cannot be used, and why.
    pub fn config(&self) -> Result<Arc<ClientConfig>, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(self.roots()?);
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = certificates(certificate)?;
                let key = PrivateKeyDer::from_pem_file(key).map_err(|error| {
                    format!("no private key can be read from \"{}\": {error}", key.display())
                })?;
                builder.with_client_auth_cert(chain, key).map_err(|error| {
                    format!(
                        "certificate \"{}\" and its key do not go together: {error}",
                        certificate.display()
                    )
                })?
            }
        };
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(Arc::new(config))
    }

    fn roots(&self) -> Result<RootCertStore, String> {
        let mut roots = RootCertStore::empty();
        match &self.ca {
            Some(path) => {
                for certificate in certificates(path)? {
                    roots.add(certificate).map_err(|error| {
                        format!("a certificate of \"{}\" cannot be used: {error}", path.display())
                    })?;
                }
            }
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                if roots.is_empty() {
                    return Err(
                        "this machine trusts no authority: name a file with one (ROUNDEL_CA_FILE, ca_file)"
                            .into(),
                    );
                }
            }
        }
        Ok(roots)
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
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

/// The name that a daemon's certificate must have: that of its host, or its IP address.
///
/// # Errors
/// When that cannot be the name of a host.
pub fn server_name(host: &str) -> io::Result<ServerName<'static>> {
    let name = if host.is_empty() { "localhost" } else { host };
    ServerName::try_from(name.to_string())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, format!("\"{name}\" is no name of a host")))
}

/// An error of a connection with TLS, in words that say what to do about it; `ConnectionRefused` if the daemon refuses this client.
pub fn explain(error: io::Error, host: &str) -> io::Error {
    let Some(cause) = error.get_ref().and_then(|error| error.downcast_ref::<Error>()) else {
        return error;
    };
    let host = if host.is_empty() { "localhost" } else { host };
    let text = match cause {
        Error::InvalidCertificate(certificate) => of_certificate(certificate, host),
        Error::InvalidMessage(_) => {
            format!("{host} does not speak TLS at this port: give the address without tls:")
        }
        Error::AlertReceived(alert) => of_alert(*alert, host),
        other => format!("TLS with {host}: {other}"),
    };
    let is_refusal = matches!(cause, Error::AlertReceived(_));
    io::Error::new(
        if is_refusal { io::ErrorKind::ConnectionRefused } else { io::ErrorKind::InvalidData },
        text,
    )
}

fn of_certificate(error: &CertificateError, host: &str) -> String {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => format!(
            "the certificate of {host} has expired: have it renewed there (or set this machine's clock: {error})"
        ),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("the certificate of {host} is not valid yet: is this machine's clock right? ({error})")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => format!(
            "the certificate is not for the name {host}: use a name that it has, or have it made for this one ({error})"
        ),
        CertificateError::UnknownIssuer => format!(
            "the certificate of {host} is signed by no authority that is trusted here: name a file with its authority \
             (ROUNDEL_CA_FILE, ca_file)"
        ),
        // What `openssl req -x509` makes.
        other if other.to_string().contains("CaUsedAsEndEntity") => format!(
            "the certificate of {host} is one of an authority (CA:TRUE), not of a server: have it made with basicConstraints=CA:FALSE, \
             or one signed by it"
        ),
        other => format!("the certificate of {host} cannot be used: {other}"),
    }
}

fn of_alert(alert: AlertDescription, host: &str) -> String {
    let ours = "ROUNDEL_CERT_FILE and ROUNDEL_KEY_FILE, or cert_file and key_file";
    match alert {
        AlertDescription::CertificateRequired => {
            format!("{host} demands a certificate of its clients: give one ({ours})")
        }
        AlertDescription::UnknownCA
        | AlertDescription::BadCertificate
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::AccessDenied => {
            format!(
                "{host} does not accept the certificate that was shown ({alert:?}): give another one ({ours})"
            )
        }
        AlertDescription::NoApplicationProtocol => {
            format!(
                "{host} speaks another protocol at this port, perhaps HTTP: give the port of [[listen]] or [agents]"
            )
        }
        AlertDescription::HandshakeFailure | AlertDescription::ProtocolVersion => {
            format!(
                "{host} and this program have no version or suite of TLS in common, or it demands a certificate ({ours}): {alert:?}"
            )
        }
        other => format!("{host} ended TLS: {other:?}"),
    }
}
