//! TLS and the login as settings of librdkafka.

use rdkafka::ClientConfig;

use crate::log::LogError;
use crate::log::brokers::BrokerSecurity;

/// Settings that have keys of their own, with what to write instead.
const OWN_KEYS: &[(&str, &str)] = &[
    ("security.protocol", "tls = true gives TLS, user and password_file give a login"),
    ("sasl.mechanism", "its key is mechanism"),
    ("sasl.mechanisms", "its key is mechanism"),
    ("sasl.username", "its key is user"),
    ("sasl.password", "the password stands in a file, password_file"),
    ("ssl.ca.location", "its key is ca_file"),
    ("ssl.certificate.location", "its key is cert_file"),
    ("ssl.key.location", "its key is key_file"),
    ("ssl.key.pem", "the key stands in a file, key_file"),
    ("ssl.key.password", "secrets do not stand in the configuration; give a key_file that needs none"),
    ("ssl.keystore.password", "secrets do not stand in the configuration; give cert_file and key_file"),
    ("sasl.oauthbearer.client.secret", "this program has no OAUTHBEARER"),
];

/// What is wrong with a further setting of the user, if it has a key of its own.
pub(super) fn check_property(name: &str) -> Result<(), LogError> {
    match OWN_KEYS.iter().find(|(own, _)| *own == name) {
        None => Ok(()),
        Some((_, instead)) => Err(LogError::Refused(format!(
            "the setting {name} of Kafka's client does not stand in properties of [cluster.kafka]: {instead}"
        ))),
    }
}

/// Sets what a client needs to reach the brokers.
pub(super) fn set(config: &mut ClientConfig, security: &BrokerSecurity) -> Result<(), LogError> {
    let (tls, login) = (security.tls.as_ref(), security.login.as_ref());
    if !cfg!(feature = "kafka-tls") && (tls.is_some() || login.is_some()) {
        let text = args::feature::missing("TLS and logins of [cluster.kafka]", "kafka-tls");
        return Err(LogError::Refused(text));
    }
    let protocol = match (tls, login) {
        (None, None) => "plaintext",
        (Some(_), None) => "ssl",
        (None, Some(_)) => "sasl_plaintext",
        (Some(_), Some(_)) => "sasl_ssl",
    };
    config.set("security.protocol", protocol);
    if let Some(tls) = tls {
        // Where authorities are on this system: OpenSSL's own idea of that is another one if it was linked into the program.
        let authority = tls.authority.as_ref().map_or("probe".into(), |path| path.to_string_lossy());
        config.set("ssl.ca.location", authority);
        if let Some((certificate, key)) = &tls.identity {
            config.set("ssl.certificate.location", certificate.to_string_lossy());
            config.set("ssl.key.location", key.to_string_lossy());
        }
    }
    if let Some(login) = login {
        config.set("sasl.mechanism", login.mechanism.name());
        config.set("sasl.username", &login.user);
        config.set("sasl.password", login.password.expose());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::brokers::{BrokerLogin, BrokerTls, Mechanism, Password};

    #[test]
    fn tls_and_login_make_the_protocol() {
        let login = BrokerLogin {
            mechanism: Mechanism::ScramSha256,
            user: "me".into(),
            password: Password::new("secret".into()),
        };
        let tls = BrokerTls { authority: Some("/ca".into()), identity: Some(("/c".into(), "/k".into())) };
        let set_of = |tls: Option<&BrokerTls>, login: Option<&BrokerLogin>| {
            let mut config = ClientConfig::new();
            set(&mut config, &BrokerSecurity { tls: tls.cloned(), login: login.cloned() }).unwrap();
            config
        };
        assert_eq!(set_of(None, None).get("security.protocol"), Some("plaintext"));
        assert_eq!(set_of(None, Some(&login)).get("security.protocol"), Some("sasl_plaintext"));
        assert_eq!(set_of(Some(&tls), None).get("security.protocol"), Some("ssl"));
        let default = BrokerTls::default();
        assert_eq!(set_of(Some(&default), None).get("ssl.ca.location"), Some("probe"));
        let both = set_of(Some(&tls), Some(&login));
        for (name, value) in [
            ("security.protocol", "sasl_ssl"),
            ("ssl.ca.location", "/ca"),
            ("ssl.certificate.location", "/c"),
            ("ssl.key.location", "/k"),
            ("sasl.mechanism", "SCRAM-SHA-256"),
            ("sasl.username", "me"),
            ("sasl.password", "secret"),
        ] {
            assert_eq!(both.get(name), Some(value));
        }
    }

    #[test]
    fn secrets_are_refused_among_the_properties() {
        for (name, word) in [("sasl.password", "password_file"), ("security.protocol", "tls = true")] {
            let error = check_property(name).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(word), "{error}");
        }
        check_property("client.rack").unwrap();
    }
}
