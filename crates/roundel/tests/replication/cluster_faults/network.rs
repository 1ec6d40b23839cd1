//! A network of the kernel's: each node in a namespace of its own, all on a bridge of this machine, so that a node can be cut off.

use std::process::Command;

/// Namespaces and the bridge; removed in the end.
pub struct Network {
    bridge: String,
    namespaces: Vec<String>,
    /// The first three numbers of all addresses.
    prefix: String,
}

/// What a node cannot reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Anything.
    All,
    /// The other nodes.
    Nodes,
    /// The brokers.
    Brokers,
}

fn ip(words: &str) -> bool {
    Command::new("ip").args(words.split(' ')).output().is_ok_and(|output| output.status.success())
}

impl Network {
    /// `None`, and a skip is reported, when this user may not make it.
    pub fn new(nodes: usize) -> Option<Network> {
        testkit::stale::remove_networks("rdl-", "rdl");
        let id = std::process::id();
        let mut network = Network {
            bridge: format!("rdl{id}"),
            namespaces: Vec::new(),
            // Tests of other worktrees may run at the same time.
            prefix: format!("10.{}.{}", 200 + id % 50, id / 50 % 250),
        };
        let (bridge, host) = (network.bridge.clone(), network.host());
        if !ip(&format!("link add {bridge} type bridge")) {
            testkit::skip(
                "this user may not make networks, so that nodes are paused where they should be cut off",
            );
            return None;
        }
        assert!(ip(&format!("addr add {host}/24 dev {bridge}")));
        assert!(ip(&format!("link set {bridge} up")));
        for node in 0..nodes {
            let name = format!("rdl-{id}-{node}");
            assert!(ip(&format!("netns add {name}")));
            network.namespaces.push(name.clone());
            let near = format!("rdl{id}n{node}");
            assert!(ip(&format!("link add {near} type veth peer name v0 netns {name}")));
            assert!(ip(&format!("link set {near} master {bridge} up")));
            assert!(ip(&format!("-n {name} addr add {}/24 dev v0", network.address(node))));
            assert!(ip(&format!("-n {name} link set lo up")));
            assert!(ip(&format!("-n {name} link set v0 up")));
        }
        Some(network)
    }

    /// Where nodes reach this machine.
    pub fn host(&self) -> String {
        format!("{}.254", self.prefix)
    }

    /// Where others reach a node.
    pub fn address(&self, node: usize) -> String {
        format!("{}.{}", self.prefix, node + 1)
    }

    /// What runs a program where a node is.
    pub fn wrapper(&self, node: usize) -> [&str; 4] {
        ["ip", "netns", "exec", &self.namespaces[node]]
    }

    /// Cuts a node off, or no longer.
    pub fn cut(&self, node: usize, cut: Cut, is_cut: bool) {
        let name = &self.namespaces[node];
        let others = (0..self.namespaces.len()).filter(|other| *other != node);
        let dropped: Vec<String> = match cut {
            Cut::All => {
                let state = if is_cut { "down" } else { "up" };
                return assert!(ip(&format!("-n {name} link set v0 {state}")));
            }
            Cut::Nodes => others.map(|other| self.address(other)).collect(),
            Cut::Brokers => vec![self.host()],
        };
        let what = if is_cut { "add" } else { "del" };
        for address in dropped {
            assert!(ip(&format!("-n {name} route {what} blackhole {address}/32")));
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in &self.namespaces {
            ip(&format!("netns del {name}"));
        }
        ip(&format!("link del {}", self.bridge));
    }
}
