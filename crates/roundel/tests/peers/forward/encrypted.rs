//! Targets that are spoken to over TLS.

use std::path::Path;

use testkit::{Kind, Running, wait_until};

use super::{add_token, create, directory, forwarder, metric, prometheus, settings, update, wait_for_rows};
use crate::signer::Signer;

/// Writes `ca.crt`, and `server.crt` with its key for this machine.
fn certificates(directory: &Path) -> String {
    let signer = Signer::new("ours");
    std::fs::write(directory.join("ca.crt"), &signer.pem).unwrap();
    signer.sign(directory, "server", "localhost", 2099);
    format!("ca_file = \"{}\"\n", directory.join("ca.crt").display())
}

#[test]
fn a_roundel_with_tls_is_trusted_by_its_authority_and_shown_a_token() {
    let directory = directory();
    let trust = certificates(directory.path());
    let mut second = testkit::daemon!(Kind::Stripes, &directory.path().join("second"));
    let (port, path) = (testkit::free_port(), directory.path().display());
    second.configure(&format!(
        "[[listen]]\naddress = \"127.0.0.1:{port}\"\nanonymous = \"none\"\n\
         tls = {{ cert_file = \"{path}/server.crt\", key_file = \"{path}/server.key\" }}\n"
    ));
    let mut there = second.start();
    let token = add_token(&second, directory.path());
    let to = format!("tls:localhost:{port}");
    // Nothing is sent to who cannot show that it is the one that is meant.
    let stranger = Signer::new("others");
    std::fs::write(directory.path().join("others.crt"), &stranger.pem).unwrap();
    let keys = format!("token_file = \"{}\"\n", token.display());
    let (mut first, http) =
        forwarder(directory.path(), &to, &format!("{keys}ca_file = \"{path}/others.crt\""));
    let mut client = first.start();
    create(&mut client, "a.rrd");
    update(&mut client, "a.rrd", 1);
    wait_until("the distrust", || first.log().contains("no authority that is trusted here"));
    assert_eq!(metric(http, "sent_total", None), 0);
    first.kill();
    first.configure(&settings(http, &to, &format!("{keys}{trust}")));
    let mut client = first.start();
    update(&mut client, "a.rrd", 2);
    wait_for_rows(&mut client, &mut there, "a.rrd", 2);
}

#[test]
fn a_prometheus_is_written_to_over_https() {
    let Some(program) = prometheus::program() else { return };
    let directory = directory();
    let trust = certificates(directory.path());
    let web = directory.path().join("web.yml");
    std::fs::write(&web, "tls_server_config: { cert_file: server.crt, key_file: server.key }\n").unwrap();
    let port = testkit::free_port();
    let web = format!("--web.config.file={}", web.display());
    let _prometheus: Running = prometheus::spawn(&program, directory.path(), port, &[&web]);
    let to = format!("https://localhost:{port}/api/v1/write");
    let (mut first, http) = forwarder(directory.path(), &to, &trust);
    let mut client = first.start();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let line = format!("CREATE a.rrd -s 1 -b {} DS:v:GAUGE:60:U:U RRA:LAST:0.5:1:100", now - 100);
    assert_eq!(client.ask(&line).unwrap().status, 0);
    assert_eq!(client.ask(&format!("UPDATE a.rrd {}:1", now - 50)).unwrap().status, 0);
    wait_until("the reading", || metric(http, "sent_total", None) == 1);
    assert_eq!(metric(http, "refused_total", Some("other")), 0);
    let log = std::fs::read_to_string(directory.path().join("prometheus.log")).unwrap();
    assert!(log.contains("TLS is enabled"), "{log}");
}
