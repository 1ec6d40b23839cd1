//! Which files are accepted and which are refused, as exporter-toolkit does.

use std::path::Path;

use rcgen::{CertificateParams, KeyPair};

use super::*;

/// A directory with a certificate, its key, and another key.
fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(["localhost".to_string()]).unwrap().self_signed(&key).unwrap();
    let write = |name: &str, text: String| std::fs::write(directory.path().join(name), text).unwrap();
    write("server.crt", certificate.pem());
    write("server.key", key.serialize_pem());
    write("other.key", KeyPair::generate().unwrap().serialize_pem());
    write("empty", String::new());
    directory
}

fn open(directory: &Path, text: &str) -> Result<Door, String> {
    let path = directory.join("web-config.yml");
    std::fs::write(&path, text).unwrap();
    WebAccess::File(path).open()
}

const TLS: &str = "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n";

#[test]
fn files_of_exporter_toolkit_are_accepted() {
    let directory = directory();
    let key = std::fs::read_to_string(directory.path().join("server.key")).unwrap();
    let inline = format!(
        "tls_server_config:\n  cert_file: server.crt\n  key: |\n    {}\n",
        key.trim_end().replace('\n', "\n    ")
    );
    let suites = "  max_version: TLS12\n  cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA]\n";
    for text in [
        "",
        "---\n# nothing\n",
        "http_server_config:\n  headers:\n    X-Frame-Options: deny\n    X-XSS-Protection: 1\n    Content-Security-Policy: \"default-src 'self' *.test.example.net\"\n    Strict-Transport-Security: max-age=31536000; includeSubDomains\n",
        "rate_limit:\n  interval: 1s\n  burst: 3\n",
        "rate_limit:\n  interval: 0\n",
        "basic_auth_users:\n  a: $2y$10$X0h1gDsPszWURQaxFh.zoubFi6DXncSjhoQNJgRrnGs7EsimhC7zG\n",
        TLS,
        &inline,
        &format!("{TLS}  client_auth_type: RequireAnyClientCert\n"),
        &format!("{TLS}  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: server.crt\n"),
        &format!(
            "{TLS}  client_auth_type: VerifyClientCertIfGiven\n  client_ca_file: server.crt\n  client_allowed_sans: [a]\n"
        ),
        &format!(
            "{TLS}  curve_preferences: [CurveP256, CurveP384, CurveP521, X25519]\n  min_version: TLS10\n"
        ),
        &format!("{TLS}  prefer_server_cipher_suites: false\n  min_version: TLS13\n"),
        &format!("{TLS}{suites}http_server_config:\n  http2: false\n"),
    ] {
        if let Err(error) = open(directory.path(), text) {
            panic!("{text}: {error}");
        }
    }
}

#[test]
fn files_that_exporter_toolkit_refuses_are_refused() {
    let directory = directory();
    let check = |text: &str, want: &str| match open(directory.path(), text) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => assert!(error.contains(want) && error.contains("web-config.yml"), "{text}: {error}"),
    };
    check("hWkNKCp3fvIx3jKnsaBI\nTuEjdwNS8A2vYdFbiKqr\n", "yaml");
    check("tls_server_config:\n  cert_filse: server.crt\n", "cert_filse");
    check(
        "tls_server_config:\n  cert_file: \"\"\n  key_file: server.key\n",
        "missing one of cert or cert_file",
    );
    check("tls_server_config:\n  cert_file: server.crt\n", "missing one of key or key_file");
    check("tls_server_config:\n  client_auth_type: x\n", "missing one of cert or cert_file");
    check("tls_server_config:\n  cert_file: none\n  key_file: server.key\n", "No such file");
    check("tls_server_config:\n  cert_file: server.crt\n  key_file: none\n", "No such file");
    check("tls_server_config:\n  cert_file: empty\n  key_file: server.key\n", "has no certificate");
    check("tls_server_config:\n  cert_file: server.crt\n  key_file: empty\n", "has no private key");
    check("tls_server_config:\n  cert_file: server.crt\n  key_file: other.key\n", "do not go together");
    check(&format!("{TLS}  client_ca_file: server.crt\n"), "without a Client Auth Policy");
    check(
        &format!("{TLS}  client_ca_file: none\n  client_auth_type: RequireAndVerifyClientCert\n"),
        "No such file",
    );
    check(&format!("{TLS}  client_auth_type: Require\n"), "invalid ClientAuth");
    check(
        &format!("{TLS}  cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA2048]\n"),
        "unknown cipher suite",
    );
    check(&format!("{TLS}  curve_preferences: [CurveP257]\n"), "unknown curve");
    check(&format!("{TLS}  min_version: TLS111\n"), "unknown TLS version");
    check(&format!("{TLS}  max_version: TLS11\n"), "no version from TLS12 to TLS11");
    check(
        &format!("{TLS}  cipher_suites: [TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384]\n"),
        "that HTTP/2 requires",
    );
    check("basic_auth_users:\n  john: doe\n", "no hash of bcrypt");
    check("http_server_config:\n  headers:\n    X-Content-Type-Options: sniff\n", "invalid value");
    check("http_server_config:\n  headers:\n    X-Frame-Options: foo\n", "invalid value");
    check("http_server_config:\n  headers:\n    Content-Type: foo\n", "can not be configured");
    check("http_server_config:\n  headers:\n    X-XSS-Protection: \"a\\nb\"\n", "invalid value");
    check("rate_limit:\n  interval: often\n", "interval is \"often\"");
    // What the library here does not have, and nothing beside it.
    check(&format!("{TLS}  curve_preferences: [CurveP521]\n"), "none of CurveP256");
    let missing = WebAccess::File(directory.path().join("nowhere.yml")).open().err().unwrap();
    assert!(missing.contains("No such file"), "{missing}");
}

/// The test files of exporter-toolkit itself.
#[test]
fn the_test_files_of_exporter_toolkit_itself() {
    let Some(files) = testkit::peer::exporter_toolkit() else { return };
    let (mut good, mut bad) = (0, 0);
    for entry in std::fs::read_dir(&files).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.ends_with(".yml") && !name.ends_with(".yaml") {
            continue;
        }
        // Those that its tests do not call bad although they say so, or the other way about.
        let is_bad = match &*name {
            "web_config_auth_clientCAs_missing.bad.yml" | "web_config_auth_client_san.bad.yaml" => false,
            "web_config_junk.yml" | "web_config_junk_key.yml" => true,
            // TLS here has no P-521 (docs/compatibility.md).
            "web_config_noAuth_someCurves.good.yml" => true,
            name => name.contains(".bad."),
        };
        let opened = WebAccess::File(path).open();
        assert_eq!(opened.is_err(), is_bad, "{name}: {:?}", opened.err());
        if is_bad { bad += 1 } else { good += 1 }
    }
    assert!(good >= 15 && bad >= 15, "{good} good and {bad} bad files");
}
