//! munin-update and munin-graph over a real munin-node on loopback with a plugin of the test's own.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::{Running, free_port};

use crate::support::{Place, Way, alike, succeeded, write_program};

/// Has munin-node find its plugins and its state elsewhere than in the system: `perl -MElsewhere=DIRECTORY`.
const ELSEWHERE: &str = "package Elsewhere;
use Munin::Common::Defaults;
sub import {
    my ($self, $directory) = @_;
    $Munin::Common::Defaults::MUNIN_CONFDIR = $directory;
    $Munin::Common::Defaults::MUNIN_PLUGSTATE = \"$directory/state\";
    $Munin::Common::Defaults::MUNIN_PLUGINUSER = (getpwuid $>)[0];
    $Munin::Common::Defaults::MUNIN_GROUP = (getgrgid $))[0];
}
1;
";
/// The user for the programs when the test runs as root, which munin refuses: the system's unprivileged user.
const NOBODY: &str = "65534";

/// The command that runs a program as another user than root.
fn nobody(program: &str) -> Vec<String> {
    let root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let setpriv = ["/usr/bin/setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"];
    let before = if root { &setpriv[..] } else { &[] };
    before.iter().copied().chain([program]).map(str::to_string).collect()
}

/// Lets anyone into a directory.
fn open_up(directory: &Path) {
    fs::create_dir_all(directory).unwrap();
    fs::set_permissions(directory, fs::Permissions::from_mode(0o777)).unwrap();
}

/// A node with a plugin that has a counter of the test's own and a gauge.
struct Node {
    port: u16,
    counter: PathBuf,
    _process: Running,
}

impl Node {
    fn start(directory: &Path) -> Node {
        let (port, counter) = (free_port(), directory.join("counter"));
        for name in ["", "plugins", "plugin-conf.d", "state"] {
            open_up(&directory.join(name));
        }
        let plugin = format!(
            "#!/bin/sh\ncase \"$1\" in\nconfig) printf 'graph_title fixed\\ngraph_category test\\nin.label in\\n\
             in.type COUNTER\\nin.min 0\\nout.label out\\nout.max 100\\n';;\n\
             *) printf 'in.value %s\\nout.value 12.5\\n' \"$(cat {})\";;\nesac\n",
            counter.display()
        );
        let config = format!(
            "log_level 4\nlog_file {base}/node.log\npid_file {base}/node.pid\nbackground 0\nsetsid 0\n\
             host_name peer\nallow ^127\\.0\\.0\\.1$\nhost 127.0.0.1\nport {port}\n",
            base = directory.display()
        );
        write_program(&directory.join("plugins/fixed"), &plugin);
        fs::write(directory.join("munin-node.conf"), config).unwrap();
        fs::write(directory.join("Elsewhere.pm"), ELSEWHERE).unwrap();
        let words = nobody("/usr/bin/perl");
        let mut node = Command::new(&words[0]);
        node.args(&words[1..]).arg("-T").arg("-I").arg(directory);
        node.arg(format!("-MElsewhere={}", directory.display())).arg("/usr/sbin/munin-node");
        node.arg("--config").arg(directory.join("munin-node.conf"));
        let mut process = Running::start(&mut node, directory.join("said"));
        process.wait_for("munin-node", || TcpStream::connect(("127.0.0.1", port)).ok());
        Node { port, counter, _process: process }
    }
}

/// Runs one of the master's programs at a given time.
fn master(place: &Place, node: &Node, minute: u32, words: &[&str]) {
    for directory in [place.directory().to_path_buf(), place.rrds(), place.rrds().join("peer")] {
        open_up(&directory);
    }
    for name in ["html", "log", "run"] {
        open_up(&place.directory().join(name));
    }
    if place.way.has_store() {
        fs::set_permissions(place.address().trim_start_matches("unix:"), fs::Permissions::from_mode(0o666))
            .unwrap();
    }
    let text = format!(
        "dbdir {rrds}\nhtmldir {base}/html\nlogdir {base}/log\nrundir {base}/run\ntmpldir /etc/munin/templates\n\
         includedir {base}/none\nfork no\ngraph_strategy cron\n{daemon}\
         [peer]\n    address 127.0.0.1\n    port {port}\n    use_node_name no\n",
        rrds = place.rrds().display(),
        base = place.directory().display(),
        daemon = if place.way == Way::Daemon {
            format!("rrdcached_socket {}\n", place.address().trim_start_matches("unix:"))
        } else {
            String::new()
        },
        port = node.port,
    );
    let config = place.write("munin.conf", &text);
    let program = nobody(words[0]);
    let mut command = place.command_at(&format!("2001-09-09 01:{minute}:00"), &program[0]);
    command.args(&program[1..]).args(&words[1..]);
    succeeded(command.arg(format!("--config={}", config.display())));
}

fn update(place: &Place, node: &Node, minute: u32, counter: u64) {
    fs::write(&node.counter, counter.to_string()).unwrap();
    master(place, node, minute, &["/usr/share/munin/munin-update"]);
    let log = fs::read_to_string(place.directory().join("log/munin-update.log")).unwrap();
    // It tunes RRDs before it makes them.
    let errors = |line: &&str| line.contains("[WARN") || line.contains("[ERROR]") && !line.contains("Tuning");
    assert_eq!(log.lines().find(errors), None, "{:?}: {log}", place.way);
}

/// The sizes of the graphs.
fn graphs(place: &Place, node: &Node) -> Vec<Vec<u8>> {
    // munin-html leaves there which graphs to make.
    fs::write(place.rrds().join("graphs"), "/peer/peer/fixed-day.png\n/peer/peer/fixed-week.png\n").unwrap();
    master(place, node, 56, &["/usr/share/munin/munin-graph", "--cron"]);
    let log = fs::read_to_string(place.directory().join("log/munin-graph.log")).unwrap();
    assert!(!log.contains("[ERROR]") && !log.contains("[RRD ERROR]"), "{:?}: {log}", place.way);
    let sizes = ["day", "week"].map(|scale| {
        let path = place.directory().join(format!("html/peer/peer/fixed-{scale}.png"));
        let image =
            fs::read(&path).unwrap_or_else(|error| panic!("{:?} {path:?}: {error}\n{log}", place.way));
        // A PNG has its width and height after its first 16 bytes.
        image[..24].to_vec()
    });
    sizes.into()
}

#[test]
fn munin() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let first = |place: &Place| {
        update(place, &node, 40, 1_000);
        update(place, &node, 45, 4_000);
    };
    let more = |place: &Place| {
        update(place, &node, 50, 10_000);
        update(place, &node, 55, 11_000);
    };
    let places = alike(&Way::OURS, &[&first, &more]);
    let theirs = graphs(&places[0], &node);
    for place in &places[1..] {
        assert_eq!(graphs(place, &node), theirs, "{:?}", place.way);
    }
}
