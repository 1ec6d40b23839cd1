//! What is asked of clients' certificates.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, ServerConnection,
    SignatureScheme,
};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Which certificate a client must show; the values of Go's `tls.ClientAuthType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientPolicy {
    None,
    /// Any, or none.
    Request,
    /// Any.
    RequireAny,
    /// One of an authority, or none.
    VerifyIfGiven,
    /// One of an authority.
    RequireAndVerify,
}

impl ClientPolicy {
    /// Whether a certificate that is shown is one of an authority.
    pub(super) fn verifies(self) -> bool {
        matches!(self, ClientPolicy::VerifyIfGiven | ClientPolicy::RequireAndVerify)
    }

    pub(super) fn parse(name: &str) -> Result<Self, String> {
        Ok(match name {
            "" | "NoClientCert" => ClientPolicy::None,
            "RequestClientCert" => ClientPolicy::Request,
            "RequireAnyClientCert" | "RequireClientCert" => ClientPolicy::RequireAny,
            "VerifyClientCertIfGiven" => ClientPolicy::VerifyIfGiven,
            "RequireAndVerifyClientCert" => ClientPolicy::RequireAndVerify,
            _ => {
                return Err(format!(
                    "invalid ClientAuth: client_auth_type is \"{name}\", and may be NoClientCert, RequestClientCert, \
                     RequireAnyClientCert, VerifyClientCertIfGiven or RequireAndVerifyClientCert"
                ));
            }
        })
    }
}

/// The names of a client whose certificate was verified: the subject's alternative names, or its common name where there are none.
fn names_of(certificate: &CertificateDer<'_>) -> Arc<[String]> {
    let names = names_in(certificate).unwrap_or_default();
    if !names.is_empty() {
        return names.into();
    }
    let Ok((_, certificate)) = X509Certificate::from_der(certificate) else { return Arc::default() };
    let common = certificate.subject().iter_common_name().next().and_then(|name| name.as_str().ok());
    common.map(str::to_string).into_iter().collect()
}

/// The names in the certificate that a client has shown, if `verifies` says that an authority vouches for them.
pub fn client_names(connection: &ServerConnection, verifies: bool) -> Option<Arc<[String]>> {
    let certificate = connection.peer_certificates().and_then(|chain| chain.first());
    certificate.filter(|_| verifies).map(names_of)
}

/// What verifies clients by `policy`. Without `roots`, the authorities are those that this machine trusts.
pub(super) fn verifier(
    policy: ClientPolicy,
    roots: Option<RootCertStore>,
    names: Option<&[String]>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let by_authority = |may_be_missing: bool| {
        let roots = Arc::new(roots.map_or_else(machine_roots, Ok)?);
        let mut builder = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(provider));
        if may_be_missing {
            builder = builder.allow_unauthenticated();
        }
        builder.build().map_err(|error| format!("client_ca cannot be used: {error}"))
    };
    let any = |mandatory: bool| -> Arc<dyn ClientCertVerifier> {
        Arc::new(AnyCertificate { mandatory, provider: Arc::clone(provider) })
    };
    let inner = match policy {
        ClientPolicy::None => return Ok(WebPkiClientVerifier::no_client_auth()),
        ClientPolicy::Request => any(false),
        ClientPolicy::RequireAny => any(true),
        ClientPolicy::VerifyIfGiven => by_authority(true)?,
        ClientPolicy::RequireAndVerify => by_authority(false)?,
    };
    Ok(match names {
        None => inner,
        Some(names) => Arc::new(NamedCertificate { inner, names: names.to_vec() }),
    })
}

/// The authorities that this machine trusts.
fn machine_roots() -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    match roots.is_empty() {
        true => Err("there is no authority for clients' certificates: give client_ca_file".to_string()),
        false => Ok(roots),
    }
}

/// The alternative names of a certificate's subject: names of hosts, addresses of mail, IP addresses and URIs, in the order of the
/// certificate.
///
/// # Errors
/// When it cannot be read.
fn names_in(certificate: &CertificateDer<'_>) -> Result<Vec<String>, String> {
    let (_, certificate) = X509Certificate::from_der(certificate).map_err(|error| error.to_string())?;
    let names = certificate.subject_alternative_name().map_err(|error| error.to_string())?;
    let names = names.map_or(&[][..], |names| &names.value.general_names);
    let name = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) | GeneralName::RFC822Name(name) | GeneralName::URI(name) => {
            Some((*name).to_string())
        }
        GeneralName::IPAddress(bytes) => <[u8; 4]>::try_from(*bytes)
            .map(|bytes| std::net::IpAddr::from(bytes).to_string())
            .or_else(|_| <[u8; 16]>::try_from(*bytes).map(|bytes| std::net::IpAddr::from(bytes).to_string()))
            .ok(),
        _ => None,
    };
    Ok(names.iter().filter_map(name).collect())
}

/// Accepts any certificate whose key the client has.
#[derive(Debug)]
struct AnyCertificate {
    mandatory: bool,
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for AnyCertificate {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn client_auth_mandatory(&self) -> bool {
        self.mandatory
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Demands one of some names of a certificate that `inner` accepts.
#[derive(Debug)]
struct NamedCertificate {
    inner: Arc<dyn ClientCertVerifier>,
    names: Vec<String>,
}

impl ClientCertVerifier for NamedCertificate {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn offer_client_auth(&self) -> bool {
        self.inner.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.inner.client_auth_mandatory()
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.inner.verify_client_cert(certificate, chain, now)?;
        let names = names_in(certificate).unwrap_or_default();
        match names.iter().any(|name| self.names.contains(name)) {
            true => Ok(verified),
            false => {
                tracing::warn!(?names, "a client's certificate has none of the allowed names");
                Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    use super::*;

    #[test]
    fn a_client_is_called_by_its_alternative_names_or_its_common_name() {
        let check = |sans: Vec<SanType>, common: Option<&str>, want: &[&str]| {
            let mut params = CertificateParams::new([]).unwrap();
            params.subject_alt_names = sans;
            params.distinguished_name = rcgen::DistinguishedName::new();
            common.into_iter().for_each(|name| params.distinguished_name.push(DnType::CommonName, name));
            let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
            assert_eq!(*names_of(certificate.der()), *want);
        };
        let text = |text: &str| text.try_into().unwrap();
        let all = vec![
            SanType::DnsName(text("host1.example")),
            SanType::Rfc822Name(text("ops@example.net")),
            SanType::URI(text("spiffe://example/agent")),
            SanType::IpAddress([10, 0, 0, 1].into()),
        ];
        let want = ["host1.example", "ops@example.net", "spiffe://example/agent", "10.0.0.1"];
        check(all, Some("ann"), &want);
        check(Vec::new(), Some("ann"), &["ann"]);
        check(Vec::new(), None, &[]);
    }
}
