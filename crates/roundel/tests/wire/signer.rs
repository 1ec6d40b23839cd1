//! Certificates for the daemons and clients of a test.

use std::fs;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    date_time_ymd,
};

/// Signs certificates.
pub struct Signer {
    issuer: Issuer<'static, KeyPair>,
    /// Its own, for those who are to trust it.
    pub pem: String,
}

impl Signer {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Signer { issuer: Issuer::new(params, key), pem }
    }

    /// Writes `FILE.crt` and `FILE.key` for a name, valid until a year.
    pub fn sign(&self, directory: &Path, file: &str, name: &str, until: i32) {
        let mut params = CertificateParams::new(vec![name.to_string()]).unwrap();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().unwrap();
        let pem = params.signed_by(&key, &self.issuer).unwrap().pem();
        fs::write(directory.join(format!("{file}.key")), key.serialize_pem()).unwrap();
        fs::write(directory.join(format!("{file}.crt")), pem).unwrap();
    }
}
