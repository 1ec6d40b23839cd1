//! `ack = "spool"`: updates are acknowledged while the log is away and no node leads, their node is killed meanwhile, and all arrive once and in order.

use std::fs::File;
use std::path::Path;

use oracle::{free_port, http_get, wait_until};

use super::cluster::{are_well, figure, node_over};
use super::cluster_faults::export;
use super::cluster_faults::judge::Verdict;
use super::cluster_faults::load::{BEGIN, RRDS, Sent, definition, name, reading};
use super::server::Server;

/// Rows of the first archive: one for each second.
const ROWS: u64 = 300;

/// A log in a directory that answers no append: this process holds the locks of all its files.
pub struct Outage {
    _files: Vec<File>,
}

impl Outage {
    pub fn begin(log: &Path) -> Outage {
        let paths = log.read_dir().unwrap().map(|entry| entry.unwrap().path());
        let files = paths.filter(|path| path.to_string_lossy().contains("/partition-")).map(|path| {
            let file = File::options().read(true).write(true).open(path).unwrap();
            file.lock().unwrap();
            file
        });
        let files: Vec<File> = files.collect();
        assert_eq!(files.len(), 9);
        Outage { _files: files }
    }
}

/// A node that acknowledges from its spool, and its port for HTTP.
fn spooling(parent: &Path, name: &str) -> (Server, u16) {
    let log = format!("directory = '{}/log'\nack = 'spool'\nspool_bytes = '100 MB'\n", parent.display());
    let (mut server, http) = (node_over(parent, name, &log), free_port());
    server.more(&format!("[http]\nlisten = ['127.0.0.1:{http}']\n"));
    (server, http)
}

/// What is sent, second by second, to all RRDs.
struct Feed {
    sent: Vec<Sent>,
    second: u64,
}

impl Feed {
    fn new() -> Feed {
        let sent = (0..RRDS).map(|rrd| Sent { rrd, seconds: vec![(BEGIN, true)] }).collect();
        Feed { sent, second: BEGIN }
    }

    /// All must be acknowledged.
    fn send(&mut self, server: &Server, seconds: u64) {
        let mut client = server.client();
        for _ in 0..seconds {
            self.second += 1;
            let lines: Vec<String> =
                (0..RRDS).map(|rrd| format!("UPDATE {} {}", name(rrd), reading(self.second))).collect();
            let answer = client.batch(&lines).unwrap();
            assert!(answer.status == 0 && answer.lines.is_empty(), "{answer:?}");
            self.sent.iter_mut().for_each(|sent| sent.seconds.push((self.second, true)));
        }
    }
}

#[test]
fn updates_are_acknowledged_while_the_log_is_away_and_arrive_once_and_in_order() {
    let parent = tempfile::tempdir().unwrap();
    let ((mut a, http), (mut b, other_http)) = (spooling(parent.path(), "a"), spooling(parent.path(), "b"));
    a.start();
    b.start();
    wait_until("both to have everything", || are_well(&a, &["a", "b"]) && are_well(&b, &["a", "b"]));
    for rrd in 0..RRDS {
        assert!(b.say(&format!("CREATE {} {}", name(rrd), definition(ROWS))).starts_with("0 "));
    }
    let mut feed = Feed::new();
    feed.send(&a, 10);
    // What was written is flushed, so it is read.
    assert!(a.say(&format!("FLUSH {}", name(0))).starts_with("0 "));
    assert_eq!(a.say(&format!("LAST {}", name(0))), format!("0 {}", feed.second));

    let outage = Outage::begin(&parent.path().join("log"));
    b.kill();
    feed.send(&a, 40);
    assert!(figure(http, "spool_bytes").0 > 0, "it waits");
    let refused = a.say(&format!("TUNE {} -h level:100", name(1)));
    assert!(
        refused.starts_with("-1 ") && refused.contains("are still in the spool of this node"),
        "{refused}"
    );
    a.kill();
    a.start();
    wait_until("it to say that they wait still", || figure(http, "spool_bytes").0 > 0);
    feed.send(&a, 40);
    assert_eq!(
        (figure(http, "spooled_total").0, figure(http, "spool_drained_total").0),
        (40 * RRDS as u64, 0)
    );
    a.kill();
    a.start();
    drop(outage);
    b.start();
    wait_until("everything to be drained", || figure(http, "spool_bytes") == (0, 1));
    assert_eq!(figure(http, "spool_refused_total"), (0, 1));
    wait_until("both to have everything", || are_well(&a, &["a", "b"]) && are_well(&b, &["a", "b"]));

    // Through the other one, once it is there; and what a leader refuses at draining is counted.
    feed.send(&b, 10);
    assert!(b.say("FLUSHALL").starts_with("0 "));
    assert_eq!(b.say(&format!("LAST {}", name(1))), format!("0 {}", feed.second));
    assert!(b.say(&format!("UPDATE {} {}:1:1", name(0), BEGIN + 1)).starts_with("0 "), "it is acknowledged");
    wait_until("it to be refused", || figure(other_http, "spool_refused_total") == (1, 1));
    assert!(b.log().contains("is refused, and lost") && b.log().contains(&name(0)));
    assert!(http_get(http, "/api/v1/status").unwrap().contains("200 OK"));

    let mut nodes = [a, b];
    nodes.iter_mut().for_each(Server::stop);
    let files = export(&nodes);
    let place = parent.path().join("expected");
    std::fs::create_dir(&place).unwrap();
    let mut verdict = Verdict::default();
    for sent in &feed.sent {
        verdict.take(sent, ROWS, &files[sent.rrd], &place);
    }
    assert_eq!(verdict, Verdict { acknowledged: 100 * RRDS as u64, ..Verdict::default() });

    let [a, _] = nodes;
    refuses_to_leave_its_spool(parent.path(), a);
}

/// With `ack = "log"`, what waits in the spool would be overtaken.
fn refuses_to_leave_its_spool(parent: &Path, mut a: Server) {
    a.start();
    let outage = Outage::begin(&parent.join("log"));
    assert!(a.say(&format!("UPDATE {} {}", name(0), reading(BEGIN + ROWS))).starts_with("0 "));
    a.kill();
    drop(outage);
    let mut log = node_over(parent, "a", &format!("directory = '{}/log'\n", parent.display()));
    assert!(log.fails().contains("start with ack = \"spool\" until they are drained"), "{}", log.log());
}
