//! Debian's gmetad and we poll the same answers, and must make the same files and give the same XML; Debian's gmond sends to us.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use testkit::{Kind, Running, rrd_files};

/// Polls that are answered; both get the same answers.
const POLLS: usize = 8;

/// The answer to the `nth` poll; its time does not depend on when that is.
fn answer(base: u64, nth: usize) -> String {
    let time = base + 3 * nth as u64;
    let metric = |name: &str, value: String, kind: &str, slope: &str| {
        format!(
            "<METRIC NAME=\"{name}\" VAL=\"{value}\" TYPE=\"{kind}\" UNITS=\"u\" TN=\"1\" TMAX=\"60\" DMAX=\"0\" SLOPE=\"{slope}\">\n\
             <EXTRA_DATA>\n<EXTRA_ELEMENT NAME=\"GROUP\" VAL=\"g\"/>\n</EXTRA_DATA>\n</METRIC>\n"
        )
    };
    let host = |name: &str, tn: u32, metrics: &[String]| {
        format!(
            "<HOST NAME=\"{name}\" IP=\"10.0.0.1\" TAGS=\"t\" REPORTED=\"{}\" TN=\"{tn}\" TMAX=\"20\" DMAX=\"0\" \
             LOCATION=\"1,2,3\" GMOND_STARTED=\"17\">\n{}</HOST>\n",
            time - u64::from(tn),
            metrics.concat()
        )
    };
    let n = nth as f64;
    let hosts = [
        host(
            "UPPER",
            79,
            &[
                metric("load_one", format!("{:.2}", 0.1 + n / 3.0), "float", "both"),
                metric("packets", format!("{}", 1000 + 77 * nth), "uint32", "positive"),
                metric("bytes", format!("{:.3}", 1e9 * n), "double", "derivative"),
                metric("os_name", "Linux".to_string(), "string", "zero"),
                metric("booted", "1700000000".to_string(), "timestamp", "zero"),
            ],
        ),
        host("b.example", 0, &[metric("load_one", format!("{:.3}", 2.0 - n / 7.0), "float", "both")]),
        host("dead", 80, &[metric("load_one", "9.0".to_string(), "float", "both")]),
        host("c", 5, &[metric("packets", format!("{}", 50 * nth), "uint32", "positive")]),
    ];
    format!(
        "<?xml version=\"1.0\" encoding=\"ISO-8859-1\" standalone=\"yes\"?>\n<GANGLIA_XML VERSION=\"3.7.2\" SOURCE=\"gmond\">\n\
         <CLUSTER NAME=\"my cluster\" LOCALTIME=\"{time}\" OWNER=\"o\" LATLONG=\"N1\" URL=\"u\">\n{}</CLUSTER>\n</GANGLIA_XML>\n",
        hosts.concat()
    )
}

/// The same as a gmetad's answer, which has the cluster in its grid.
fn answer_of_gmetad(base: u64, nth: usize) -> String {
    let time = base + 3 * nth as u64;
    let grid = format!("<GRID NAME=\"Sub\" AUTHORITY=\"http://sub/\" LOCALTIME=\"{time}\">\n<CLUSTER");
    let answer = answer(base, nth).replace("SOURCE=\"gmond\"", "SOURCE=\"gmetad\"");
    answer.replace("<CLUSTER", &grid).replace("</CLUSTER>", "</CLUSTER>\n</GRID>")
}

/// A gmond or gmetad whose first answers are these; its port, and how many were asked for.
fn source(answer: fn(u64, usize) -> String, base: u64) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let polls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&polls);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            // Afterwards, the last answer again: it is not newer.
            let nth = count.fetch_add(1, Ordering::Relaxed).min(POLLS - 1);
            stream.write_all(answer(base, nth).as_bytes()).ok();
        }
    });
    (port, polls)
}

fn rrds(base: &Path) -> BTreeSet<PathBuf> {
    let mut found = rrd_files(base);
    found.retain(|name| !name.starts_with("roundel"));
    found
}

fn rrdtool(verb: &str, path: &Path) -> String {
    let output = Command::new("/usr/bin/rrdtool").arg(verb).arg(path).env("TZ", "UTC").output().unwrap();
    assert!(output.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The definition only: sums of everything have the time at which they were computed.
fn definition(path: &Path) -> String {
    let info = rrdtool("info", path);
    let is_definition = |line: &&str| {
        let key = line.split(" = ").next().unwrap_or_default();
        ["step", ".type", ".minimal_heartbeat", ".min", ".max", ".cf", ".rows", ".pdp_per_row", ".xff"]
            .iter()
            .any(|end| key.ends_with(end))
    };
    info.lines().filter(is_definition).collect::<Vec<_>>().join("\n")
}

fn ask(port: u16, query: Option<&str>) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    if let Some(query) = query {
        stream.write_all(format!("{query}\n").as_bytes()).unwrap();
    }
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// The lines after the document type, sorted, without what depends on the moment and on gmetad's memory.
fn comparable(text: &str) -> Vec<String> {
    let (_, body) = text.split_once("]>").unwrap();
    let without = |line: &str| -> String {
        let words = line.split("\" ");
        let kept = words.filter(|word| {
            let is_grid_time = line.starts_with("<GRID") && word.starts_with("LOCALTIME");
            !(word.starts_with("TN=") || word.starts_with("SOURCE=") || is_grid_time)
        });
        kept.collect::<Vec<_>>().join("\" ")
    };
    let mut lines: Vec<String> = body.lines().filter(|line| !line.is_empty()).map(without).collect();
    lines.sort();
    lines
}

/// Without one, the port that answers everything.
const QUERIES: [Option<&str>; 20] = [
    None,
    Some("/"),
    Some("/?filter=summary"),
    Some("/my cluster"),
    Some("/my cluster/?filter=summary"),
    Some("/my cluster/UPPER"),
    Some("/my cluster/UPPER/packets"),
    Some("/my cluster/UPPER/nosuch"),
    Some("/nosuch"),
    // What ganglia-web does not ask, but others may.
    Some("/my cluster?filter=summary"),
    Some("/my cluster/UPPER?filter=summary"),
    Some("/my cluster/UPPER/packets?filter=summary"),
    Some("/my cluster/nosuch"),
    Some("/my cluster/nosuch/packets"),
    Some("/my cluster/dead"),
    Some("/?filter=nosuch"),
    Some("//my cluster/UPPER/"),
    // Of a grid.
    Some("/Sub"),
    Some("/Sub/?filter=summary"),
    Some("/Sub/my cluster"),
];

#[test]
fn files_and_xml_are_gmetad_s() {
    compare(answer, "", "");
}

#[test]
fn of_a_gmetad_the_sums_are_gmetad_s() {
    compare(answer_of_gmetad, "", "");
}

#[test]
fn of_a_gmetad_the_clusters_are_gmetad_s_where_it_is_not_scalable() {
    compare(answer_of_gmetad, "scalable = false\n", "scalable off\n");
}

/// Compares files and answers to queries of both on the same source, with these lines in our configuration and gmetad's.
fn compare(answer: fn(u64, usize) -> String, our_lines: &str, their_lines: &str) {
    let directory = tempfile::Builder::new().prefix("ganglia-").tempdir().unwrap();
    let base = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() - 1000;
    let ports: [u16; 4] = std::array::from_fn(|_| testkit::free_port());
    let (our_gmond, our_polls) = source(answer, base);
    let (their_gmond, their_polls) = source(answer, base);

    let mut ours = testkit::daemon!(Kind::Files, &directory.path().join("ours"));
    ours.configure(&format!(
        // A source that is gone comes first: its turn passes to the next.
        "[[gmond]]\nname = \"c\"\naddresses = [\"127.0.0.1:1\", \"127.0.0.1:{our_gmond}\"]\nstep = \"1s\"\n\
         [gmetad]\ngridname = \"G\"\nauthority = \"http://a/\"\nxml_listen = [\"127.0.0.1:{}\"]\n\
         interactive_listen = [\"127.0.0.1:{}\"]\n{our_lines}",
        ports[0], ports[1]
    ));
    let mut client = ours.start();

    let their_files = directory.path().join("rrds");
    fs::create_dir(&their_files).unwrap();
    let config = directory.path().join("gmetad.conf");
    let text = format!(
        "data_source \"c\" 1 127.0.0.1:{their_gmond}\nsetuid off\nrrd_rootdir \"{}\"\nxml_port {}\ninteractive_port {}\n\
         gridname \"G\"\nauthority \"http://a/\"\ncase_sensitive_hostnames 0\n{their_lines}",
        their_files.display(),
        ports[2],
        ports[3]
    );
    fs::write(&config, text).unwrap();
    let log = directory.path().join("log");
    let gmetad = Running::program(&log, "/usr/sbin/gmetad", &["-d", "1", "-c", config.to_str().unwrap()]);
    let is_done = || [&our_polls, &their_polls].iter().all(|polls| polls.load(Ordering::Relaxed) > POLLS + 1);
    let summary = their_files.join("__SummaryInfo__/load_one.rrd");
    testkit::wait_until("all answers to be taken by both", || is_done() && summary.exists());

    let mut different = Vec::new();
    for query in QUERIES {
        let (our_port, their_port) =
            if query.is_none() { (ports[0], ports[2]) } else { (ports[1], ports[3]) };
        let theirs = comparable(&ask(their_port, query));
        let ours = comparable(&ask(our_port, query));
        if ours != theirs {
            different.push(format!("{query:?}: {ours:?} is not {theirs:?}"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
    drop(gmetad);

    let theirs = rrds(&their_files);
    assert_eq!(rrds(&ours.base()), theirs);
    for name in &theirs {
        client.ask(&format!("FLUSH {}", name.display().to_string().replace(' ', "\\ "))).unwrap();
        let (our, their) = (ours.base().join(name), their_files.join(name));
        assert_eq!(definition(&our), definition(&their), "{}", name.display());
        if !name.starts_with("__SummaryInfo__") {
            assert_eq!(rrdtool("dump", &our), rrdtool("dump", &their), "{}", name.display());
        }
    }
}

#[test]
fn debian_s_gmond_sends_to_us() {
    let directory = tempfile::Builder::new().prefix("gmond-").tempdir().unwrap();
    let [udp, interactive, tcp] = std::array::from_fn(|_| testkit::free_port());
    let mut ours = testkit::daemon!(Kind::Files, &directory.path().join("ours"));
    ours.configure(&format!(
        "[gmond_listen]\nlisten = [\"udp://127.0.0.1:{udp}\"]\ncluster = \"direct\"\nstep = \"1s\"\n\
         [gmetad]\ninteractive_listen = [\"127.0.0.1:{interactive}\"]\n"
    ));
    let _client = ours.start();
    let config = directory.path().join("gmond.conf");
    // Without send_metadata_interval, what a metric is comes once, and then when it is asked for.
    let text = format!(
        "globals {{\n daemonize = no\n setuid = no\n mute = no\n deaf = no\n send_metadata_interval = 0\n}}\n\
         cluster {{\n name = \"c\"\n}}\nudp_send_channel {{\n host = 127.0.0.1\n port = {udp}\n}}\n\
         tcp_accept_channel {{\n port = {tcp}\n}}\n\
         modules {{\n module {{\n name = \"core_metrics\"\n }}\n module {{\n name = \"load_module\"\n path = \"/usr/lib/{}-linux-gnu/ganglia/modload.so\"\n }}\n}}\n\
         collection_group {{\n collect_every = 1\n time_threshold = 1\n metric {{\n name = \"load_one\"\n value_threshold = \"0\"\n }}\n}}\n",
        std::env::consts::ARCH
    );
    fs::write(&config, text).unwrap();
    let log = directory.path().join("log");
    let _gmond = Running::program(&log, "/usr/sbin/gmond", &["-c", config.to_str().unwrap(), "-f"]);
    let file = |base: &Path| rrds(base).into_iter().find(|name| name.ends_with("load_one.rrd"));
    testkit::wait_until("gmond's metric", || file(&ours.base()).is_some());
    let name = rrds(&ours.base());
    assert!(
        name.iter().any(|name| name.starts_with("direct") && !name.starts_with("direct/__SummaryInfo__")),
        "{name:?}"
    );
    let answer = ask(interactive, Some("/direct"));
    assert!(answer.contains("<METRIC NAME=\"load_one\" VAL=\""), "{answer}");
}
