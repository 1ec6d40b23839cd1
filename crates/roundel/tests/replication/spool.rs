//! `ack = "spool"`: updates are acknowledged while the log is away and no node leads, or the cluster goes on in another log; their node is killed meanwhile, and all
//! arrive once and in order.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use testkit::{Kafka, free_port, http_get, wait_until};

use super::cluster::{are_all_well, are_well, figure, lead_half_each, node_over};
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

/// Pauses a node over a log in a directory, at a moment when it does not write there: one that is paused with the lock of a partition
/// keeps all others from writing to that partition.
pub fn pause(node: &Server, parent: &Path) {
    let _outage = Outage::begin(&parent.join("log"));
    node.signal(testkit::Signal::STOP);
}

/// A node over the log that these lines say, which acknowledges from its spool, and its port for HTTP.
fn spooling_over(parent: &Path, name: &str, log: &str) -> (Server, u16) {
    let log = format!("ack = 'spool'\nspool_bytes = '100 MB'\n{log}");
    let (mut server, http) = (node_over(parent, name, &log), free_port());
    server.more(&format!("[http]\nlisten = ['127.0.0.1:{http}']\n"));
    (server, http)
}

/// The same over a log in a directory.
fn spooling(parent: &Path, name: &str) -> (Server, u16) {
    spooling_over(parent, name, &format!("directory = '{}/log'\n", parent.display()))
}

/// What is sent, second by second, to all RRDs.
struct Feed {
    sent: Vec<Sent>,
    second: u64,
}

impl Feed {
    /// Makes all RRDs through `b`, and updates them through `a`.
    fn begin(a: &Server, b: &Server) -> Feed {
        wait_until("both to have everything", || are_well(a, &["a", "b"]) && are_well(b, &["a", "b"]));
        wait_until("each to lead its share", || {
            lead_half_each(a, ["a", "b"]) && lead_half_each(b, ["a", "b"])
        });
        for rrd in 0..RRDS {
            assert!(b.say(&format!("CREATE {} {}", name(rrd), definition(ROWS))).starts_with("0 "));
        }
        let sent = (0..RRDS).map(|rrd| Sent { rrd, seconds: vec![(BEGIN, true)] }).collect();
        let mut feed = Feed { sent, second: BEGIN };
        feed.send(a, 10);
        // What was written is flushed, so it is read.
        assert!(a.say(&format!("FLUSH {}", name(0))).starts_with("0 "));
        assert_eq!(a.say(&format!("LAST {}", name(0))), format!("0 {}", feed.second));
        feed
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

    /// Stops the nodes: both must have what Debian's rrdtool makes of all that was sent.
    fn judge(&self, parent: &Path, nodes: &mut [Server; 2]) {
        nodes.iter_mut().for_each(Server::stop);
        let files = export(nodes);
        let place = parent.join("expected");
        std::fs::create_dir(&place).unwrap();
        let mut verdict = Verdict::default();
        for sent in &self.sent {
            verdict.take(sent, ROWS, &files[sent.rrd], &place);
        }
        let acknowledged = (self.second - BEGIN) * RRDS as u64;
        assert_eq!(verdict, Verdict { acknowledged, ..Verdict::default() });
    }
}

#[test]
fn updates_are_acknowledged_while_the_log_is_away_and_arrive_once_and_in_order() {
    let parent = tempfile::tempdir().unwrap();
    let ((mut a, http), (mut b, other_http)) = (spooling(parent.path(), "a"), spooling(parent.path(), "b"));
    a.start();
    b.start();
    let mut feed = Feed::begin(&a, &b);
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
    // FLUSH waits for the updates of its RRD that are in the spool. FLUSHALL only begins.
    assert!(b.say(&format!("FLUSH {}", name(1))).starts_with("0 "));
    assert_eq!(b.say(&format!("LAST {}", name(1))), format!("0 {}", feed.second));
    assert!(b.say(&format!("UPDATE {} {}:1:1", name(0), BEGIN + 1)).starts_with("0 "), "it is acknowledged");
    wait_until("it to be refused", || figure(other_http, "spool_refused_total") == (1, 1));
    assert!(b.log().contains("is refused, and lost") && b.log().contains(&name(0)));
    assert!(http_get(http, "/api/v1/status").unwrap().contains("200 OK"));

    let mut nodes = [a, b];
    feed.judge(parent.path(), &mut nodes);
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

/// All brokers are killed: the node goes on acknowledging, is killed, too, and drains when both are there again.
#[test]
fn updates_are_acknowledged_while_all_brokers_are_away() {
    let parent = tempfile::tempdir().unwrap();
    let Some(mut kafka) = Kafka::start(3, &[]) else { return };
    let brokers = kafka.addresses().replace(',', "', '");
    let log = format!("[cluster.kafka]\nbrokers = ['{brokers}']\ntopic = 'roundel'\n");
    let node = |name: &str| spooling_over(parent.path(), name, &log);
    let ((mut a, http), (mut b, _)) = (node("a"), node("b"));
    a.write_config();
    let config = a.path("roundel.toml").display().to_string();
    a.tool(&["cluster", "topic", "--config", &config, "--partitions", "8"]);
    a.start();
    b.start();
    let mut feed = Feed::begin(&a, &b);

    (1..=3).for_each(|number| kafka.kill(number));
    feed.send(&a, 40);
    // Long enough for what is on its way to be given up.
    wait_until("updates that are old", || figure(http, "spool_oldest_seconds").0 >= 8);
    feed.send(&a, 40);
    let waiting = figure(http, "spool_bytes").0;
    assert!(waiting > 0 && figure(http, "spool_oldest_seconds").0 >= 8, "{waiting} bytes wait");
    a.kill();
    kafka.restart_all().unwrap();
    a.start();
    feed.send(&a, 10);
    wait_until("everything to be drained", || figure(http, "spool_bytes") == (0, 1));
    assert_eq!(figure(http, "spool_refused_total"), (0, 1));
    wait_until("both to have everything", || are_well(&a, &["a", "b"]) && are_well(&b, &["a", "b"]));
    feed.judge(parent.path(), &mut [a, b]);
}

/// The cluster is divided while updates come and wait: those go to the partitions that their names have then.
#[test]
fn what_waits_in_a_spool_finds_its_partition_after_a_split() {
    let parent = tempfile::tempdir().unwrap();
    let ((mut a, http), (mut b, _)) = (spooling(parent.path(), "a"), spooling(parent.path(), "b"));
    a.start();
    b.start();
    let mut feed = Feed::begin(&a, &b);
    let [config, next] = ["roundel.toml", "next.toml"].map(|name| a.path(name));
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&next, text.replace("/log'", "/next'")).unwrap();
    let [config, next] = [config, next].map(|path| path.display().to_string());
    a.tool(&["cluster", "topic", "--config", &next, "--partitions", "24"]);

    let outage = Outage::begin(&parent.path().join("log"));
    feed.send(&a, 30);
    assert!(figure(http, "spool_bytes").0 > 0, "it waits");
    drop(outage);
    std::thread::scope(|scope| {
        let split = scope.spawn(|| b.tool(&["cluster", "split", "--config", &config, "--next", &next]));
        while !split.is_finished() {
            // No more than there are rows.
            feed.send(&a, u64::from(feed.second < BEGIN + ROWS / 2));
            std::thread::sleep(Duration::from_millis(100));
        }
        assert!(split.join().unwrap().contains("with 24 partitions. Give each node"));
    });
    feed.send(&a, 20);
    assert!(figure(http, "spool_bytes").0 > 0, "what is sealed takes nothing");
    a.kill();
    b.stop();
    for node in [&mut a, &mut b] {
        node.set_log("/log'", "/next'");
        node.start();
    }
    wait_until("everything to be drained", || figure(http, "spool_bytes") == (0, 1));
    assert_eq!(figure(http, "spool_refused_total"), (0, 1));
    feed.send(&a, 10);
    wait_until("everything to be drained again", || figure(http, "spool_bytes") == (0, 1));
    wait_until("both to have everything", || are_all_well(&a, &["a", "b"], 24));
    feed.judge(parent.path(), &mut [a, b]);
}
