//! Debian's Cacti: installed three times, with Debian's rrdtool on files, with ours on placeholders, and with Debian's in a mounted store, all with the
//! same readings at the same times.
//!
//! Its clock stands still (libfaketime), so that all make the same RRDs. The value that its scripts return is in a file of the test's.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::{Kind, peer, wait_until};

use super::database::Database;
use super::mounting::{Mount, can_mount};
use super::snmpd::Snmpd;
use super::{our_tools, output, rrds, same_rrds};

/// The first poll.
const START: i64 = 1_700_000_400;
/// Cacti's step.
const STEP: i64 = 300;
/// What its scripts do instead of asking this host.
const SCRIPTS: [(&str, &str); 4] = [
    ("unix_processes.pl", "print 100 + 7 * $n"),
    ("unix_users.pl", "print $n % 5"),
    ("loadavg_multi.pl", r#"printf "1min:%.2f 5min:%.2f 10min:%.2f", $n / 3, $n / 7, $n / 9"#),
    ("linux_memory.pl", "print 123456789 * $n + length($ARGV[0])"),
];
/// Draws a graph or prints its numbers, as Cacti's pages do.
const GRAPH: &str = r"<?php
require(__DIR__ . '/../site/include/cli_check.php');
require_once($config['base_path'] . '/lib/rrd.php');
$range = array('graph_start' => $argv[2], 'graph_end' => $argv[3]);
$meta = array();
print $argv[1] == 'draw'
    ? rrdtool_function_graph($argv[4], 0, $range + array('output_flag' => RRDTOOL_OUTPUT_STDOUT))
    : json_encode(rrdtool_function_xport($argv[4], 0, $range + array('export_csv' => true), $meta));
";
/// Removes a data source or a device, as Cacti's pages do. (Its `remove_device.php` does not find devices without a template.)
const REMOVE: &str = r"<?php
require(__DIR__ . '/../site/include/cli_check.php');
foreach (array('api_data_source', 'api_device', 'api_graph', 'data_query', 'poller', 'utility') as $name) {
    require_once($config['base_path'] . '/lib/' . $name . '.php');
}
$argv[1] == 'device' ? api_device_remove_multi(array($argv[2])) : api_data_source_remove($argv[2]);
";

/// An installation of its own: a copy of Debian's, with its RRDs in `rra`.
struct Cacti<'a> {
    root: PathBuf,
    name: &'static str,
    database: &'a Database,
    /// Where the program `rrdtool` is.
    tools: PathBuf,
    rra: PathBuf,
}

impl<'a> Cacti<'a> {
    /// Copies what Debian's package has, and installs it unattended.
    fn install(
        root: &Path,
        name: &'static str,
        database: &'a Database,
        tools: PathBuf,
        rra: PathBuf,
    ) -> Self {
        let cacti = Cacti { root: root.join(name), name, database, tools, rra };
        let share = cacti.root.join("share");
        fs::create_dir_all(&share).unwrap();
        fs::create_dir(cacti.temporary()).unwrap();
        // Links in it lead to what lies beside it.
        for entry in fs::read_dir("/usr/share").unwrap().map(Result::unwrap) {
            if entry.file_name() != "cacti" {
                symlink(entry.path(), share.join(entry.file_name())).unwrap();
            }
        }
        output(Command::new("cp").args(["-a", "/usr/share/cacti"]).arg(&share));
        let site = cacti.site();
        for link in ["cache", "log", "rra", "include/config.php"] {
            fs::remove_file(site.join(link)).unwrap();
        }
        for part in ["boost", "mibcache", "realtime", "spikekill"] {
            fs::create_dir_all(site.join("cache").join(part)).unwrap();
        }
        symlink(&cacti.rra, site.join("rra")).unwrap();
        fs::create_dir(site.join("log")).unwrap();
        fs::write(site.join("log/cacti.log"), "").unwrap();
        cacti.configure();
        cacti.database.create(name, &cacti.root.join("share/cacti/conf_templates/cacti.sql"));
        let rrdtool = format!("--path=rrdtool:{}", cacti.tools.join("rrdtool").display());
        // It waits for its clock to go on.
        let install =
            cacti.command("cli", &format!("install_cacti.php --accept-eula --install --force {rrdtool}"));
        let said = String::from_utf8_lossy(&cacti.run(install)).into_owned();
        assert!(said.contains("Installation has now completed"), "{said}");
        cacti.write_scripts();
        cacti
    }

    /// Directory of the sessions that PHP leaves.
    fn temporary(&self) -> PathBuf {
        self.root.join("tmp")
    }

    fn site(&self) -> PathBuf {
        self.root.join("share/cacti/site")
    }

    fn configure(&self) {
        let (name, port, root) = (self.name, self.database.port, self.root.display());
        let config = format!(
            "<?php\n$database_type = 'mysql'; $database_default = '{name}'; $database_hostname = '127.0.0.1'; $database_username = 'cacti';\n\
             $database_password = 'cacti'; $database_port = '{port}'; $database_retries = 5; $database_ssl = false; $database_ssl_key = '';\n\
             $database_ssl_cert = ''; $database_ssl_ca = ''; $database_persist = false; $poller_id = 1; $url_path = '/cacti/';\n\
             $cacti_session_name = 'Cacti'; $cacti_db_session = false; $disable_log_rotation = true; $path_csrf_secret = '{root}/secret.php';\n"
        );
        fs::write(self.site().join("include/config.php"), config).unwrap();
        let spine = format!(
            "DB_Host 127.0.0.1\nDB_Database {name}\nDB_User cacti\nDB_Pass cacti\nDB_Port {port}\nPoller 1\n"
        );
        fs::write(self.root.join("spine.conf"), spine).unwrap();
    }

    /// Replaces what asks this host; the installation unpacks its own.
    fn write_scripts(&self) {
        let value = self.root.join("value");
        fs::write(&value, "0").unwrap();
        for (script, does) in SCRIPTS {
            let text = format!("open(F, '{}'); $n = <F>; {does};\n", value.display());
            fs::write(self.site().join("scripts").join(script), text).unwrap();
        }
        for (name, text) in [("t_graph.php", GRAPH), ("t_remove.php", REMOVE)] {
            fs::write(self.root.join("share/cacti/cli").join(name), text).unwrap();
        }
    }

    fn sql(&self, statements: &str) -> String {
        self.database.run(self.name, statements)
    }

    fn set(&self, settings: &[(&str, &str)]) {
        for (name, value) in settings {
            self.sql(&format!("replace into settings values ('{name}', '{value}')"));
        }
    }

    /// Runs one of Cacti's programs after so many steps, and waits for the processes that it leaves in the background.
    fn php(&self, steps: i64, directory: &str, words: &str) -> Vec<u8> {
        let now = START + steps * STEP;
        self.database.set_time(now);
        let mut command = self.command(directory, words);
        command
            .env("LD_PRELOAD", testkit::faketime())
            .env("FAKETIME_FMT", "%s")
            .env("FAKETIME", now.to_string());
        self.run(command)
    }

    fn command(&self, directory: &str, words: &str) -> Command {
        let path = format!("{}:{}", self.tools.display(), std::env::var("PATH").unwrap());
        // A program that hangs ends before its test must. On a machine with much other work, the installer takes minutes.
        let mut command = Command::new("timeout");
        command
            .args(["1200", "php", "-q"])
            .args(words.split(' '))
            .current_dir(self.root.join("share/cacti").join(directory));
        command.env("TMPDIR", self.temporary());
        command.env("TZ", "UTC").env("PATH", path).env_remove("RRDCACHED_ADDRESS").env("MIBS", "");
        command
    }

    fn run(&self, mut command: Command) -> Vec<u8> {
        let done = command.output().unwrap();
        let text = String::from_utf8_lossy(&done.stderr);
        assert!(
            done.status.success(),
            "{command:?}: {text}{}\n{}",
            String::from_utf8_lossy(&done.stdout),
            self.log()
        );
        self.wait_for_processes();
        done.stdout
    }

    fn cli(&self, steps: i64, words: &str) -> String {
        String::from_utf8_lossy(&self.php(steps, "cli", words)).into_owned()
    }

    fn wait_for_processes(&self) {
        let site = self.site().display().to_string();
        let is_ours = |directory: fs::DirEntry| {
            let line = fs::read(directory.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&site)
        };
        wait_until("Cacti's processes to end", || {
            !fs::read_dir("/proc").unwrap().map_while(Result::ok).any(is_ours)
        });
    }

    /// Polls all devices once, with this value of its scripts.
    fn poll(&self, steps: i64) {
        fs::write(self.root.join("value"), steps.to_string()).unwrap();
        self.php(steps, "site", "poller.php --force");
    }

    fn log(&self) -> String {
        let log = fs::read_to_string(self.site().join("log/cacti.log")).unwrap();
        log + &fs::read_to_string(self.site().join("log/cacti_stderr.log")).unwrap_or_default()
    }

    /// The lines of its log that are complaints, without times, process numbers and places, and how often each is there.
    fn complaints(&self) -> BTreeMap<String, usize> {
        let mut complaints = BTreeMap::new();
        let log = self.log();
        let (root, rra) = (self.root.display().to_string(), self.rra.display().to_string());
        for line in log
            .lines()
            .filter(|line| ["ERROR", "WARN", "FATAL", "error:"].iter().any(|word| line.contains(word)))
        {
            let text =
                line.split_once(" - ").map_or(line, |(_, text)| text).replace(&rra, "").replace(&root, "");
            let text: String = text.chars().filter(|sign| !sign.is_ascii_digit()).collect();
            *complaints.entry(text).or_default() += 1;
        }
        complaints
    }
}

/// Installations that get the same commands: on files, on placeholders, and in a mount where this machine can.
struct Sides<'a>(Vec<Cacti<'a>>);

impl Sides<'_> {
    fn each(&self, does: impl Fn(&Cacti<'_>)) {
        self.0.iter().for_each(does);
    }

    /// The one on placeholders.
    fn ours(&self) -> &Cacti<'_> {
        &self.0[1]
    }

    /// All have the same RRDs with the same content, and complain of the same.
    fn check(&self, count: usize, what: &str) {
        let debian = &self.0[0];
        for other in &self.0[1..] {
            let at = format!("{what}, {}", other.name);
            // Shown if the test fails.
            eprintln!("=== {at}: the logs of both\n{}\n=== {}\n{}", debian.log(), other.name, other.log());
            assert_eq!(same_rrds(&debian.rra, &other.rra, &other.tools), count, "{at}");
            assert_eq!(other.complaints(), debian.complaints(), "{at}");
        }
        for name in rrds(&self.ours().rra) {
            let begins = fs::read(self.ours().rra.join(&name)).unwrap();
            assert!(begins.starts_with(b"ROUNDELP"), "{what}: {name} is no placeholder");
        }
    }

    /// Numbers and pictures of a graph.
    fn same_graph(&self, steps: i64, graph: &str) {
        let range = format!("{START} {} {graph}", START + steps * STEP);
        let exported = |cacti: &Cacti<'_>| cacti.cli(steps, &format!("t_graph.php export {range}"));
        let drawn = |cacti: &Cacti<'_>| cacti.php(steps, "cli", &format!("t_graph.php draw {range}"));
        let (want, picture) = (exported(&self.0[0]), drawn(&self.0[0]));
        assert!(want.contains("e+0"), "{want}");
        assert!(picture.starts_with(b"\x89PNG"), "{graph}");
        for other in &self.0[1..] {
            assert_eq!(exported(other), want, "{}", other.name);
            // Up to the end of width and height.
            assert!(drawn(other)[..24] == picture[..24], "{graph}, {}", other.name);
        }
    }
}

/// snmpd with these octets in and out of its first interface.
fn snmpd(root: &Path, port: Option<u16>, octets: i64) -> Snmpd {
    let lines = format!(
        "override .1.3.6.1.2.1.2.2.1.10.1 counter {octets}\noverride .1.3.6.1.2.1.2.2.1.16.1 counter {}\n",
        3 * octets
    );
    Snmpd::start(root, &lines, port)
}

/// Two devices: this host by scripts, and an interface by SNMP.
fn add_devices(cacti: &Cacti<'_>, spine: &Path, port: u16) {
    cacti.set(&[
        ("path_cactilog", &cacti.site().join("log/cacti.log").display().to_string()),
        ("path_spine", spine.to_str().unwrap()),
        ("path_spine_config", &cacti.root.join("spine.conf").display().to_string()),
        ("poller_type", "1"),
        ("cron_interval", "300"),
        ("log_verbosity", "3"),
        ("spikekill_backupdir", &cacti.rra.join("kept").display().to_string()),
    ]);
    fs::create_dir(cacti.rra.join("kept")).unwrap();
    cacti.sql("update automation_networks set enabled = ''");
    cacti.cli(0, "add_device.php --description=local --ip=127.0.0.1 --template=7 --avail=none --version=0");
    cacti.cli(
        0,
        &format!("add_device.php --description=router --ip=127.0.0.1 --template=0 --version=2 --community=public --port={port} --avail=none --proxy"),
    );
    cacti.cli(0, "add_data_query.php --host-id=2 --data-query-id=4 --reindex-method=0");
    let added = cacti.cli(
        0,
        "add_graphs.php --host-id=2 --graph-type=ds --graph-template-id=43 --snmp-query-id=4 --snmp-query-type-id=15 --snmp-field=ifDescr --snmp-value=lo",
    );
    assert!(added.contains("Graph Added"), "{added}");
}

#[test]
fn cacti_does_on_placeholders_and_in_a_mount_what_it_does_on_files() {
    let (Some(_), Some(_), Some(spine)) = (
        peer::debian("cacti", "/usr/share/cacti/site"),
        peer::debian("mariadb-server-core", "/usr/sbin/mariadbd"),
        peer::spine(),
    ) else {
        return;
    };
    let directory = tempfile::Builder::new().prefix("cacti-").tempdir().unwrap();
    let root = directory.path();
    let database = Database::start(root);
    let mut daemon = testkit::daemon!(Kind::Stripes, &root.join("daemon"));
    daemon.start();
    let plain = root.join("plain");
    fs::create_dir(&plain).unwrap();
    // Its Cacti needs nothing of ours.
    let mut below = testkit::daemon!(Kind::Stripes, &root.join("daemon_of_mount"));
    below.start();
    // removespikes.php writes XML into its backup directory.
    let extra = root.join("extra");
    fs::create_dir(&extra).unwrap();
    let mount = can_mount().then(|| Mount::of(&below, &format!("extra={}", extra.display())));
    let mut sides = Sides(vec![
        Cacti::install(root, "debian", &database, "/usr/bin".into(), plain),
        Cacti::install(root, "ours", &database, our_tools(root), daemon.base()),
    ]);
    if let Some(mount) = &mount {
        sides.0.push(Cacti::install(root, "in_mount", &database, "/usr/bin".into(), mount.directory.clone()));
    }
    let mut agent = Some(snmpd(root, None, 1000));
    let port = agent.as_ref().map_or(0, |agent| agent.port);
    sides.each(|cacti| add_devices(cacti, &spine, port));
    let mut polled = 0;
    let mut poll = |times: i64| {
        for _ in 0..times {
            polled += 1;
            agent = None;
            agent = Some(snmpd(root, Some(port), 1000 * polled * polled));
            sides.each(|cacti| cacti.poll(polled));
        }
        polled
    };
    poll(3);
    sides.check(6, "cmd.php");
    sides.each(|cacti| cacti.set(&[("poller_type", "2")]));
    let now = poll(3);
    sides.check(6, "spine");
    sides.same_graph(now, "2");
    boost(&sides, &mut poll);
    let now = poll(1);
    maintenance(&sides, now);
    // The daemon dies and comes back between two polls.
    daemon.kill();
    daemon.start();
    below.kill();
    below.start();
    let now = poll(2);
    sides.each(|cacti| drop(cacti.php(now, "site", "poller_boost.php --force")));
    sides.check(6, "after a restart");
    sides.same_graph(now, "2");
    removal(&sides, now, &mut poll);
}

/// Values wait in the database; then paths get a directory for each device.
fn boost(sides: &Sides<'_>, poll: &mut impl FnMut(i64) -> i64) {
    sides.each(|cacti| {
        cacti.set(&[
            ("boost_rrd_update_enable", "on"),
            ("boost_rrd_update_system_enable", "on"),
            ("boost_rrd_update_interval", "120"),
        ]);
    });
    let now = poll(3);
    sides.each(|cacti| drop(cacti.php(now, "site", "poller_boost.php --force")));
    sides.check(6, "boost");
    sides.same_graph(now, "2");
    // Values of a graph that is looked at are written first.
    let now = poll(1);
    sides.same_graph(now, "2");
    sides.each(|cacti| {
        let said = cacti.cli(now, "structure_rra_paths.php --proceed");
        assert!(said.contains("Renamed:6 Skipped:0 Warnings:0"), "{said}");
    });
    assert!(rrds(&sides.ours().rra).contains(&"./2/6.rrd".to_string()), "{:?}", rrds(&sides.ours().rra));
    let now = poll(2);
    sides.each(|cacti| drop(cacti.php(now, "site", "poller_boost.php --force")));
    sides.check(6, "structured paths");
}

/// What an administrator does to RRDs by Cacti's command line.
fn maintenance(sides: &Sides<'_>, now: i64) {
    sides.each(|cacti| {
        drop(cacti.php(now, "site", "poller_boost.php --force"));
        let said = cacti.cli(now, "update_heartbeat.php --new-heartbeat=900 --prev-heartbeat=600 --force");
        assert!(said.contains("Processed a Total of 6 RRDfiles"), "{said}");
    });
    sides.check(6, "update_heartbeat.php");
    sides.each(|cacti| {
        let file = cacti.rra.join("1/1.rrd");
        let said = cacti.cli(
            now,
            &format!(
                "removespikes.php --rrdfile={} --method=stddev --stddev=1 --number=2 --avgnan=avg",
                file.display()
            ),
        );
        assert!(said.contains("Spikes Found and Remediated"), "{said}");
        let [file, copy] = ["1/4.rrd", "1/copy.rrd"].map(|name| cacti.rra.join(name));
        fs::copy(&file, &copy).unwrap();
        let (new, old) = (file.display(), copy.display());
        cacti.cli(now, &format!("splice_rrd.php --oldrrd={old} --newrrd={new} --finrrd={new} --overwrite"));
        fs::remove_file(copy).unwrap();
    });
    let kept = rrds(&sides.ours().rra).iter().filter(|name| name.starts_with("./kept")).count();
    sides.each(|cacti| drop(fs::remove_dir_all(cacti.rra.join("kept"))));
    assert_eq!(kept, 1, "the copy that removespikes.php keeps");
    sides.check(6, "removespikes.php, splice_rrd.php");
    // A data source gets another file, which the administrator moves.
    sides.each(|cacti| {
        fs::rename(cacti.rra.join("1/3.rrd"), cacti.rra.join("1/people.rrd")).unwrap();
        let path = cacti.site().join("rra/1/people.rrd");
        cacti.sql("update data_template_data set data_source_path = '<path_rra>/1/people.rrd' where local_data_id = 3");
        cacti.sql(&format!("update poller_item set rrd_path = '{}' where local_data_id = 3", path.display()));
    });
}

/// Data sources are removed, and their RRDs by the RRD cleaner: one deleted, one archived; then a device as a whole.
fn removal(sides: &Sides<'_>, now: i64, poll: &mut impl FnMut(i64) -> i64) {
    sides.each(|cacti| {
        for (id, action) in [(4, 1), (5, 3)] {
            cacti.cli(now, &format!("t_remove.php source {id}"));
            cacti.sql(&format!("insert into data_source_purge_action (name, local_data_id, action) values ('1/{id}.rrd', {id}, {action})"));
        }
        drop(cacti.php(now, "site", "poller_maintenance.php --force"));
    });
    sides.check(5, "the RRD cleaner");
    let names = rrds(&sides.ours().rra);
    assert_eq!(names, ["./1/1.rrd", "./1/2.rrd", "./1/people.rrd", "./2/6.rrd", "./archive/1/5.rrd"]);
    sides.each(|cacti| {
        cacti.cli(now, "t_remove.php device 2");
        fs::remove_dir_all(cacti.rra.join("2")).unwrap();
    });
    let now = poll(2);
    sides.each(|cacti| drop(cacti.php(now, "site", "poller_boost.php --force")));
    sides.check(4, "a device is removed");
}
