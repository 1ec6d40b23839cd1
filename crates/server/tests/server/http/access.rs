//! TLS, passwords, rates and versions of HTTP, with curl and openssl as clients.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use roundel_server::http::access::WebAccess;

use crate::common::Roundel;

/// An authority for certificates.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { issuer: Issuer::new(params, key), pem }
    }

    /// Writes `NAME.crt` and `NAME.key` for these alternative names.
    fn issue(&self, directory: &Path, name: &str, names: &[&str]) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_string()).collect();
        let params = CertificateParams::new(names).unwrap();
        let key = KeyPair::generate().unwrap();
        let pem = params.signed_by(&key, &self.issuer).unwrap().pem();
        std::fs::write(directory.join(format!("{name}.key")), key.serialize_pem()).unwrap();
        std::fs::write(directory.join(format!("{name}.crt")), pem).unwrap();
    }
}

/// A daemon whose HTTP a file `web.yml` guards, with the files of two authorities and their certificates beside it.
struct Guarded {
    roundel: Roundel,
    authority: Authority,
}

impl Guarded {
    fn new(config: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let authority = Authority::new("ours");
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        write("ca.crt", &authority.pem);
        authority.issue(directory.path(), "server", &["localhost", "127.0.0.1"]);
        authority.issue(directory.path(), "client", &["host1.example", "ops@example.net"]);
        let other = Authority::new("others");
        other.issue(directory.path(), "stranger", &["host1.example"]);
        write("other-ca.crt", &other.pem);
        write("web.yml", config);
        let access = WebAccess::File(directory.path().join("web.yml"));
        Guarded { roundel: Roundel::guarded(directory, &access), authority }
    }

    fn path(&self, name: &str) -> String {
        self.roundel.path(name).display().to_string()
    }

    fn port(&self) -> String {
        let address = std::fs::read_to_string(self.roundel.path("http")).unwrap();
        address.rsplit_once(':').unwrap().1.to_string()
    }

    fn url(&self, scheme: &str, target: &str) -> String {
        format!("{scheme}://localhost:{}{target}", self.port())
    }

    fn curl(&self, words: &[&str], scheme: &str, target: &str) -> Output {
        Command::new("curl")
            .args(["-sS", "--max-time", "60", "--cacert", &self.path("ca.crt")])
            .args(["-o", &self.path("body"), "-w", "%{http_code} %{http_version}"])
            .args(words)
            .arg(self.url(scheme, target))
            .output()
            .expect("curl runs (Debian's package curl)")
    }

    /// Status and version of HTTP of an answer, or 000 and what curl says.
    fn ask(&self, words: &[&str], target: &str) -> String {
        let said = self.curl(words, "https", target);
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        if said.status.success() { text } else { format!("{text} {}", String::from_utf8_lossy(&said.stderr)) }
    }

    fn body(&self) -> Vec<u8> {
        std::fs::read(self.roundel.path("body")).unwrap()
    }

    /// Writes a file as its keepers do: beside it, then over it.
    fn replace(&self, name: &str, text: &str) {
        let new = self.path("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, self.path(name)).unwrap();
    }
}

const TLS: &str = "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n";

#[test]
fn pages_come_over_both_versions_of_http_and_tls() {
    let guarded = Guarded::new(TLS);
    assert_eq!(guarded.ask(&[], "/"), "200 2");
    let page = guarded.body();
    assert!(page.starts_with(b"<!doctype html>") || page.starts_with(b"<!DOCTYPE html>"));
    assert_eq!(guarded.ask(&["--http1.1"], "/assets/none/x.js"), "404 1.1");
    assert_eq!(guarded.ask(&["--tlsv1.2", "--tls-max", "1.2"], "/healthz"), "200 2");
    assert_eq!(guarded.ask(&["--tlsv1.3"], "/healthz"), "200 2");
    assert_eq!(guarded.body(), b"ok\n");
    let old = guarded.ask(&["--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0"], "/healthz");
    assert!(old.starts_with("000"), "{old}");
    // A certificate of another authority is not ours.
    let stranger = guarded.ask(&["--cacert", &guarded.path("other-ca.crt")], "/healthz");
    assert!(stranger.starts_with("000") && stranger.contains("certificate"), "{stranger}");
    let plain = guarded.curl(&[], "http", "/");
    assert_eq!(String::from_utf8_lossy(&plain.stdout), "400 1");
    assert_eq!(guarded.body(), b"this port speaks HTTPS only\n");
}

#[test]
fn names_and_passwords_are_asked_for() {
    let hash = bcrypt::hash("maple syrup", 4).unwrap();
    let guarded = Guarded::new(&format!("{TLS}basic_auth_users:\n  ann: {hash}\n"));
    for words in [&[][..], &["-u", "ann:"], &["-u", "ann:maple"], &["-u", "bob:maple syrup"]] {
        for target in ["/", "/metrics", "/healthz", "/api/v1/list", "/nothing"] {
            assert_eq!(guarded.ask(words, target), "401 2", "{words:?} {target}");
        }
    }
    guarded.ask(&["-D", &guarded.path("head")], "/");
    let head = std::fs::read_to_string(guarded.path("head")).unwrap().to_ascii_lowercase();
    assert!(head.contains("www-authenticate: basic realm="), "{head}");
    for version in ["--http1.1", "--http2"] {
        let said = guarded.ask(&[version, "-u", "ann:maple syrup"], "/api/v1/list");
        assert!(said.starts_with("200"), "{said}");
    }
    // Who leaves the file is out at the next request.
    guarded.replace("web.yml", &format!("{TLS}basic_auth_users:\n  bob: {hash}\n"));
    assert_eq!(guarded.ask(&["-u", "ann:maple syrup"], "/"), "401 2");
    assert_eq!(guarded.ask(&["-u", "bob:maple syrup"], "/"), "200 2");
    // With a file that cannot be used, everything stays as it was.
    guarded.replace("web.yml", "basic_auth_users:\n  bob: [");
    assert_eq!(guarded.ask(&[], "/"), "401 2");
    assert_eq!(guarded.ask(&["-u", "bob:maple syrup"], "/"), "200 2");
    guarded.replace("web.yml", "http_server_config:\n  http2: false\n");
    assert_eq!(guarded.ask(&[], "/"), "401 2");
}

/// Browsers say where a form comes from, and speak HTTP/2. A session ends with the password that it began with.
#[test]
fn a_login_works_over_both_versions_of_http_until_its_password_is_another_one() {
    let [one, other] = ["maple syrup", "birch"].map(|password| bcrypt::hash(password, 4).unwrap());
    let users = |lines: &str| format!("{TLS}basic_auth_users:\n{lines}");
    let guarded = Guarded::new(&users(&format!("  ann: {one}\n")));
    let head = guarded.path("head");
    let here = format!("Origin: {}", guarded.url("https", ""));
    let form = ["-d", "name=ann", "--data-urlencode", "secret=maple syrup", "-D", &head];
    for version in ["--http1.1", "--http2"] {
        let elsewhere = "Origin: https://elsewhere.example";
        let said = guarded.ask(&[&form[..], &[version, "-H", elsewhere]].concat(), "/login");
        assert!(said.starts_with("403"), "{said}");
        let said = guarded.ask(&[&form[..], &[version, "-H", &here]].concat(), "/login");
        assert!(said.starts_with("303"), "{version}: {said}");
        let said = std::fs::read_to_string(&head).unwrap();
        let cookie = said.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        let cookie = format!("Cookie: {}", cookie.split(';').next().unwrap());
        let ask = || guarded.ask(&["-H", &cookie], "/api/v1/list");
        assert_eq!(ask(), "200 2");
        for lines in [format!("  ann: {other}\n"), format!("  bob: {one}\n")] {
            guarded.replace("web.yml", &users(&lines));
            assert_eq!(ask(), "401 2", "{lines}");
        }
        guarded.replace("web.yml", &users(&format!("  ann: {one}\n")));
        assert_eq!(ask(), "200 2");
    }
}

#[test]
fn a_renewed_certificate_is_used_at_the_next_connection() {
    let guarded = Guarded::new(TLS);
    let serial = || {
        let connect = format!("127.0.0.1:{}", guarded.port());
        let script = format!(
            "openssl s_client -connect {connect} </dev/null 2>/dev/null | openssl x509 -noout -serial"
        );
        let said = Command::new("sh").args(["-c", &script]).output().unwrap();
        String::from_utf8(said.stdout).unwrap()
    };
    let first = serial();
    assert!(first.starts_with("serial="), "{first}");
    assert_eq!(serial(), first);
    guarded.authority.issue(guarded.roundel.path("").as_path(), "server", &["localhost"]);
    let second = serial();
    assert!(second.starts_with("serial=") && second != first, "{first} {second}");
    // One that is half there is not.
    guarded.replace("server.crt", "-----BEGIN CERTIFICATE-----\nMIIB\n");
    assert_eq!(serial(), second);
    std::fs::remove_file(guarded.path("server.key")).unwrap();
    assert_eq!(serial(), second);
}

#[test]
fn clients_show_certificates() {
    let mutual = format!("{TLS}  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.crt\n");
    let guarded = Guarded::new(&mutual);
    let [cert, key] = ["client.crt", "client.key"].map(|name| guarded.path(name));
    let [other_cert, other_key] = ["stranger.crt", "stranger.key"].map(|name| guarded.path(name));
    let client = &["--cert", &*cert, "--key", &key];
    let stranger = &["--cert", &*other_cert, "--key", &other_key];
    for versions in [&[][..], &["--tls-max", "1.2"]] {
        let ask = |words: &[&str]| guarded.ask(&[versions, words].concat(), "/healthz");
        assert_eq!(ask(client), "200 2");
        assert!(ask(&[]).starts_with("000"));
        assert!(ask(stranger).starts_with("000"));
    }
    guarded.replace("web.yml", &format!("{mutual}  client_allowed_sans: [ops@example.net]\n"));
    assert_eq!(guarded.ask(client, "/healthz"), "200 2");
    guarded.replace("web.yml", &format!("{mutual}  client_allowed_sans: [host2.example]\n"));
    assert!(guarded.ask(client, "/healthz").starts_with("000"));
    // Any certificate, but its key must be there.
    guarded.replace("web.yml", &format!("{TLS}  client_auth_type: RequireAnyClientCert\n"));
    assert_eq!(guarded.ask(stranger, "/healthz"), "200 2");
    assert!(guarded.ask(&[], "/healthz").starts_with("000"));
    guarded.replace("web.yml", &format!("{TLS}  client_auth_type: RequestClientCert\n"));
    assert_eq!(guarded.ask(&[], "/healthz"), "200 2");
    // An authority that leaves the file is one no longer.
    guarded.replace("web.yml", &mutual);
    assert_eq!(guarded.ask(client, "/healthz"), "200 2");
    let other = std::fs::read_to_string(guarded.path("other-ca.crt")).unwrap();
    guarded.replace("ca-of-clients.crt", &other);
    guarded.replace("web.yml", &mutual.replace("ca.crt", "ca-of-clients.crt"));
    assert!(guarded.ask(client, "/healthz").starts_with("000"));
    assert_eq!(guarded.ask(stranger, "/healthz"), "200 2");
}

#[test]
fn rates_and_headers_are_those_of_the_file() {
    let guarded = Guarded::new(
        "rate_limit:\n  interval: 1h\n  burst: 3\nhttp_server_config:\n  headers:\n    X-Frame-Options: deny\n",
    );
    let ask = |target: &str| {
        let head = guarded.path("head");
        let said = guarded.curl(&["-D", &head], "http", target);
        (String::from_utf8_lossy(&said.stdout).into_owned(), std::fs::read_to_string(&head).unwrap())
    };
    let (said, head) = ask("/healthz");
    assert_eq!(said, "200 1.1");
    assert!(head.to_ascii_lowercase().contains("x-frame-options: deny"), "{head}");
    let said: Vec<String> = (0..4).map(|_| ask("/healthz").0).collect();
    assert_eq!(said, ["200 1.1", "200 1.1", "429 1.1", "429 1.1"]);
    // The login is no way around it.
    for open in ["/login", "/logout", "/assets/x/main.js"] {
        assert_eq!(ask(open).0, "429 1.1", "{open}");
    }
}

#[test]
fn many_requests_at_once_of_one_connection_are_answered() {
    let guarded = Guarded::new(TLS);
    let urls: Vec<String> =
        (0..60).map(|number| guarded.url("https", &format!("/search?q=x{number}"))).collect();
    let mut words = vec!["-sS", "--parallel", "--parallel-max", "60", "--max-time", "120"];
    let ca = guarded.path("ca.crt");
    words.extend(["--cacert", &ca, "-w", "%{http_code} %{num_connects}\\n"]);
    let out = guarded.path("null");
    for url in &urls {
        words.extend(["-o", &out, url]);
    }
    let said = Command::new("curl").args(&words).output().unwrap();
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    let answers: Vec<&str> = text.lines().collect();
    assert_eq!(answers.len(), 60, "{text} {}", String::from_utf8_lossy(&said.stderr));
    assert!(answers.iter().all(|answer| answer.starts_with("200")), "{text}");
    let connections: u32 =
        answers.iter().filter_map(|answer| answer.split(' ').nth(1)?.parse::<u32>().ok()).sum();
    assert!(connections < 30, "{connections} connections for 60 requests");
}

#[test]
fn a_client_that_never_ends_its_handshake_harms_no_other() {
    let guarded = Guarded::new(TLS);
    let address = std::fs::read_to_string(guarded.roundel.path("http")).unwrap();
    let mut slow: Vec<TcpStream> = (0..50).map(|_| TcpStream::connect(&address).unwrap()).collect();
    for stream in &mut slow {
        // A record of TLS that promises more than comes.
        stream.write_all(&[22, 3, 1, 2, 0, 1]).unwrap();
    }
    assert_eq!(guarded.ask(&[], "/healthz"), "200 2");
    // Nonsense is refused at once.
    let mut nonsense = TcpStream::connect(&address).unwrap();
    nonsense.write_all(&[22, 0xff, 0xff, 0, 4, 1, 2, 3, 4]).unwrap();
    let mut answer = Vec::new();
    nonsense.read_to_end(&mut answer).ok();
    assert!(!answer.starts_with(b"HTTP"));
    assert_eq!(guarded.ask(&[], "/healthz"), "200 2");
}
