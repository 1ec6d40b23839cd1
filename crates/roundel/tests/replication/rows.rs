//! `roundel cluster verify`: what all nodes have, compared row by row.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use store::disk::real::RealDisk;
use store::engine::Engine;
use store::name::RrdName;
use store::replication::{Mark, Replica};
use store::stripes::{Options, ShardOptions, Stripes};
use testkit::{free_port, wait_until};

use super::cluster::are_well;
use super::server::{CREATE, Server};

/// RRDs of one directory, which are more than are hashed at once.
const MANY: usize = 600;
/// The RRD of which one node gets another row.
const FLIPPED: &str = "single/flipped.rrd";

fn node(parent: &Path, name: &str) -> Server {
    std::fs::write(parent.join("secret"), "a secret of the cluster in this test\n").unwrap();
    let (port, parent_path) = (free_port(), parent.display());
    let section = format!(
        "[cluster]\nname = 'test'\nnode = '{name}'\nzone = 'zone-{name}'\nlisten = '127.0.0.1:{port}'\nreplication = 3\n\
         secret_file = '{parent_path}/secret'\nack_timeout = '30s'\ndirectory = '{parent_path}/log'\n"
    );
    Server::node(parent, name, &section)
}

/// What `roundel cluster verify` says, with what it says of failures; and its exit status.
fn verify(server: &Server, options: &[&str]) -> (String, bool) {
    let output = Command::new(env!("CARGO_BIN_EXE_roundel"))
        .args([&["cluster", "verify"], options].concat())
        .args(["--daemon", &format!("unix:{}", server.path("sock").display())])
        .output()
        .unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (said, output.status.success())
}

/// The directory of the partition that has an RRD in its log.
fn partition_of(server: &Server, name: &str) -> PathBuf {
    let has = |path: &PathBuf| {
        let logs = path.join("shard-000").read_dir().into_iter().flatten();
        let logs = logs.map(|entry| entry.unwrap().path());
        let mut logs = logs.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("log-"));
        logs.any(|log| std::fs::read(log).unwrap().windows(name.len()).any(|bytes| bytes == name.as_bytes()))
    };
    let entries = server.store().read_dir().unwrap().map(|entry| entry.unwrap().path());
    entries.filter(has).find(|path| path.join("REPLICATED").exists()).expect("a partition")
}

fn mark(partition: &Path) -> Mark {
    Mark::load(&RealDisk::create(partition).unwrap()).unwrap().unwrap()
}

/// Makes a copy of a partition's store that has another value in one row, and nothing else: a log of the same length up to the same place. False: it cannot
/// be made of these two moments, because something else was written between them.
fn flip(partition: &Path, copy: &Path, before: &Mark, after: &Mark, values: &str) -> bool {
    let _ = std::fs::remove_dir_all(copy);
    assert!(Command::new("cp").arg("-r").args([partition, copy]).status().unwrap().success());
    let disk = Arc::new(RealDisk::create(copy).unwrap());
    let shard = ShardOptions { log_end: Some(before.end), ..ShardOptions::default() };
    let options = Options { shard, directory: Some(copy.to_owned()), ..Options::default() };
    let store = Stripes::open(disk.clone(), &options).unwrap();
    store.updatev(&RrdName::new(FLIPPED.as_bytes()).unwrap(), values.as_bytes()).unwrap();
    let end = store.moment()[0];
    store.stop().unwrap();
    drop(store);
    after.store(&*disk).unwrap();
    end == after.end
}

/// Has the stopped node `b` begin with a store in which one row differs, while the heads are the same.
fn start_with_another_row(a: &Server, b: &mut Server, others: &[&str]) -> PathBuf {
    b.stop();
    let partition = partition_of(b, FLIPPED);
    let copy = partition.with_extension("flipped");
    for attempt in 0..10 {
        let (before, time) = (mark(&partition), 1_000_000_100 + attempt * 10);
        b.start();
        wait_until("it to be there", || are_well(a, others));
        // Five steps later, so that the head keeps nothing of the value: after fewer, it has it as the secondary value.
        let update = |value| format!("{time}:{value} {}:5", time + 5);
        let updated = a.client().ask(&format!("UPDATEV {FLIPPED} {}", update(111))).unwrap();
        assert!(updated.status > 0, "{updated:?}");
        wait_until("the update", || {
            let end = b.client().ask(&format!("DUMP {FLIPPED}"));
            end.is_ok_and(|dump| dump.lines.iter().any(|line| line.contains("1.1100000000e+02")))
        });
        b.stop();
        let after = mark(&partition);
        if after.end > before.end && flip(&partition, &copy, &before, &after, &update(112)) {
            std::fs::remove_dir_all(&partition).unwrap();
            std::fs::rename(&copy, &partition).unwrap();
            b.start();
            wait_until("it to be there again", || are_well(a, others));
            return partition;
        }
    }
    panic!("no two moments with only the update between them");
}

#[test]
fn a_row_that_one_node_has_otherwise_is_found_and_its_replica_made_again() {
    let parent = tempfile::tempdir().unwrap();
    let mut nodes = ["a", "b", "c"].map(|name| node(parent.path(), name));
    let all = ["a", "b", "c"];
    nodes.iter_mut().for_each(Server::start);
    let [a, b, c] = &mut nodes;
    wait_until("all to have everything", || are_well(a, &all) && are_well(b, &all) && are_well(c, &all));
    let mut client = a.client();
    let names = (0..MANY).map(|number| format!("many/{number}.rrd")).chain([FLIPPED.to_owned()]);
    for name in names {
        assert_eq!(client.ask(&format!("CREATE {name} {CREATE}")).unwrap().status, 0, "{name}");
    }
    // Equal replicas are equal, while they are updated.
    let stop = AtomicBool::new(false);
    let (said, is_well) = std::thread::scope(|scope| {
        let updates = scope.spawn(|| {
            let (mut client, mut second) = (c.client(), 1_000_000_000);
            while !stop.load(Ordering::Relaxed) {
                second += 1;
                let lines: Vec<String> =
                    (0..MANY).map(|number| format!("UPDATE many/{number}.rrd {second}:{number}")).collect();
                assert_eq!(client.batch(&lines).unwrap().status, 0);
            }
        });
        let said = verify(a, &[]);
        stop.store(true, Ordering::Relaxed);
        updates.join().unwrap();
        said
    });
    let same =
        format!("8 partitions, {} RRDs, {} rows: all replicas are the same", MANY + 1, (MANY + 1) * 2000);
    assert!(is_well && said.contains(&same) && said.contains("; a equal; b equal; c equal"), "{said}");

    let partition = start_with_another_row(a, b, &all);
    let number = partition.file_name().unwrap().to_string_lossy().rsplit_once('-').unwrap().1.to_owned();
    let number = number.trim_start_matches('0');
    let number = if number.is_empty() { "0" } else { number };
    let (said, is_well) = verify(c, &["--keep", "--partition", number]);
    assert!(!is_well && said.contains("b differs in 1 RRDs, and is kept: it was not asked for"), "{said}");
    let (said, is_well) = verify(c, &[]);
    assert!(!is_well && said.contains(&format!("  {FLIPPED} differs on b\n")), "{said}");
    assert!(
        said.contains("; a equal; b differs in 1 RRDs, and is put aside and made again; c equal"),
        "{said}"
    );
    assert!(said.contains("of 8 partitions, 1 have replicas that differ or could not be compared"), "{said}");
    assert!(
        partition
            .with_file_name(format!("{}.differs-1", partition.file_name().unwrap().to_string_lossy()))
            .exists()
    );
    wait_until("it to be made again", || are_well(a, &all));
    let (said, is_well) = verify(b, &[]);
    assert!(is_well && said.contains(&same), "{said}");

    // A node that is not there is no equal one.
    c.kill();
    wait_until("the others to lead everything", || are_well(a, &["a", "b"]));
    let (said, is_well) = verify(a, &["--partition", "0"]);
    assert!(!is_well && said.contains("; a equal; b equal; c not compared: the node is silent"), "{said}");
    let (said, is_well) = verify(a, &["--partition", "8"]);
    assert!(!is_well && said.contains("there are partitions 0 to 7"), "{said}");
}
