//! The names in a certificate: a reader of just as much DER (X.690) as they need.
//!
//! rustls has verified the certificate before; here a certificate that cannot be read has no names.

use std::net::IpAddr;

/// Tags of ASN.1.
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
/// Tags of texts: UTF8String, NumericString, PrintableString, TeletexString, IA5String, VisibleString.
const TEXTS: [u8; 6] = [0x0c, 0x12, 0x13, 0x14, 0x16, 0x1a];
/// `[0]`, the version, and `[3]`, the extensions of a certificate.
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
/// Members of a certificate between version and subject: serial number, algorithm, issuer, validity.
const BEFORE_SUBJECT: usize = 4;
/// 2.5.29.17, subjectAltName.
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
/// 2.5.4.3, commonName.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// GeneralName: rfc822Name, dNSName, uniformResourceIdentifier, iPAddress.
const MAIL: u8 = 0x81;
const HOST: u8 = 0x82;
const URI: u8 = 0x86;
const ADDRESS: u8 = 0x87;

/// The names of a certificate's subject.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CertificateNames {
    /// The alternative names: hosts, addresses of mail, IP addresses and URIs, in the order of the certificate.
    pub(super) alternative: Vec<String>,
    /// The first common name.
    pub(super) common: Option<String>,
}

impl CertificateNames {
    /// Reads a certificate; `None` when it is malformed.
    pub(super) fn read(certificate: &[u8]) -> Option<CertificateNames> {
        let signed = Der(Der(certificate).take(SEQUENCE)?).take(SEQUENCE)?;
        let mut members = Der(signed);
        members.take_if(VERSION)?;
        for _ in 0..BEFORE_SUBJECT {
            members.next()?;
        }
        let common = common_name(members.take(SEQUENCE)?)?;
        let mut alternative = None;
        while !members.0.is_empty() {
            let (tag, content) = members.next()?;
            if tag == EXTENSIONS {
                let mut extensions = Der(Der(content).take(SEQUENCE)?);
                while !extensions.0.is_empty() {
                    let mut extension = Der(extensions.take(SEQUENCE)?);
                    if extension.take(OBJECT_IDENTIFIER)? != ALTERNATIVE_NAMES {
                        continue;
                    }
                    let value = loop {
                        if let (OCTET_STRING, value) = extension.next()? {
                            break value;
                        }
                    };
                    let twice = alternative.replace(general_names(Der(value).take(SEQUENCE)?)?);
                    if twice.is_some() {
                        return None;
                    }
                }
            }
        }
        Some(CertificateNames { alternative: alternative.unwrap_or_default(), common })
    }
}

/// Outside, whether it can be read; inside, whether there is one.
fn common_name(subject: &[u8]) -> Option<Option<String>> {
    let mut sets = Der(subject);
    while !sets.0.is_empty() {
        let mut attributes = Der(sets.take(SET)?);
        while !attributes.0.is_empty() {
            let mut attribute = Der(attributes.take(SEQUENCE)?);
            if attribute.take(OBJECT_IDENTIFIER)? == COMMON_NAME {
                let (tag, value) = attribute.next()?;
                let text = std::str::from_utf8(value).ok().filter(|_| TEXTS.contains(&tag));
                return Some(text.map(str::to_string));
            }
        }
    }
    Some(None)
}

fn general_names(names: &[u8]) -> Option<Vec<String>> {
    let mut names = Der(names);
    let mut texts = Vec::new();
    while !names.0.is_empty() {
        let (tag, value) = names.next()?;
        match tag {
            MAIL | HOST | URI => {
                texts.push(std::str::from_utf8(value).ok().filter(|text| text.is_ascii())?.to_string());
            }
            ADDRESS => {
                let short = <[u8; 4]>::try_from(value).map(IpAddr::from);
                let address = short.or_else(|_| <[u8; 16]>::try_from(value).map(IpAddr::from));
                texts.extend(address.ok().map(|address| address.to_string()));
            }
            _ => {}
        }
    }
    Some(texts)
}

/// Elements one after the other: each a tag of one byte, a length and a content.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The next element.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&[tag, first], rest) = self.0.split_first_chunk()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            // Up to four bytes of length; none is the indefinite form, which DER does not have.
            0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (bytes.iter().fold(0, |length, &byte| length << 8 | usize::from(byte)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }

    /// The content of the next element, which has this tag.
    fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().filter(|(found, _)| *found == tag).map(|(_, content)| content)
    }

    /// Passes over the next element if it has this tag; `None` when it cannot be read.
    fn take_if(&mut self, tag: u8) -> Option<()> {
        match self.0.first() {
            Some(&found) if found == tag => self.next().map(drop),
            _ => Some(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    use super::*;

    fn certificate(sans: Vec<SanType>, common: &str) -> Vec<u8> {
        let mut params = CertificateParams::new([]).unwrap();
        params.subject_alt_names = sans;
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "Round & Co");
        params.distinguished_name.push(DnType::CommonName, common);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn names_are_read_and_damage_gives_none_of_them() {
        let sans = vec![
            SanType::DnsName("host1.example".try_into().unwrap()),
            SanType::IpAddress(IpAddr::from([0xfe80, 0, 0, 0, 0, 0, 0, 1])),
            // A length of two bytes.
            SanType::URI(format!("spiffe://example/{}", "x".repeat(300)).as_str().try_into().unwrap()),
        ];
        let der = certificate(sans, "änn");
        let names = CertificateNames::read(&der).unwrap();
        assert_eq!(names.common.as_deref(), Some("änn"));
        assert_eq!(names.alternative[..2], ["host1.example", "fe80::1"]);
        assert_eq!(names.alternative[2].len(), 317);
        for length in 0..der.len() {
            assert_eq!(CertificateNames::read(&der[..length]), None, "{length} bytes");
        }
        for at in 0..der.len() {
            let mut damaged = der.clone();
            for byte in [0, 0x30, 0x80, 0x84, 0xff] {
                damaged[at] = byte;
                // Whatever it makes of that, it ends.
                drop(CertificateNames::read(&damaged));
            }
        }
    }
}
