//! Nodes of a cluster, with the daemon's own executable, over a log in a directory: killed, stopped, paused, emptied.

use std::path::Path;

use testkit::{Kafka, free_port, http_get, http_post_form, wait_until};

use super::server::{CREATE, Server};
use super::spool::pause;

/// RRDs of many directories, so of all partitions.
const DIRECTORIES: usize = 24;

/// A node over a log in a directory.
pub fn node(parent: &Path, name: &str) -> Server {
    node_over(parent, name, &format!("directory = '{}/log'\n", parent.display()))
}

/// A node over the log that these lines say.
pub fn node_over(parent: &Path, name: &str, log: &str) -> Server {
    std::fs::write(parent.join("secret"), "a secret of the cluster in this test\n").unwrap();
    let (port, parent_path) = (free_port(), parent.display());
    let section = format!(
        "[cluster]\nname = 'test'\nnode = '{name}'\nzone = 'zone-{name}'\nlisten = '127.0.0.1:{port}'\n\
         secret_file = '{parent_path}/secret'\nack_timeout = '30s'\n{log}"
    );
    Server::node(parent, name, &section)
}

fn name(number: usize) -> String {
    format!("host-{number}/value.rrd")
}

/// How many partitions have a leader, and all of `nodes` ready.
pub fn are_well(server: &Server, nodes: &[&str]) -> bool {
    are_all_well(server, nodes, 8)
}

/// The same, of so many partitions.
pub fn are_all_well(server: &Server, nodes: &[&str], count: usize) -> bool {
    let answer = server.client().ask("CLUSTER").unwrap();
    let partitions: Vec<&String> =
        answer.lines.iter().filter(|line| line.starts_with("partition ")).collect();
    let is_well = |line: &&String| {
        !line.contains(" leader - ") && nodes.iter().all(|node| line.contains(&format!(" {node}:ready")))
    };
    partitions.len() == count && partitions.iter().all(is_well)
}

fn create_all(server: &Server) {
    for number in 0..DIRECTORIES {
        assert!(server.say(&format!("CREATE {} {CREATE}", name(number))).starts_with("0 "));
    }
}

/// So many messages in one partition that a copy or a backup of it is less work than they are.
fn add_messages(server: &Server) {
    assert!(server.say(&format!("CREATE other/x.rrd {CREATE}")).starts_with("0 "));
    let mut client = server.client();
    for second in 1..1500 {
        client.ask(&format!("UPDATE other/x.rrd {}:{second}", 1_000_000_000 + second)).unwrap();
    }
}

/// Returns true once two nodes lead half of the partitions each. At first one node may lead more; after some heartbeats the other takes
/// its own partitions.
pub fn lead_half_each(server: &Server, nodes: [&str; 2]) -> bool {
    let answer = server.client().ask("CLUSTER").unwrap();
    nodes.iter().all(|node| {
        let leads = format!(" leader {node} ");
        answer.lines.iter().filter(|line| line.starts_with("partition ") && line.contains(&leads)).count()
            == 4
    })
}

/// Waits until a single node leads all partitions after its start of this number. `CLUSTER` alone would not do: until its first heartbeat,
/// the node reports the state of its previous process.
fn wait_until_leading(server: &Server, process: usize) {
    wait_until("a leader of everything", || {
        server.log().matches("this node leads the partition").count() >= 8 * process
            && are_well(server, &["a"])
    });
}

/// Removes the stores of all partitions of a node; says where they were.
fn remove_partitions(server: &Server) -> Vec<std::path::PathBuf> {
    let all = server.store().read_dir().unwrap().map(|entry| entry.unwrap().path());
    let all: Vec<_> = all.filter(|path| path.display().to_string().contains("/partition-")).collect();
    assert_eq!(all.len(), 8);
    all.iter().for_each(|path| std::fs::remove_dir_all(path).unwrap());
    all
}

fn update_all(server: &Server, second: usize) {
    for number in 0..DIRECTORIES {
        let line = format!("UPDATE {} {}:{}", name(number), 1_000_000_000 + second, second * 100 + number);
        assert_eq!(server.say(&line), "0 errors, enqueued 1 value(s).", "{line}");
    }
}

fn check_all(server: &Server, second: usize) {
    for number in 0..DIRECTORIES {
        assert_eq!(server.say(&format!("LAST {}", name(number))), format!("0 {}", 1_000_000_000 + second));
        let value = format!("{}", second * 100 + number);
        let dump = server.dump(&name(number));
        assert!(dump.iter().any(|line| line.contains(&format!("<last_ds>{value}</last_ds>"))), "{dump:?}");
    }
    let list = server.client().ask("LIST RECURSIVE /").unwrap();
    let listed = list.lines.iter().filter(|line| line.contains("host-")).count();
    assert_eq!(listed, DIRECTORIES, "{list:?}");
}

#[test]
fn two_nodes_answer_as_one_server_and_replace_each_other() {
    let parent = tempfile::tempdir().unwrap();
    let (mut a, mut b) = (node(parent.path(), "a"), node(parent.path(), "b"));
    a.start();
    b.start();
    wait_until("both to have everything", || are_well(&a, &["a", "b"]) && are_well(&b, &["a", "b"]));
    for number in 0..DIRECTORIES {
        let server = if number % 2 == 0 { &a } else { &b };
        assert!(server.say(&format!("CREATE {} {CREATE}", name(number))).starts_with("0 "));
    }
    update_all(&a, 1);
    check_all(&b, 1);
    update_all(&b, 2);
    check_all(&a, 2);
    assert!(
        b.say(&format!("UPDATE {} 1000000001:1", name(3))).contains("illegal attempt to update using time")
    );

    // One is killed: the other answers at once, and takes changes as soon as it leads.
    b.kill();
    check_all(&a, 2);
    wait_until("one to lead everything", || are_well(&a, &["a"]));
    update_all(&a, 3);
    b.start();
    wait_until("the other to have caught up", || are_well(&b, &["a", "b"]));
    check_all(&b, 3);

    // One is stopped for a while, and what it believes when it wakes up does no harm.
    pause(&a, parent.path());
    wait_until("the other to lead everything", || {
        let answer = b.client().ask("CLUSTER").unwrap();
        answer.lines.iter().filter(|line| line.contains(" leader b ")).count() == 8
    });
    update_all(&b, 4);
    a.signal(testkit::Signal::CONT);
    wait_until("the first to have caught up", || are_well(&a, &["a", "b"]) && are_well(&b, &["a", "b"]));
    check_all(&a, 4);
    update_all(&a, 5);
    check_all(&b, 5);
    // It may be taking its partitions back.
    wait_until("the status to say that all is well", || {
        a.run(&["cluster", "status"]).contains("8 partitions, all led, with 2 ready replicas each")
    });
    a.stop();
    wait_until("the last one to lead everything", || are_well(&b, &["b"]));
    update_all(&b, 6);
    check_all(&b, 6);
}

/// The sum over all partitions of what `/metrics` says of a node: the name without `roundel_cluster_`, and how many partitions it says it of.
pub fn figure(http: u16, name: &str) -> (u64, usize) {
    let text = http_get(http, "/metrics").unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.strip_prefix("roundel_cluster_")?.strip_prefix(name));
    let values = lines.filter(|rest| rest.starts_with(['{', ' ']));
    let values: Vec<u64> = values.filter_map(|rest| rest.rsplit_once(' ')?.1.trim().parse().ok()).collect();
    (values.iter().sum(), values.len())
}

#[test]
fn metrics_say_what_a_node_leads_lacks_and_what_the_cluster_is_short_of() {
    let parent = tempfile::tempdir().unwrap();
    let (mut a, mut b) = (node(parent.path(), "a"), node(parent.path(), "b"));
    let http = [free_port(), free_port()];
    a.more(&format!("[http]\nlisten = ['127.0.0.1:{}']\n", http[0]));
    b.more(&format!("[http]\nlisten = ['127.0.0.1:{}']\n", http[1]));
    a.start();
    b.start();
    wait_until("both to have everything", || are_well(&a, &["a", "b"]) && are_well(&b, &["a", "b"]));
    create_all(&a);
    update_all(&a, 1);
    wait_until("each partition to be led once", || {
        figure(http[0], "leads").0 + figure(http[1], "leads").0 == 8
    });
    for port in http {
        for whole in ["leads", "epoch", "caught_up", "messages_lacking", "fault", "read_bytes_total"] {
            assert_eq!(figure(port, whole).1, 8, "{whole}");
        }
        assert_eq!((figure(port, "fault").0, figure(port, "put_aside_total")), (0, (0, 8)));
        assert!(figure(port, "epoch").0 >= 8);
        assert_eq!(figure(port, "partitions"), (8, 1));
        // A node that is late with its heartbeats makes these figures others for a while.
        for (name, want) in [("caught_up", (8, 8)), ("nodes_alive", (2, 1))] {
            wait_until(name, || figure(port, name) == want);
        }
        for name in ["partitions_without_leader", "partitions_short", "messages_lacking"] {
            wait_until(&format!("no {name}"), || {
                let (sum, lines) = figure(port, name);
                lines > 0 && sum == 0
            });
        }
    }
    // Every partition was claimed, and every message has its envelope of 48 bytes.
    let sum = |what: &str| figure(http[0], what).0 + figure(http[1], what).0;
    let (mut appended, mut read) = (0, 0);
    wait_until("both nodes to read what was appended", || {
        (appended, read) = (sum("appended_messages_total"), sum("read_messages_total"));
        read >= 2 * appended
    });
    assert!(appended >= 8 + 2, "{appended} {read}");
    assert!(sum("appended_bytes_total") > 48 * appended && sum("read_bytes_total") > 48 * read);

    b.kill();
    wait_until("the loss to be seen", || figure(http[0], "nodes_alive").0 == 1);
    wait_until("all partitions to be short of replicas", || figure(http[0], "partitions_short").0 == 8);
    let short = "8 of the cluster's 8 partitions have fewer replicas ready than the 2 they should have";
    wait_until("the status to say it", || {
        http_get(http[0], "/api/v1/status").is_some_and(|status| status.contains(short))
    });
    wait_until("one to lead everything", || {
        figure(http[0], "leads").0 == 8 && figure(http[0], "partitions_without_leader").0 == 0
    });
}

/// `/api/v1/cluster` in the words of `roundel cluster status --partitions`.
fn said_in_json(http: u16) -> Vec<String> {
    let answer = http_get(http, "/api/v1/cluster").unwrap();
    let body: serde_json::Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let text = |value: &serde_json::Value, members: &[&str]| {
        let words = members.iter().map(|member| value[member].to_string().trim_matches('"').to_string());
        words.collect::<Vec<_>>().join(" ")
    };
    let nodes = body["nodes"].as_array().unwrap().iter().map(|node| {
        assert_eq!(node["version"], env!("CARGO_PKG_VERSION"));
        let counts = format!("leads {} of {}", node["leads"], node["holds"]);
        format!("{} {counts} {}", text(node, &["name", "zone", "address", "state"]), node["protocol"])
    });
    let partitions = body["partitions"].as_array().unwrap().iter().map(|partition| {
        let replicas = partition["replicas"].as_array().unwrap().iter();
        let replicas = replicas.map(|replica| text(replica, &["node", "state"]).replace(' ', ":"));
        let [number, epoch, leader] = ["number", "epoch", "leader"].map(|member| text(partition, &[member]));
        let replicas = replicas.collect::<Vec<_>>().join(" ");
        format!("partition {number} epoch {epoch} leader {leader} replicas {replicas}")
    });
    nodes.chain([String::new()]).chain(partitions).collect()
}

#[test]
fn the_page_shows_what_cluster_status_says_and_drains_a_node() {
    let parent = tempfile::tempdir().unwrap();
    let (mut a, mut b) = (node(parent.path(), "a"), node(parent.path(), "b"));
    let http = free_port();
    a.more(&format!("[http]\nlisten = ['127.0.0.1:{http}']\n"));
    a.start();
    b.start();
    wait_until("both to have everything", || are_well(&a, &["a", "b"]) && are_well(&b, &["a", "b"]));
    wait_until("the same said twice", || {
        let said = a.run(&["cluster", "status", "--partitions"]);
        let lines: Vec<String> =
            said.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        lines[0] == "node zone address state partitions protocol"
            && lines[1..] == said_in_json(http)
            && lines.len() == 12
    });
    let page = || http_get(http, "/cluster").unwrap();
    assert!(page().contains("8 partitions, all led, with 2 ready replicas each"), "{}", page());
    assert!(page().contains("<td>well</td>") && page().contains("a ready; b ready"), "{}", page());
    assert!(http_get(http, "/status").unwrap().contains("href=\"/cluster\""));

    let form =
        |what: &str, origin: &str| http_post_form(http, "/cluster", &format!("do={what}"), origin).unwrap();
    let own = format!("http://localhost:{http}");
    assert!(form("drain", "http://elsewhere.example").starts_with("HTTP/1.1 403"));
    assert!(form("empty", &own).starts_with("HTTP/1.1 400"));
    assert!(page().contains("value=\"drain\""), "nothing was changed");
    assert!(page().contains("Nothing was compared since"));
    create_all(&a);
    assert!(form("verify", "http://elsewhere.example").starts_with("HTTP/1.1 403"));
    assert!(form("verify", &own).starts_with("HTTP/1.1 303"));
    wait_until("a comparison", || page().contains("24 RRDs were compared, and are the same on all nodes."));
    let json = http_get(http, "/api/v1/cluster").unwrap();
    assert!(json.contains(r#""state":"done""#) && json.contains(r#""verdict":"is equal""#), "{json}");
    assert!(form("drain", &own).starts_with("HTTP/1.1 303"));
    wait_until("it to drain", || page().contains("<td>draining</td>") && page().contains("value=\"fill\""));
    assert!(form("fill", &own).starts_with("HTTP/1.1 303"));
    wait_until("it to take its share again", || !page().contains("draining") && are_well(&a, &["a", "b"]));
    b.kill();
    wait_until("the loss to be seen", || {
        page().contains("8 of 8 partitions lack a leader or ready replicas")
    });
    assert!(page().contains("<td>silent</td>") && page().contains("fewer replicas ready"), "{}", page());
}

#[test]
fn a_third_node_takes_the_place_of_one_that_is_emptied() {
    let parent = tempfile::tempdir().unwrap();
    let mut nodes = ["a", "b", "c"].map(|name| node(parent.path(), name));
    let [a, b, c] = &mut nodes;
    let http = free_port();
    c.more(&format!("[http]\nlisten = ['127.0.0.1:{http}']\n"));
    a.start();
    b.start();
    wait_until("both to have everything", || are_well(a, &["a", "b"]));
    create_all(a);
    add_messages(a);
    update_all(a, 1);
    let whole = a.dump("other/x.rrd");
    c.start();
    assert!(b.run(&["cluster", "drain"]).contains("gives its replicas to others"));
    wait_until("an empty node", || {
        a.run(&["cluster", "status"]).lines().any(|line| {
            line.starts_with("b ") && line.contains("draining") && line.contains(" leads 0 of 0 ")
        })
    });
    wait_until("leaders", || are_well(a, &["a", "c"]));
    // It still answers.
    check_all(b, 1);
    update_all(b, 2);
    b.kill();
    check_all(c, 2);
    assert!(c.log().contains("copying a replica from another node"));
    assert!(figure(http, "copied_total").0 >= 1);
    assert_eq!(c.dump("other/x.rrd"), whole);
    assert!(
        b.path("store")
            .read_dir()
            .unwrap()
            .all(|entry| { !entry.unwrap().file_name().to_string_lossy().starts_with("partition-") })
    );
}

#[test]
fn what_all_nodes_have_lost_is_made_of_its_backup_and_of_the_log() {
    let parent = tempfile::tempdir().unwrap();
    let (mut a, http, place) = (node(parent.path(), "a"), free_port(), parent.path().join("backup"));
    a.more(&format!(
        "[http]\nlisten = ['127.0.0.1:{http}']\n[backup]\nto = '{}'\ninterval = '1s'\n[collect]\nhost = true\n",
        place.display()
    ));
    a.start();
    wait_until_leading(&a, 1);
    create_all(&a);
    add_messages(&a);
    update_all(&a, 1);
    let rounds = || {
        testkit::wait_for("the rounds of backups in /metrics", || {
            let text = http_get(http, "/metrics")?;
            let count = text.lines().find_map(|line| line.strip_prefix("roundel_backup_rounds_total "))?;
            count.trim().parse::<u64>().ok()
        })
    };
    let before = rounds();
    wait_until("two rounds more", || rounds() >= before + 2);
    // What comes after the last round is in the log.
    update_all(&a, 2);
    let whole = a.dump("other/x.rrd");
    a.kill();
    let lost = remove_partitions(&a);
    a.start();
    wait_until_leading(&a, 2);
    check_all(&a, 2);
    assert_eq!(a.dump("other/x.rrd"), whole);
    assert_eq!(figure(http, "copied_total").0, 1, "the others have few messages");
    assert!(a.log().contains("making a replica of its backup"));
    update_all(&a, 3);
    // Each partition's backup is one of a store, too, for those who leave the cluster or lose it.
    let of = |path: &std::path::PathBuf| {
        place.join(format!("{}-of-8", path.file_name().unwrap().to_str().unwrap()))
    };
    let files = parent.path().join("files");
    for path in &lost {
        let (from, store) = (of(path), parent.path().join(path.file_name().unwrap()));
        a.tool(&["backup", "verify", "--from", from.to_str().unwrap()]);
        a.tool(&["restore", "--from", from.to_str().unwrap(), "--to", store.to_str().unwrap()]);
        a.tool(&["export", "--all", "--from", store.to_str().unwrap(), "--to", files.to_str().unwrap()]);
    }
    let names = (0..DIRECTORIES).map(name).chain(["other/x.rrd".to_owned()]);
    names.for_each(|name| assert!(files.join(&name).exists(), "{name}"));
    // What a node records of itself is no other node's.
    let list = || a.client().ask("LIST RECURSIVE /").unwrap().lines.join("\n");
    wait_until("the node's own RRD", || list().contains("roundel/a/daemon.rrd"));
    assert!(!list().contains("roundel/daemon.rrd"));
    // A backup with a hole makes no replica; then all messages are read, as long as the log has them.
    a.kill();
    for path in &lost {
        std::fs::remove_dir_all(of(path).join("objects")).unwrap();
    }
    remove_partitions(&a);
    a.start();
    wait_until_leading(&a, 3);
    check_all(&a, 3);
    assert_eq!(a.dump("other/x.rrd"), whole);
    assert!(a.log().contains("of its backup"), "it says why");
    assert_eq!(figure(http, "copied_total").0, 0);
}

/// Archives of all functions, some of which have unknown rows and unfinished ones.
const MANY_ARCHIVES: &str = "-b 1000000000 -s 10 DS:in:COUNTER:30:0:U DS:level:GAUGE:30:U:U RRA:AVERAGE:0.5:1:20 RRA:MAX:0.5:6:20 \
     RRA:MIN:0.5:6:20 RRA:LAST:0.1:12:20";

/// Copies all RRDs of a server to another one, as docs/cluster.md says.
fn move_all(parent: &Path, from: &Server, to: &Server) {
    let files = parent.join(format!("from-{}", from.followers_port));
    let files = files.to_str().unwrap();
    let address = |server: &Server| format!("unix:{}", server.path("sock").display());
    from.tool(&["export", "--all", "--from", &address(from), "--to", files]);
    to.tool(&["import", files, "--to", &address(to)]);
}

#[test]
fn a_server_becomes_a_cluster_and_a_server_again_without_losing_a_row() {
    let parent = tempfile::tempdir().unwrap();
    let mut servers = ["before", "after"].map(|name| Server::new(parent.path(), name, ""));
    servers.iter_mut().for_each(Server::start);
    let [before, after] = &servers;
    let names: Vec<String> =
        (0..120).map(|number| format!("site-{}/host-{}/{number}.rrd", number % 3, number % 20)).collect();
    let mut client = before.client();
    for (number, name) in names.iter().enumerate() {
        let created = client.ask(&format!("CREATE {name} {MANY_ARCHIVES}")).unwrap();
        assert_eq!(created.status, 0, "{created:?}");
        // Of each RRD another number of rows, and a gap.
        for update in (0..number).filter(|update| update % 17 > 3) {
            let time = 1_000_000_004 + update * 7;
            client.ask(&format!("UPDATE {name} {time}:{}:{}.5", update * 1000, update % 9)).unwrap();
        }
    }
    let dumps: Vec<Vec<String>> = names.iter().map(|name| before.dump(name)).collect();
    let (mut a, mut b) = (node(parent.path(), "a"), node(parent.path(), "b"));
    a.start();
    b.start();
    wait_until("both to have everything", || are_well(&a, &["a", "b"]) && are_well(&b, &["a", "b"]));
    move_all(parent.path(), before, &a);
    // What the one has not in the log, the other cannot say.
    a.kill();
    wait_until("the other to lead everything", || are_well(&b, &["b"]));
    for (name, dump) in names.iter().zip(&dumps) {
        assert_eq!(&b.dump(name), dump, "{name}");
    }
    move_all(parent.path(), &b, after);
    for (name, dump) in names.iter().zip(&dumps) {
        assert_eq!(&after.dump(name), dump, "{name}");
    }
    // It goes on where it was.
    let line = format!("UPDATE {} 1000009000:1:2", names[119]);
    assert_eq!(after.say(&line), before.say(&line));
    assert_eq!(after.dump(&names[119]), before.dump(&names[119]));
    let list = |server: &Server| server.client().ask("LIST RECURSIVE /").unwrap().lines;
    assert_eq!(list(after), list(before));
}

#[test]
fn what_does_not_go_with_a_cluster_is_refused_by_name() {
    let parent = tempfile::tempdir().unwrap();
    let mut a = node(parent.path(), "a");
    a.more("[follow]\nprimary = '127.0.0.1:1'\n");
    let said = a.fails();
    assert!(said.contains("[follow] does not go with [cluster]"), "{said}");
    a.replace_more("");
    std::fs::write(parent.path().join("secret"), "short").unwrap();
    let said = a.fails();
    assert!(said.contains("secret of a cluster has at least 16 bytes"), "{said}");
}

#[test]
fn a_broker_and_a_node_may_be_lost() {
    let parent = tempfile::tempdir().unwrap();
    let Some(mut kafka) = Kafka::start(3, &[]) else { return };
    let brokers = kafka.addresses().replace(',', "', '");
    let log = format!("[cluster.kafka]\nbrokers = ['{brokers}']\ntopic = 'roundel'\n");
    let (mut a, mut b) = (node_over(parent.path(), "a", &log), node_over(parent.path(), "b", &log));
    a.write_config();
    let config = a.path("roundel.toml");
    let config = config.to_str().unwrap();
    let made = a.tool(&["cluster", "topic", "--config", config, "--partitions", "8"]);
    assert!(made.contains("8 partitions for RRDs"), "{made}");
    a.start();
    b.start();
    wait_until("both to have everything", || are_well(&a, &["a", "b"]));
    for number in 0..DIRECTORIES {
        assert!(b.say(&format!("CREATE {} {CREATE}", name(number))).starts_with("0 "));
    }
    update_all(&a, 1);
    check_all(&b, 1);
    // Appends wait until the other brokers have given it up, and none is lost or refused.
    kafka.kill(1);
    update_all(&b, 2);
    check_all(&a, 2);
    b.kill();
    check_all(&a, 2);
    wait_until("one to lead everything", || are_well(&a, &["a"]));
    update_all(&a, 3);
    kafka.restart(1).unwrap();
    b.start();
    wait_until("the other to have caught up", || are_well(&b, &["a", "b"]));
    check_all(&b, 3);
    let mut nodes = [a, b];
    go_on(&mut nodes, "split", 16, ["topic = 'roundel'", "topic = 'roundel-2'"]);
    update_all(&nodes[1], 4);
    check_all(&nodes[0], 4);
}

/// Has two nodes go on in another log of so many partitions, by `cluster seal` or `cluster split`; in their configuration it is `to` in place of `from`.
fn go_on(nodes: &mut [Server; 2], verb: &str, partitions: usize, [from, to]: [&str; 2]) {
    let dumps =
        |server: &Server| (0..DIRECTORIES).map(|number| server.dump(&name(number))).collect::<Vec<_>>();
    let before = dumps(&nodes[0]);
    let [config, next] = ["roundel.toml", "next.toml"].map(|name| nodes[0].path(name));
    std::fs::write(&next, std::fs::read_to_string(&config).unwrap().replace(from, to)).unwrap();
    let [config, next] = [config, next].map(|path| path.display().to_string());
    nodes[0].tool(&["cluster", "topic", "--config", &next, "--partitions", &partitions.to_string()]);
    let words = ["cluster", verb, "--config", &config, "--next", &next];
    let said = nodes[0].tool(&words);
    assert!(said.contains(&format!("with {partitions} partitions. Give each node")), "{said}");
    // Once more, as after an interruption.
    assert_eq!(nodes[0].tool(&words), said);
    assert_eq!(dumps(&nodes[1]), before, "what is sealed is read");
    let status = nodes[1].run(&["cluster", "status"]);
    assert!(status.contains("a:prepared b:prepared"), "{status}");
    assert!(nodes[1].say(&format!("FLUSH {}", name(0))).starts_with("0 "), "nothing is left to be flushed");
    for node in &mut *nodes {
        node.stop();
        node.set_log(from, to);
        node.start();
    }
    wait_until("the cluster to be well", || are_all_well(&nodes[0], &["a", "b"], partitions));
    assert_eq!(dumps(&nodes[1]), before);
    assert!(nodes.iter().all(|node| !node.store().join("next-log").exists()));
}

#[test]
fn a_cluster_goes_on_in_another_log_and_in_more_partitions_without_losing_a_row() {
    let dir = tempfile::tempdir().unwrap();
    let mut nodes = ["a", "b"].map(|name| node(dir.path(), name));
    nodes.iter_mut().for_each(Server::start);
    wait_until("the cluster to be well", || are_well(&nodes[0], &["a", "b"]));
    create_all(&nodes[0]);
    (1..=30).for_each(|second| update_all(&nodes[second % 2], second));
    go_on(&mut nodes, "seal", 8, ["/log'", "/log-1'"]);
    (31..=40).for_each(|second| update_all(&nodes[second % 2], second));
    go_on(&mut nodes, "split", 24, ["/log-1'", "/log-2'"]);
    (41..=50).for_each(|second| update_all(&nodes[second % 2], second));
    check_all(&nodes[0], 50);
    let same = nodes[0].run(&["cluster", "verify"]);
    assert!(!same.contains("differs"), "{same}");
}

#[test]
fn the_page_has_a_cluster_go_on_in_another_log() {
    let dir = tempfile::tempdir().unwrap();
    let mut nodes = ["a", "b"].map(|name| node(dir.path(), name));
    let http = free_port();
    nodes[0].more(&format!("[http]\nlisten = ['127.0.0.1:{http}']\n"));
    nodes.iter_mut().for_each(Server::start);
    wait_until("the cluster to be well", || are_well(&nodes[0], &["a", "b"]));
    create_all(&nodes[0]);
    update_all(&nodes[0], 1);
    let next = nodes[0].path("next.toml");
    let config = std::fs::read_to_string(nodes[0].path("roundel.toml")).unwrap();
    std::fs::write(&next, config.replace("/log'", "/log-2'")).unwrap();
    nodes[0].tool(&["cluster", "topic", "--config", &next.display().to_string(), "--partitions", "16"]);

    let page = || http_get(http, "/cluster").unwrap();
    assert!(page().contains("now it is “log”"), "{}", page());
    let own = format!("http://localhost:{http}");
    let form = |fields: &str, origin: &str| http_post_form(http, "/cluster", fields, origin).unwrap();
    let split = "do=split&log=log-2";
    for (fields, origin, status, why) in [
        (split, "http://elsewhere.example", 403, "only operated from this server"),
        ("do=split", &own, 400, "with a log"),
        ("do=split&log=log-2&log=log-3", &own, 400, "are given once"),
        ("do=drain&log=log-2", &own, 400, "with a log"),
        ("do=split&log=..%2Flog-2", &own, 400, "is no name of a log"),
        ("do=split&log=log-3", &own, 409, "roundel cluster topic makes it"),
        ("do=split&log=log", &own, 409, "the one that the cluster has now"),
        ("do=seal&log=log-2", &own, 409, "use roundel cluster split"),
    ] {
        let said = form(fields, origin);
        assert!(said.starts_with(&format!("HTTP/1.1 {status}")) && said.contains(why), "{fields}: {said}");
    }
    update_all(&nodes[1], 2);
    assert!(page().contains("8 partitions, all led"), "nothing was changed: {}", page());
    let said = form(split, &own);
    assert!(said.starts_with("HTTP/1.1 303"), "{said}");
    let ready = "8 of 8 are sealed, and 16 of 16 replicas are ready for it. Give each node the configuration";
    wait_until("all to be ready", || page().contains(ready) && !page().contains("value=\"split\""));
    for node in &mut nodes {
        node.stop();
        node.set_log("/log'", "/log-2'");
        node.start();
    }
    wait_until("the cluster to be well", || are_all_well(&nodes[0], &["a", "b"], 16));
    check_all(&nodes[1], 2);
    assert!(page().contains("now it is “log-2”"), "{}", page());
}

/// A node that is sealed, and one that lacks its store, with the former log and with the next one.
#[test]
fn what_waits_for_another_log_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let mut a = node(dir.path(), "a");
    a.start();
    wait_until("a leader", || are_well(&a, &["a"]));
    create_all(&a);
    let [config, next] = ["roundel.toml", "next.toml"].map(|name| a.path(name));
    std::fs::write(&next, std::fs::read_to_string(&config).unwrap().replace("/log'", "/other'")).unwrap();
    let [config, next] = [config, next].map(|path| path.display().to_string());
    a.tool(&["cluster", "topic", "--config", &next, "--partitions", "12"]);
    let refused = |verb: &str| a.tool_refuses(&["cluster", verb, "--config", &config, "--next", &next]);
    assert!(refused("split").contains("a split needs a multiple, such as 16"));
    assert!(refused("seal").contains("12 partitions for RRDs, and the present one 8"));
    update_all(&a, 1);
    std::fs::remove_dir_all(dir.path().join("other")).unwrap();
    a.tool(&["cluster", "topic", "--config", &next, "--partitions", "8"]);
    a.tool(&["cluster", "seal", "--config", &config, "--next", &next]);
    let refused = a.say(&format!("UPDATE {} 1900000000:1", name(0)));
    assert!(refused.contains("is sealed: the cluster goes on in another log"), "{refused}");
    // Another log than the one that it was sealed for: a mistyped name must not have it begin with nothing.
    a.stop();
    a.set_log("/log'", "/third'");
    let refused = a.fails();
    assert!(
        refused.contains("was sealed for the log \"directory ") && refused.contains("Nothing was changed"),
        "{refused}"
    );
    a.set_log("/third'", "/other'");
    a.start();
    wait_until("a leader", || are_well(&a, &["a"]));
    check_all(&a, 1);
    update_all(&a, 2);
}
