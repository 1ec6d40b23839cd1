//! Brokers that are reached by TLS, want a login or a certificate; and what an operator is told who gets one of these wrong.

use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use roundel_cluster::log::brokers::{BrokerLogin, BrokerSecurity, BrokerTls, Mechanism, Password};
use roundel_cluster::log::kafka::{KafkaLog, KafkaOptions, NewTopic, check, create_topic};
use roundel_cluster::log::{LogError, ReplicatedLog};
use testkit::{Doors, Kafka, free_port};

use super::{DAY, Duration, Instant, PATIENCE, next};

const USER: &str = "roundel";
const PASSWORD: &str = "a password of this test";

/// Certificates of an authority, in a directory that goes with the test.
struct Certificates {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: tempfile::TempDir,
}

impl Certificates {
    fn new(name: &str) -> Certificates {
        let directory = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        std::fs::write(directory.path().join("ca.pem"), issuer.pem()).unwrap();
        Certificates { directory, issuer }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join(file)
    }

    /// Writes `FILE.crt`, `FILE.key`, and `FILE.pem` with both.
    fn sign(&self, file: &str, name: &str, until_year: i32) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, file);
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(until_year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        let key = key.serialize_pem();
        std::fs::write(self.path(&format!("{file}.pem")), format!("{key}{certificate}")).unwrap();
        std::fs::write(self.path(&format!("{file}.key")), key).unwrap();
        std::fs::write(self.path(&format!("{file}.crt")), certificate).unwrap();
    }

    fn tls(&self) -> Option<BrokerTls> {
        Some(BrokerTls { authority: Some(self.path("ca.pem")), identity: None })
    }
}

/// A broker with a door of each kind.
struct Fortress {
    kafka: Kafka,
    certificates: Certificates,
    ports: [u16; 4],
}

impl Fortress {
    fn start() -> Option<Fortress> {
        let certificates = Certificates::new("the brokers' authority");
        certificates.sign("good", "127.0.0.1", 2100);
        certificates.sign("expired", "127.0.0.1", 2001);
        certificates.sign("elsewhere", "kafka.example.org", 2100);
        certificates.sign("client", "node-1", 2100);
        let ports = [0; 4].map(|_| free_port());
        let names = ["SECURED", "MUTUAL", "EXPIRED", "ELSEWHERE"];
        let protocols = ["SASL_SSL", "SSL", "SSL", "SSL"];
        let listeners = [0, 1, 2, 3].map(|at| (names[at], protocols[at], ports[at]));
        let mut settings = vec![
            "listener.name.secured.sasl.enabled.mechanisms=SCRAM-SHA-512,PLAIN".to_owned(),
            "listener.name.secured.scram-sha-512.sasl.jaas.config=\
             org.apache.kafka.common.security.scram.ScramLoginModule required;"
                .to_owned(),
            format!(
                "listener.name.secured.plain.sasl.jaas.config=\
                 org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}=\"{PASSWORD}\";"
            ),
            "listener.name.mutual.ssl.client.auth=required".to_owned(),
            "listener.name.mutual.ssl.truststore.type=PEM".to_owned(),
            format!("listener.name.mutual.ssl.truststore.location={}", certificates.path("ca.pem").display()),
        ];
        for (name, file) in names.iter().zip(["good", "good", "expired", "elsewhere"]) {
            let (name, file) = (name.to_lowercase(), certificates.path(&format!("{file}.pem")));
            settings.push(format!("listener.name.{name}.ssl.keystore.type=PEM"));
            settings.push(format!("listener.name.{name}.ssl.keystore.location={}", file.display()));
        }
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let doors = Doors { listeners: &listeners, users: &[(USER, PASSWORD)] };
        let kafka = Kafka::start_guarded(&doors, &settings)?;
        Some(Fortress { kafka, certificates, ports })
    }

    fn options(&self, door: usize, tls: Option<BrokerTls>, login: Option<BrokerLogin>) -> KafkaOptions {
        let mut options = KafkaOptions::new(format!("127.0.0.1:{}", self.ports[door]), "guarded");
        options.security = BrokerSecurity { tls, login };
        options.request_timeout = Duration::from_secs(20);
        options.producers = 1;
        options
    }
}

fn login(mechanism: Mechanism, password: &str) -> Option<BrokerLogin> {
    Some(BrokerLogin { mechanism, user: USER.to_owned(), password: Password::new(password.to_owned()) })
}

const SECURED: usize = 0;
const MUTUAL: usize = 1;
const EXPIRED: usize = 2;
const ELSEWHERE: usize = 3;

/// Appends and reads by TLS and each kind of login.
fn right_ones_get_in(fortress: &Fortress) {
    let tls = fortress.certificates.tls();
    let scram = fortress.options(SECURED, tls.clone(), login(Mechanism::ScramSha512, PASSWORD));
    create_topic(&scram, NewTopic { partitions: 2, replication: 1, retention: DAY }).unwrap();
    let plain = fortress.options(SECURED, tls.clone(), login(Mechanism::Plain, PASSWORD));
    let certificate = |file: &str| fortress.certificates.path(file);
    let identity = Some((certificate("client.crt"), certificate("client.key")));
    let mutual = fortress.options(MUTUAL, tls.map(|tls| BrokerTls { identity, ..tls }), None);
    for (offset, options) in [scram, plain, mutual].into_iter().enumerate() {
        check(&options).unwrap();
        let log = KafkaLog::new(options).unwrap();
        assert!(!format!("{log:?}").contains(PASSWORD));
        assert_eq!(log.partition_count(), Ok(2));
        log.append(1, format!("message {offset}").as_bytes()).unwrap();
        let mut reader = log.reader(1, 0).unwrap();
        for before in 0..=offset {
            assert_eq!(next(reader.as_mut()).bytes, format!("message {before}").as_bytes());
        }
    }
}

/// Asks until the answer is another one than that no broker answers: 39 clients at once are many for one broker.
fn refusal<T>(ask: impl Fn() -> Result<T, LogError>) -> LogError {
    let begun = Instant::now();
    loop {
        match ask().err().unwrap() {
            LogError::Unreachable(_) if begun.elapsed() < PATIENCE => {}
            error => return error,
        }
    }
}

/// Every question ends with an error that says all these words, and not the password.
fn is_refused(mut options: KafkaOptions, words: &[&str]) {
    // The client waits for so long before it says why no broker lets it in.
    options.request_timeout = Duration::from_secs(3);
    let log = KafkaLog::new(options).unwrap();
    let errors = std::thread::scope(|scope| {
        let append = scope.spawn(|| refusal(|| log.append(0, b"x")));
        let reader = scope.spawn(|| refusal(|| log.reader(0, 0)));
        [refusal(|| log.partition_count()), append.join().unwrap(), reader.join().unwrap()]
    });
    for error in errors {
        let text = error.to_string();
        assert!(matches!(error, LogError::Refused(_)), "{text}");
        assert!(words.iter().all(|word| text.contains(word)), "{words:?}: {text}");
        assert!(!text.contains(PASSWORD) && !text.contains("another password"), "{text}");
    }
}

#[test]
fn brokers_with_tls_and_logins_let_the_right_ones_in_and_say_what_is_wrong_with_others() {
    let Some(fortress) = Fortress::start() else { return };
    right_ones_get_in(&fortress);
    let strangers = Certificates::new("another authority");
    let tls = || fortress.certificates.tls();
    let scram = || login(Mechanism::ScramSha512, PASSWORD);
    let ca = |authority: &Certificates| authority.tls();
    strangers.sign("client", "node-1", 2100);
    let stranger = Some((strangers.path("client.crt"), strangers.path("client.key")));
    let shown = tls().map(|tls| BrokerTls { identity: stranger, ..tls });
    let mut without = fortress.options(SECURED, tls(), None);
    without.brokers = fortress.kafka.addresses();
    let no_login_there =
        KafkaOptions { security: BrokerSecurity { tls: None, login: scram() }, ..without.clone() };
    let cases: Vec<(KafkaOptions, &[&str])> = vec![
        (
            fortress.options(SECURED, tls(), login(Mechanism::ScramSha512, "another password")),
            &["invalid credentials", "password_file"],
        ),
        (
            fortress.options(SECURED, tls(), login(Mechanism::Plain, "another password")),
            &["Invalid username or password", "password_file"],
        ),
        (
            fortress.options(SECURED, tls(), login(Mechanism::ScramSha256, PASSWORD)),
            &["SCRAM-SHA-512", "mechanism"],
        ),
        (
            fortress.options(SECURED, tls(), None),
            &["wants a login (", "SCRAM-SHA-512", "user and password_file"],
        ),
        (fortress.options(SECURED, ca(&strangers), scram()), &["signed by no authority", "ca_file"]),
        (fortress.options(SECURED, None, None), &["speaks TLS", "tls = true"]),
        (fortress.options(SECURED, None, scram()), &["speaks TLS", "tls = true"]),
        (fortress.options(EXPIRED, tls(), None), &["has expired", "renewed"]),
        (fortress.options(ELSEWHERE, tls(), None), &["not for the name 127.0.0.1", "kafka.example.org"]),
        (fortress.options(MUTUAL, tls(), None), &["demands a certificate", "cert_file and key_file"]),
        (fortress.options(MUTUAL, shown, None), &["does not accept this client's certificate"]),
        (without, &["does not speak TLS", "leave out tls"]),
        (no_login_there, &["user", "password_file"]),
    ];
    std::thread::scope(|scope| {
        for (options, words) in cases {
            scope.spawn(move || is_refused(options, words));
        }
    });
}

#[test]
fn files_that_cannot_be_used_are_named_before_a_broker_is_asked() {
    let certificates = Certificates::new("an authority");
    certificates.sign("one", "a", 2100);
    certificates.sign("two", "a", 2100);
    let path = |file: &str| certificates.path(file);
    for (authority, identity, word) in [
        ("none.pem", None, "none.pem"),
        ("one.key", None, "one.key"),
        ("ca.pem", Some(("one.crt", "none.key")), "none.key"),
        ("ca.pem", Some(("one.crt", "two.key")), "do not go together"),
    ] {
        let identity = identity.map(|(certificate, key)| (path(certificate), path(key)));
        let mut options = KafkaOptions::new("127.0.0.1:1", "t");
        options.security.tls = Some(BrokerTls { authority: Some(path(authority)), identity });
        for error in [KafkaLog::new(options.clone()).err().unwrap(), check(&options).unwrap_err()] {
            assert!(matches!(&error, LogError::Refused(why) if why.contains(word)), "{error}");
        }
    }
    let mut options = KafkaOptions::new("127.0.0.1:1", "t");
    options.properties = vec![("sasl.password".to_owned(), PASSWORD.to_owned())];
    let error = check(&options).unwrap_err().to_string();
    assert!(error.contains("password_file") && !error.contains(PASSWORD), "{error}");
    options.properties = vec![("no.such.setting".to_owned(), PASSWORD.to_owned())];
    let error = check(&options).unwrap_err().to_string();
    assert!(error.contains("no.such.setting") && !error.contains(PASSWORD), "{error}");
}
