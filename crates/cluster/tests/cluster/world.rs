//! Nodes in one process, each with a listener and an engine; who leads what is what the test says.

use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use disk::RealDisk;
use roundel_cluster::engine::{ClusterEngine, ClusterOptions};
use roundel_cluster::handshake::Membership;
use roundel_cluster::routes::{NodeAddress, Route, Routes};
use roundel_cluster::serve::Listener;
use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::time::Timestamp;
use rrd::when::Step;
use store::engine::{CreateRequest, Engine, StoreError, UpdateBatch, UpdateFailure};
use store::name::RrdName;
use store::stripes::{Options, Stripes};

pub const SECRET: &[u8] = b"a secret of thirty-two bytes....";
pub const START: i64 = 1_700_000_000;

/// What all nodes know.
#[derive(Default)]
pub struct Map {
    pub addresses: Vec<NodeAddress>,
    /// For each partition, the node that leads it.
    pub leaders: Vec<Option<usize>>,
    /// For each partition, who else has it.
    pub followers: Vec<Vec<usize>>,
    /// For each node and partition, the store that it has.
    pub stores: Vec<Vec<Option<Arc<dyn Engine>>>>,
    /// The node whose stores have not caught up.
    pub old: Option<usize>,
    /// How old what stores answer may be that do not lead.
    pub late: Option<Duration>,
}

/// The routes of one node.
pub struct NodeRoutes {
    pub node: usize,
    pub map: Arc<Mutex<Map>>,
}

impl Routes for NodeRoutes {
    fn partition_count(&self) -> u32 {
        self.map.lock().unwrap().leaders.len() as u32
    }

    fn local(&self, partition: u32) -> Option<(Arc<dyn Engine>, bool)> {
        let map = self.map.lock().unwrap();
        let store = map.stores[self.node][partition as usize].clone()?;
        Some((store, map.leaders[partition as usize] == Some(self.node)))
    }

    fn is_current(&self, _partition: u32) -> bool {
        self.map.lock().unwrap().old != Some(self.node)
    }

    fn age(&self, partition: u32) -> Option<Duration> {
        let map = self.map.lock().unwrap();
        match map.leaders[partition as usize] == Some(self.node) {
            true => Some(Duration::ZERO),
            false => map.late,
        }
    }

    fn lead(&self, partition: u32) -> Option<(Arc<dyn Engine>, u32)> {
        self.local(partition).filter(|(_, leads)| *leads).map(|(store, _)| (store, 1))
    }

    fn route(&self, partition: u32) -> Route {
        let map = self.map.lock().unwrap();
        let leader = map.leaders[partition as usize];
        let address = |node: usize| map.addresses[node].clone();
        let followers = map.followers[partition as usize].iter().filter(|&&node| node != self.node);
        Route {
            leader: leader.filter(|&node| node != self.node).map(address),
            leads_here: leader == Some(self.node),
            followers: followers.map(|&node| address(node)).collect(),
        }
    }
}

/// A store on a disk, whose clock stands still.
pub fn stripes(directory: &Path) -> Stripes {
    let clock = Arc::new(|| Timestamp::new(START + 1_000_000, 0));
    let options = Options { shard_count: 1, clock, ..Options::default() };
    Stripes::open(Arc::new(RealDisk::create(directory).unwrap()), &options).unwrap()
}

/// A cluster.
pub struct World {
    pub map: Arc<Mutex<Map>>,
    pub engines: Vec<ClusterEngine>,
    pub listeners: Vec<Option<Listener>>,
    _directory: tempfile::TempDir,
}

pub fn options() -> ClusterOptions {
    ClusterOptions { clock: Arc::new(|| Timestamp::new(START + 1_000_000, 0)), ..ClusterOptions::default() }
}

impl World {
    /// Nodes that lead partitions by turns; the store of each partition is on its leader only.
    pub fn new(node_count: usize, partition_count: usize, options: &ClusterOptions) -> World {
        World::speaking(&vec![u8::MAX; node_count], partition_count, options)
    }

    /// The same, of nodes that speak no versions of the protocol after these.
    pub fn speaking(versions: &[u8], partition_count: usize, options: &ClusterOptions) -> World {
        let node_count = versions.len();
        let directory = tempfile::tempdir().unwrap();
        let mut map = Map::default();
        map.leaders = (0..partition_count).map(|partition| Some(partition % node_count)).collect();
        map.followers = vec![Vec::new(); partition_count];
        for node in 0..node_count {
            let open = |partition: usize| -> Option<Arc<dyn Engine>> {
                let path = directory.path().join(partition.to_string());
                (partition % node_count == node).then(|| Arc::new(stripes(&path)) as Arc<dyn Engine>)
            };
            map.stores.push((0..partition_count).map(open).collect());
        }
        let sockets: Vec<_> = (0..node_count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        for (node, socket) in sockets.iter().enumerate() {
            let address = socket.local_addr().unwrap().to_string();
            map.addresses.push(NodeAddress { name: format!("node {node}"), address });
        }
        let map = Arc::new(Mutex::new(map));
        let (mut engines, mut listeners) = (Vec::new(), Vec::new());
        for (node, socket) in sockets.into_iter().enumerate() {
            let routes = Arc::new(NodeRoutes { node, map: Arc::clone(&map) });
            let membership = member(node, SECRET).speaking(versions[node]);
            let listener = Listener::start(socket, membership.clone(), Arc::clone(&routes) as _).unwrap();
            listeners.push(Some(listener));
            engines.push(ClusterEngine::start(routes, membership, options.clone()).unwrap());
        }
        World { map, engines, listeners, _directory: directory }
    }

    /// Ends a node: nothing of it answers any more.
    pub fn kill(&mut self, node: usize) {
        self.listeners[node] = None;
    }

    /// Has a partition led by another node, which has all that the former leader had.
    pub fn lead(&self, partition: usize, node: usize) {
        let mut map = self.map.lock().unwrap();
        let store = map.stores.iter().find_map(|stores| stores[partition].clone());
        map.stores[node][partition] = store;
        map.leaders[partition] = Some(node);
    }
}

pub fn member(node: usize, secret: &[u8]) -> Membership {
    Membership::new("test", &format!("node {node}"), secret, None).unwrap()
}

pub fn name(text: &str) -> RrdName {
    RrdName::new(text.as_bytes()).unwrap()
}

pub fn create(engine: &dyn Engine, text: &str, args: &[&str], no_overwrite: bool) -> Result<(), StoreError> {
    let options = CreateOptions {
        step: Step { units: 10, units_per_second: 1 },
        limits: Limits::FILE,
        file_name: b"x",
    };
    let definition = parse_create(&options, args).unwrap();
    let (sender, receiver) = mpsc::channel();
    let request = CreateRequest { definition, start: START, no_overwrite };
    engine.create(name(text), request, Box::new(move |result| sender.send(result).unwrap()));
    receiver.recv_timeout(Duration::from_secs(60)).unwrap()
}

/// Sends updates and waits for what fails.
pub fn update(engine: &dyn Engine, lines: &[(String, String)]) -> Vec<UpdateFailure> {
    let mut batch = UpdateBatch::default();
    for (name, values) in lines {
        batch.push(name.as_bytes(), values.as_bytes());
    }
    let (sender, receiver) = mpsc::channel();
    engine.update(batch, Box::new(move |failures| sender.send(failures).unwrap()));
    receiver.recv_timeout(Duration::from_secs(60)).unwrap()
}
