//! A front end of a cluster within the test's process: one of two nodes over a log in a directory.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cluster::node::Node;
use roundel_server::cluster::{Ack, ClusterSettings, LogSettings, NodeSpool, OpenedNode};
use roundel_server::layout;
use roundel_server::settings::Settings;
use store::engine::Engine;

/// The engine of the first node, and the second one, which is to be kept as long.
pub fn front_end(directory: &Path) -> (Arc<dyn Engine>, Arc<dyn Engine>) {
    let secret_file = directory.join("secret");
    std::fs::write(&secret_file, "a secret of the cluster in this test\n").unwrap();
    let open = |name: &str| {
        let address = format!("127.0.0.1:{}", testkit::free_port());
        let cluster = ClusterSettings {
            name: "test".into(),
            node: name.into(),
            zone: format!("zone-{name}"),
            listen: address.clone(),
            address,
            secret_file: secret_file.clone(),
            files: None,
            replication: 2,
            patience: Duration::from_secs(30),
            log: LogSettings::Directory(directory.join("log")),
            ack: Ack::Log,
            spool: NodeSpool { directory: None, bytes_max: 1 << 30 },
        };
        // Programs of a test see the first node's tree.
        let base = directory.join(if name == "a" { "base" } else { "base-of-the-other" });
        let settings = Settings::new(directory.join(format!("store-{name}")), base);
        layout::open_node(&Settings { cluster: Some(cluster), ..settings }).unwrap()
    };
    let (OpenedNode { engine, node, .. }, OpenedNode { engine: other, .. }) = (open("a"), open("b"));
    let is_well = |node: &Node| {
        let members = node.members();
        // The first to be ready leads all, until the other one takes its share: an update that is on its way then is sent again.
        (0..node.partitions()).all(|partition| {
            let leader = members.leader(partition).map(|known| &*known.beat.name);
            leader.is_some() && leader == members.candidate(partition) && members.ready_count(partition) == 2
        })
    };
    testkit::wait_until("all partitions to have two replicas, and the leader that they should have", || {
        is_well(&node)
    });
    (engine, other)
}
