//! A follower over TLS, and what one is told that may not follow.

use testkit::wait_until;

use crate::server::{CREATE, Server};
use crate::signer::Signer;

#[test]
fn a_follower_over_tls_shows_a_token_and_others_are_told_why_not() {
    let directory = tempfile::tempdir().unwrap();
    let signer = Signer::new("ours");
    signer.sign(directory.path(), "server", "localhost", 2099);
    let path = directory.path().display();
    std::fs::write(directory.path().join("ca.crt"), &signer.pem).unwrap();
    let tls = format!("tls = {{ cert_file = '{path}/server.crt', key_file = '{path}/server.key' }}\n");
    let mut a = Server::new(directory.path(), "a", &tls);
    a.start();
    a.say(&format!("CREATE x.rrd {CREATE}"));
    a.say("UPDATE x.rrd 1000000010:1");
    let reader = a.add_token("reader", &["--read", "**", "--write", "**"]);
    let second = a.add_token("second", &["--operate"]);
    let unknown = format!("{}x", &second[..second.len() - 1]);
    let mut b = Server::new(directory.path(), "b", "");
    let trust = format!("ca_file = '{path}/ca.crt'\n");
    let other = format!("ca_file = '{path}/server.crt'\n");
    let cases = [
        ("tls:", &reader, &*trust, "the token of \"reader\" may not operate this server"),
        ("tls:", &unknown, &*trust, "this token is not known, or has ended"),
        ("tls:", &second, &*other, "no authority that is trusted here"),
        ("", &second, "", "This port speaks TLS only"),
    ];
    let follow = |b: &mut Server, scheme: &str, token: &str, trust: &str| {
        std::fs::write(directory.path().join("token"), token).unwrap();
        let port = a.followers_port;
        b.replace_more(&format!(
            "[follow]\nprimary = '{scheme}localhost:{port}'\ntoken_file = '{path}/token'\n{trust}"
        ));
    };
    for (scheme, token, trust, want) in cases {
        follow(&mut b, scheme, token, trust);
        let log = b.fails();
        assert!(log.contains(want), "{want}: {log}");
    }
    follow(&mut b, "tls:", &second, &trust);
    b.start();
    wait_until("a copy that is followed", || b.status("connected") == "yes");
    a.say("UPDATE x.rrd 1000000020:2");
    wait_until("the update", || b.say("LAST x.rrd") == "0 1000000020");
    assert_eq!(a.dump("x.rrd"), b.dump("x.rrd"));
    // It is told nothing more once its token is revoked.
    a.revoke_token("second");
    wait_until("the end of the session", || b.status("connected") == "no");
    a.say("UPDATE x.rrd 1000000030:3");
    wait_until("the reason", || b.status("failure").contains("this token is not known, or has ended"));
    assert_eq!(b.say("LAST x.rrd"), "0 1000000020");
}
