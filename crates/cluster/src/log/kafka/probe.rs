//! Why no broker answers. librdkafka then says that it has none, but not what is wrong: not which of a certificate's faults it found, and nothing at all of a port
//! that wants TLS or a login. So some brokers are called once more, with the same files, and the first words of the protocol tell.
//!
//! Only an error is explained; nothing is decided by it.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, Error, RootCertStore, Stream,
};

use super::KafkaOptions;
use crate::log::brokers::{BrokerLogin, BrokerTls};
use crate::tls;

/// Brokers that are called.
const BROKERS: usize = 3;
/// For all of them.
const PATIENCE: Duration = Duration::from_secs(3);
/// Where a broker listens that is named without a port.
const PORT: &str = "9092";
/// The longest answer, in bytes: names of mechanisms.
const ANSWER_BYTES_MAX: usize = 4096;
/// Settings of librdkafka that let pass what is checked here.
const LENIENT: &[&str] = &["enable.ssl.certificate.verification", "ssl.endpoint.identification.algorithm"];

/// The question by which a client begins a login (SaslHandshake), and two answers to a mechanism that no broker has.
const LOGIN_BEGINS: i16 = 17;
const NO_SUCH_MECHANISM: i16 = 33;
const NO_LOGINS_HERE: i16 = 34;

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// The broker is not there; it may come again.
    Away(String),
    /// Something must be changed.
    Wrong(String),
}

/// How the brokers are called.
pub(super) struct Probe {
    brokers: Vec<String>,
    tls: Option<Arc<ClientConfig>>,
    /// Whether this client has a certificate to show.
    has_certificate: bool,
    login: Option<BrokerLogin>,
}

impl Probe {
    /// Reads the files of TLS.
    ///
    /// # Errors
    /// Which file cannot be used, and why.
    pub(super) fn new(options: &KafkaOptions) -> Result<Probe, String> {
        let is_lenient = options.properties.iter().any(|(name, _)| LENIENT.contains(&name.as_str()));
        let brokers = options.brokers.split(',').map(address).filter(|_| !is_lenient).take(BROKERS).collect();
        let tls = options.security.tls.as_ref();
        let has_certificate = tls.is_some_and(|tls| tls.identity.is_some());
        let tls = tls.map(client_config).transpose()?;
        Ok(Probe { brokers, tls, has_certificate, login: options.security.login.clone() })
    }

    /// What is wrong with the brokers; `None` when nothing is found.
    pub(super) fn look(&self) -> Option<Finding> {
        let until = Instant::now() + PATIENCE;
        let mut findings = Vec::new();
        for broker in &self.brokers {
            match self.call(broker, until) {
                Ok(()) => return None,
                Err(finding) => findings.push(finding),
            }
        }
        let wrong = findings.iter().find(|finding| matches!(finding, Finding::Wrong(_)));
        wrong.or(findings.first()).cloned()
    }

    fn call(&self, broker: &str, until: Instant) -> Result<(), Finding> {
        let away = |error: &dyn std::fmt::Display| Finding::Away(format!("{broker}: {error}"));
        let mut stream = connect(broker, until).map_err(|error| away(&error))?;
        let Some(config) = &self.tls else {
            return match ask(&mut stream) {
                Ok(answer) => self.judge(broker, &answer),
                Err(_) if speaks_tls(broker, until) => {
                    Err(Finding::Wrong(format!("{broker} speaks TLS: set tls = true")))
                }
                Err(error) => Err(away(&error)),
            };
        };
        let host = host(broker);
        let name = ServerName::try_from(host.to_owned()).map_err(|error| away(&error))?;
        let mut connection = ClientConnection::new(Arc::clone(config), name).map_err(|error| away(&error))?;
        // With TLS 1.3, what a broker has against this client's certificate comes only in place of its first answer.
        let answer = connection
            .complete_io(&mut stream)
            .and_then(|_| ask(&mut Stream::new(&mut connection, &mut stream)));
        match answer {
            Ok(answer) => self.judge(broker, &answer),
            Err(error) => Err(match error.get_ref().and_then(|error| error.downcast_ref::<Error>()) {
                Some(Error::InvalidCertificate(error)) => Finding::Wrong(of_certificate(error, host)),
                Some(Error::AlertReceived(alert)) => {
                    Finding::Wrong(of_alert(*alert, broker, self.has_certificate))
                }
                _ if speaks_plainly(broker, until) => Finding::Wrong(format!(
                    "{broker} does not speak TLS: give a port that does, or leave out tls = true"
                )),
                _ => away(&error),
            }),
        }
    }

    /// What follows from the answer to a login that was begun.
    fn judge(&self, broker: &str, answer: &Answer) -> Result<(), Finding> {
        let mechanisms = answer.mechanisms.join(", ");
        let wrong = match (&self.login, answer.code) {
            (None, NO_SUCH_MECHANISM) => {
                format!("{broker} wants a login ({mechanisms}): give user and password_file")
            }
            (Some(login), NO_SUCH_MECHANISM)
                if !answer.mechanisms.iter().any(|name| name == login.mechanism.name()) =>
            {
                let own = login.mechanism.name();
                format!("{broker} takes no logins by {own}: set mechanism to what it takes ({mechanisms})")
            }
            (Some(_), NO_LOGINS_HERE) => {
                format!(
                    "{broker} takes no logins at this port: give another one, or leave out user and password_file"
                )
            }
            _ => return Ok(()),
        };
        Err(Finding::Wrong(wrong))
    }
}

/// A broker's address as librdkafka understands it: `[PROTOCOL://]HOST[:PORT]`.
fn address(text: &str) -> String {
    let text = text.trim();
    let text = text.split_once("://").map_or(text, |(_, address)| address);
    let has_port =
        text.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    match has_port {
        true => text.to_owned(),
        false => format!("{text}:{PORT}"),
    }
}

fn host(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(host, _)| host).trim_matches(['[', ']'])
}

fn client_config(files: &BrokerTls) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    match &files.authority {
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                return Err("this machine trusts no authority: give ca_file".into());
            }
        }
        Some(path) => {
            for certificate in tls::certificates(path)? {
                roots.add(certificate).map_err(|error| {
                    format!("a certificate of \"{}\" cannot be used: {error}", path.display())
                })?;
            }
        }
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots);
    let config = match &files.identity {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => builder
            .with_client_auth_cert(tls::certificates(certificate)?, tls::private_key(key)?)
            .map_err(|error| {
                format!("certificate \"{}\" and its key do not go together: {error}", certificate.display())
            })?,
    };
    Ok(Arc::new(config))
}

fn connect(broker: &str, until: Instant) -> io::Result<TcpStream> {
    let mut error = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in broker.to_socket_addrs()? {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => {
                let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(100));
                stream.set_read_timeout(Some(left))?;
                stream.set_write_timeout(Some(left))?;
                return Ok(stream);
            }
            Err(refused) => error = refused,
        }
    }
    Err(error)
}

/// A broker's answer to a login that was begun.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    code: i16,
    mechanisms: Vec<String>,
}

/// Begins a login by a mechanism that no broker has.
fn ask(stream: &mut (impl Read + Write)) -> io::Result<Answer> {
    stream.write_all(&question())?;
    stream.flush()?;
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > ANSWER_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes)?;
    read_answer(&bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn question() -> Vec<u8> {
    let mut bytes = Vec::new();
    let text = |bytes: &mut Vec<u8>, text: &str| {
        bytes.extend((text.len() as i16).to_be_bytes());
        bytes.extend(text.as_bytes());
    };
    bytes.extend(LOGIN_BEGINS.to_be_bytes());
    // The question's version, and a number that the answer repeats.
    bytes.extend(1i16.to_be_bytes());
    bytes.extend(0i32.to_be_bytes());
    text(&mut bytes, "roundel");
    text(&mut bytes, "NONE");
    let mut framed = (bytes.len() as u32).to_be_bytes().to_vec();
    framed.extend(bytes);
    framed
}

fn read_answer(bytes: &[u8]) -> Option<Answer> {
    let (_, bytes) = bytes.split_first_chunk::<4>()?;
    let (code, bytes) = bytes.split_first_chunk()?;
    let (count, mut bytes) = bytes.split_first_chunk()?;
    let mut mechanisms = Vec::new();
    for _ in 0..i32::from_be_bytes(*count) {
        let (length, rest) = bytes.split_first_chunk()?;
        let (name, rest) = rest.split_at_checked(usize::try_from(i16::from_be_bytes(*length)).ok()?)?;
        mechanisms.push(String::from_utf8_lossy(name).into_owned());
        bytes = rest;
    }
    Some(Answer { code: i16::from_be_bytes(*code), mechanisms })
}

/// Whether a port answers a greeting of TLS by TLS, with whatever certificate.
fn speaks_tls(broker: &str, until: Instant) -> bool {
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions();
    let Ok(config) = config else { return false };
    let config = Arc::new(config.with_root_certificates(RootCertStore::empty()).with_no_client_auth());
    let Ok(name) = ServerName::try_from(host(broker).to_owned()) else { return false };
    let Ok(mut connection) = ClientConnection::new(config, name) else { return false };
    let Ok(mut stream) = connect(broker, until) else { return false };
    match connection.complete_io(&mut stream) {
        Ok(_) => true,
        Err(error) => matches!(
            error.get_ref().and_then(|error| error.downcast_ref::<Error>()),
            Some(Error::InvalidCertificate(_) | Error::AlertReceived(_))
        ),
    }
}

/// Whether a port answers a question without TLS.
fn speaks_plainly(broker: &str, until: Instant) -> bool {
    connect(broker, until).is_ok_and(|mut stream| ask(&mut stream).is_ok())
}

fn of_certificate(error: &CertificateError, host: &str) -> String {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!(
                "the certificate of {host} has expired: have it renewed, or set this machine's clock ({error})"
            )
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("the certificate of {host} is not valid yet: is this machine's clock right? ({error})")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => format!(
            "the certificate is not for the name {host}: use a name that it has in brokers, or have it made for this one ({error})"
        ),
        CertificateError::UnknownIssuer | CertificateError::BadSignature => format!(
            "the certificate of {host} is signed by no authority that is trusted here: give the authority's certificate as ca_file"
        ),
        other => format!("the certificate of {host} cannot be used: {other}"),
    }
}

fn of_alert(alert: AlertDescription, broker: &str, has_certificate: bool) -> String {
    match alert {
        AlertDescription::HandshakeFailure | AlertDescription::ProtocolVersion => format!(
            "{broker} and this program have no version or suite of TLS in common, or it demands a certificate (cert_file, key_file): {alert:?}"
        ),
        // Java says BadCertificate when there is none.
        alert if !has_certificate => {
            format!("{broker} demands a certificate of its clients ({alert:?}): give cert_file and key_file")
        }
        alert => format!(
            "{broker} does not accept this client's certificate ({alert:?}): give another cert_file and key_file, or have its authority trusted there"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_librdkafka() {
        for (text, want) in [
            ("k1", "k1:9092"),
            (" k1:19092", "k1:19092"),
            ("SASL_SSL://k1:9093", "k1:9093"),
            ("[::1]:9093", "[::1]:9093"),
        ] {
            assert_eq!(address(text), want);
        }
        assert_eq!((host("k1:9092"), host("[::1]:9093")), ("k1", "::1"));
    }

    #[test]
    fn a_question_and_an_answer_have_these_bytes() {
        assert_eq!(question(), b"\0\0\0\x17\0\x11\0\x01\0\0\0\0\0\x07roundel\0\x04NONE");
        let bytes = b"\0\0\0\0\0\x21\0\0\0\x02\0\x05PLAIN\0\x03XYZ";
        let answer = Answer { code: NO_SUCH_MECHANISM, mechanisms: vec!["PLAIN".into(), "XYZ".into()] };
        assert_eq!(read_answer(bytes), Some(answer));
        for end in 0..bytes.len() {
            assert_eq!(read_answer(&bytes[..end]), None, "{end}");
        }
        assert_eq!(read_answer(b"\0\0\0\0\0\x21\0\0\0\x01\xff\xffPLAIN"), None);
    }
}
