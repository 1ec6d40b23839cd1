//! TLS and a token on the client's side: a certificate that is made for the run, and a connection that trusts it alone.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::Outcome;

/// The name in the certificate.
const HOST: &str = "localhost";

/// A certificate, and clients that trust it.
pub struct Certificate {
    client: Arc<ClientConfig>,
    /// The keys of a listener's section for it.
    pub section: String,
}

impl Certificate {
    /// Makes one, whose files are in `directory`.
    pub fn make(directory: &Path) -> Outcome<Self> {
        let made = rcgen::generate_simple_self_signed([HOST.to_string()])?;
        let (certificate, key) = (directory.join("tls.crt"), directory.join("tls.key"));
        fs::write(&certificate, made.cert.pem())?;
        fs::write(&key, made.signing_key.serialize_pem())?;
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone())?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let section = format!(
            "tls = {{ cert_file = \"{}\", key_file = \"{}\" }}\n",
            certificate.display(),
            key.display()
        );
        Ok(Certificate { client: Arc::new(client), section })
    }

    /// TLS over a connection.
    pub fn over(&self, stream: TcpStream) -> Outcome<SecureStream> {
        let connection = ClientConnection::new(Arc::clone(&self.client), ServerName::try_from(HOST)?)?;
        Ok(SecureStream(Arc::new(Mutex::new(StreamOwned::new(connection, stream)))))
    }
}

/// A connection with TLS. Its clones are the same connection, for one thread at a time.
#[derive(Clone)]
pub struct SecureStream(Arc<Mutex<StreamOwned<ClientConnection, TcpStream>>>);

impl Read for SecureStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).read(buffer)
    }
}

impl Write for SecureStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }
}
