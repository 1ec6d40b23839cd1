//! Who does not belong to the cluster, or does not speak its language; and the connections with TLS.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use roundel_cluster::engine::{ClusterEngine, ClusterOptions};
use roundel_cluster::handshake::Membership;
use roundel_cluster::routes::Routes;
use roundel_cluster::serve::Listener;
use roundel_cluster::tls::NodeTls;
use store::engine::Engine;

use crate::world::{NodeRoutes, SECRET, START, World, create, member, name, options, update};

const ARGS: &[&str] = &["DS:a:GAUGE:100:U:U", "RRA:AVERAGE:0.5:1:1000"];

/// What an engine of another membership gets from node 0 of a world.
fn refusal(world: &World, membership: Membership) -> String {
    let routes = Arc::new(NodeRoutes { node: 1, map: Arc::clone(&world.map) });
    world.map.lock().unwrap().leaders[1] = Some(0);
    let short = ClusterOptions { patience: Duration::from_millis(500), ..options() };
    let engine = ClusterEngine::start(routes, membership, short).unwrap();
    engine.delete(&name("x/a.rrd")).unwrap_err().to_string()
}

#[test]
fn another_secret_or_cluster_is_refused() {
    let world = World::new(2, 2, &options());
    let wrong = member(1, b"another secret of many bytes....");
    assert!(refusal(&world, wrong).contains("it has another secret"));
    let other = Membership::new("other", "node 1", SECRET, None).unwrap();
    assert!(refusal(&world, other).contains("it belongs to another cluster"));
    assert!(Membership::new("c", "n", b"short", None).is_err());
    assert!(Membership::new("", "n", SECRET, None).is_err());
    assert!(Membership::new("c", &"n".repeat(256), SECRET, None).is_err());
}

#[test]
fn nonsense_ends_the_connection_and_nothing_else() {
    let world = World::new(1, 1, &options());
    let address = world.listeners[0].as_ref().unwrap().address();
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"", b"RNDP\x07", b"RNDP\x01\xff", &[0xff; 4096]] {
        let mut stranger = TcpStream::connect(address).unwrap();
        // It may be closed already.
        let _ = stranger.write_all(bytes);
        let _ = stranger.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stranger.read_to_end(&mut answer);
        assert!(answer.len() < 300, "{answer:?}");
    }
    assert!(create(&world.engines[0], "d/a.rrd", ARGS, true).is_ok());
}

/// Certificates of one authority for 127.0.0.1.
fn tls(issuer: &CertifiedIssuer<'_, KeyPair>) -> NodeTls {
    let key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, issuer).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = |file: &str| directory.path().join(file);
    std::fs::write(path("ca.pem"), issuer.pem()).unwrap();
    std::fs::write(path("node.pem"), own.pem()).unwrap();
    std::fs::write(path("node.key"), key.serialize_pem()).unwrap();
    NodeTls::from_files(&path("node.pem"), &path("node.key"), &path("ca.pem")).unwrap()
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

#[test]
fn nodes_with_certificates_of_one_authority_talk_and_others_do_not() {
    let world = World::new(2, 2, &options());
    let ours = authority();
    let with = |issuer| Membership::new("test", "node 1", SECRET, Some(tls(issuer))).unwrap();
    let routes = || Arc::new(NodeRoutes { node: 0, map: Arc::clone(&world.map) }) as Arc<dyn Routes>;
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listener = Listener::start(socket, with(&ours), routes()).unwrap();
    {
        let mut map = world.map.lock().unwrap();
        map.addresses[0].address = listener.address().to_string();
        map.leaders = vec![Some(0), Some(0)];
        map.stores[0][1] = map.stores[1][1].take();
    }
    let theirs = Arc::new(NodeRoutes { node: 1, map: Arc::clone(&world.map) });
    let engine = ClusterEngine::start(theirs, with(&ours), options()).unwrap();
    for number in 0..20 {
        create(&engine, &format!("d{number}/a.rrd"), ARGS, true).unwrap();
    }
    // More than a record of TLS, in both directions.
    let many: Vec<_> = (0..4000).map(|step| format!("{}:{step}", START + 10 + step)).collect();
    let lines: Vec<_> = (0..20).map(|number| (format!("d{number}/a.rrd"), many.join(" "))).collect();
    assert!(update(&engine, &lines).is_empty());
    assert_eq!(engine.read(&name("d3/a.rrd")).unwrap().archives[0].len(), 1000);
    assert_eq!(engine.list(b"", true).unwrap().len(), 20);
    let stranger = authority();
    let refused = refusal(&world, with(&stranger));
    assert!(refused.contains("does not answer"), "{refused}");
    assert!(refusal(&world, member(1, SECRET)).contains("does not answer"));
}
