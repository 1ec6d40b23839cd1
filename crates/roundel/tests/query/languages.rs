//! `roundel query --promql` and `--graphite`, of a daemon and of a store at rest; `roundel grafana`.

use std::fs;
use std::path::Path;

use testkit::{Running, wait_until};

use super::store::{START, Store, roundel, try_roundel};

/// The port of a configuration that is written.
struct Configured(u16);

impl Configured {
    fn run(self, directory: &Path) -> Served {
        let (log, config) = (directory.join("log"), directory.join("roundel.toml"));
        let words = ["serve", "--config", config.to_str().unwrap()];
        let program = Running::program(&log, env!("CARGO_BIN_EXE_roundel"), &words);
        wait_until("the daemon", || std::net::TcpStream::connect(("127.0.0.1", self.0)).is_ok());
        Served { port: self.0, _program: program }
    }
}

/// A daemon of the store, over HTTP.
struct Served {
    port: u16,
    _program: Running,
}

impl Served {
    fn start(directory: &Path) -> Served {
        Served::configure(directory, "").run(directory)
    }

    /// Writes a configuration, and returns the port that it has.
    fn configure(directory: &Path, more: &str) -> Configured {
        let (here, port) = (directory.display(), testkit::free_port());
        let config = format!(
            "store = \"{here}/store\"\nbase = \"{here}/base\"\n[[listen]]\naddress = \"unix:{here}/sock\"\n\
             [http]\nlisten = [\"127.0.0.1:{port}\"]\n{more}"
        );
        fs::create_dir_all(directory.join("base")).unwrap();
        fs::write(directory.join("roundel.toml"), config).unwrap();
        Configured(port)
    }

    fn stop(self) {
        self._program.terminate();
    }
}

/// Questions, and the beginning of their answers as CSV.
fn questions() -> Vec<(Vec<String>, &'static str)> {
    let (start, end) = (START + 600, START + 3000);
    let range = ["-s".to_owned(), start.to_string(), "-e".to_owned(), end.to_string()];
    let at = ["-e".to_owned(), end.to_string()];
    let words = |more: &[&str], times: &[String]| {
        [more.iter().map(ToString::to_string).collect(), times.to_vec()].concat::<String>()
    };
    vec![
        (words(&["--promql", "count(rrd_in)"], &at), "series,time,value\n{},1700008500,4\n"),
        (words(&["--promql", "1 + 1"], &at), "series,time,value\nscalar,1700008500,2\n"),
        (
            words(&["--promql", "rrd_in{rrd=~\"top|ports/x\"}", "--step", "300"], &range),
            "series,__name__,ds,rrd,time,value\n\"rrd_in{ds=\"\"in\"\",rrd=\"\"ports/x\"\"}\",rrd_in,in,ports/x,1700006100,",
        ),
        (
            words(&["--graphite", "ports.x.in", "sumSeries(hosts.*.load.in)"], &range),
            "series,time,value\nports.x.in,1700006100,",
        ),
        (words(&["--graphite", "aliasByNode(*.*.in, 1)", "--maxrows", "3"], &range), "series,time,value\nx,"),
    ]
}

#[test]
fn promql_and_graphite_are_answered_by_a_daemon_and_at_rest() {
    let store = Store::new();
    let directory = store.tool.directory().to_path_buf();
    let ask = |words: &[String], more: &[&str]| {
        let words: Vec<&str> = ["query"]
            .into_iter()
            .chain(words.iter().map(String::as_str))
            .chain(more.iter().copied())
            .collect();
        roundel(&directory, &words, &[])
    };
    let at_rest: Vec<String> =
        questions().iter().map(|(words, _)| ask(words, &["--url", "store", "-f", "csv"])).collect();
    for ((words, want), got) in questions().iter().zip(&at_rest) {
        assert!(got.starts_with(want), "{words:?}: {got}");
    }
    // A configuration says what RRDs are called, also without its daemon.
    let rules = "[[metric]]\npath = 'ports/(?<port>.*)'\nname = 'port'\n";
    fs::write(directory.join("rules.toml"), rules).unwrap();
    let (count, _) = &questions()[0];
    let named: Vec<String> =
        count.iter().map(|word| word.replace("count(rrd_in)", "port_in{port=\"x\"}")).collect();
    let more = ["--url", "store", "-f", "csv", "--config", "rules.toml"];
    assert!(ask(&named, &more).contains(",port_in,in,x,ports/x,"), "{}", ask(&named, &more));
    assert_eq!(ask(&named, &more[..4]), "series,time,value\n");
    // Without a URL, what roundel.toml here says.
    let served = Served::start(&directory);
    for ((words, _), want) in questions().iter().zip(&at_rest) {
        assert_eq!(ask(words, &["-f", "csv"]), *want, "{words:?}");
    }
    let url = format!("http://127.0.0.1:{}", served.port);
    let (words, _) = &questions()[2];
    let of = |format: &str| {
        let more = ["-f", format, "-o", "answer", "--url", &url];
        ask(words, &more);
        fs::read(directory.join("answer")).unwrap()
    };
    assert!(of("table").starts_with(b"series "));
    assert!(of("json").starts_with(
        b"[\n{\"series\":\"rrd_in{ds=\\\"in\\\",rrd=\\\"ports/x\\\"}\",\"__name__\":\"rrd_in\""
    ));
    assert!(of("parquet").starts_with(b"PAR1") && of("arrow").starts_with(&[0xff; 4]));
    // The rows themselves are those that rrdtool has.
    let minute =
        [words[0].clone(), "rrd_in{rrd=\"ports/x\"}".to_owned(), "--step".to_owned(), "60".to_owned()];
    let times = ["-s".to_owned(), (START + 2700).to_string(), "-e".to_owned(), (START + 2880).to_string()];
    let csv = ask(&[&minute[..], &times[..]].concat(), &["-f", "csv"]);
    let values: Vec<f64> =
        csv.lines().skip(1).map(|line| line.rsplit_once(',').unwrap().1.parse().unwrap()).collect();
    let want: Vec<f64> = (45..=48).map(|update: i64| (update * update % 37 + 2) as f64 / 7.0).collect();
    assert_eq!(values, want);
    served.stop();
}

#[test]
fn what_is_wrong_is_shown_at_its_place() {
    let store = Store::new();
    let directory = store.tool.directory().to_path_buf();
    let served = Served::start(&directory);
    let fails = |words: &[&str], wants: &[&str]| {
        let output = try_roundel(&directory, &[&["query"], words].concat(), &[]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{words:?}");
        assert!(wants.iter().all(|want| text.contains(want)), "{words:?}: {text}");
    };
    fails(&["--promql", "sum(rrd_in) + )"], &["parse error", "\n  sum(rrd_in) + )\n                ^\n"]);
    fails(&["--promql", "rrd_in + on(ds) rrd_in", "-e", "1700008500"], &["many-to-many"]);
    fails(&["--promql", "\"text\""], &["which has no values"]);
    fails(&["--graphite", "sumSeries(a.b"], &["\n  sumSeries(a.b\n               ^\n"]);
    fails(&["--graphite", "nothing(a.b)"], &["there is no function"]);
    fails(&["--promql", "1", "--url", "http://127.0.0.1:1"], &["cannot ask 127.0.0.1:1/api/v1/query"]);
    fails(&["--promql", "1", "--url", "base"], &["is no store"]);
    fails(&["--promql", "1", "DEF:a=b.rrd:c:AVERAGE"], &["cannot be used with"]);
    fails(&["DEF:a=b.rrd:c:AVERAGE", "--url", "http://x"], &["--daemon"]);
    fails(&[], &["required"]);
    served.stop();
    let elsewhere = tempfile::tempdir().unwrap();
    let output = try_roundel(elsewhere.path(), &["query", "--promql", "1"], &[]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("give --url"), "{output:?}");
}

#[test]
fn tokens_and_tls_are_shown_and_never_written() {
    let store = Store::new();
    let directory = store.tool.directory().to_path_buf();
    let certified = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    fs::write(directory.join("cert.pem"), certified.cert.pem()).unwrap();
    fs::write(directory.join("key.pem"), certified.signing_key.serialize_pem()).unwrap();
    let here = directory.display();
    let tls = format!(
        "anonymous = \"none\"\n[http.web_config.tls_server_config]\ncert_file = \"{here}/cert.pem\"\nkey_file = \"{here}/key.pem\"\n"
    );
    let configured = Served::configure(&directory, &tls);
    let token = roundel(&directory, &["token", "add", "grafana", "--read", "**"], &[]);
    let token = token.trim().lines().last().unwrap().to_owned();
    let served = configured.run(&directory);
    let trust = ("ROUNDEL_CA_FILE", "cert.pem");
    let words = ["query", "--promql", "count(rrd_in)", "-e", "1700008500", "-f", "csv"];
    let said = roundel(&directory, &words, &[trust, ("ROUNDEL_TOKEN", &token)]);
    assert_eq!(said, "series,time,value\n{},1700008500,4\n");
    let refused = |words: &[&str], variables: &[(&str, &str)], want: &str| {
        let output = try_roundel(&directory, words, variables);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(want), "{text}");
    };
    refused(&words, &[trust], "answered 401");
    refused(&words, &[("ROUNDEL_TOKEN", &token)], "certificate");
    let exposed = ["query", "--promql", "1", "--url", "http://192.0.2.1:1"];
    refused(&exposed, &[("ROUNDEL_TOKEN", &token)], "not sent unencrypted");

    let grafana = ["grafana", "--to", "g", "--ca", "cert.pem"];
    let said = roundel(&directory, &grafana, &[("ROUNDEL_TOKEN", &token)]);
    assert!(said.starts_with("wrote 7 files below g\n") && said.contains("interval 1m"), "{said}");
    assert!(said.contains("roundel token add") && !said.contains(&token), "{said}");
    let sources = fs::read_to_string(directory.join("g/datasources/roundel.yaml")).unwrap();
    assert!(
        sources.contains(&format!("https://127.0.0.1:{}", served.port)) && !sources.contains(&token),
        "{sources}"
    );
    assert!(sources.contains("$ROUNDEL_TOKEN") && sources.contains("BEGIN CERTIFICATE"), "{sources}");
    refused(&["grafana", "--to", "h", "--ca", "key.pem"], &[], "private key");
    assert!(!directory.join("h").exists(), "nothing is written");
    served.stop();
}

#[test]
fn grafana_gets_files_and_keeps_its_own() {
    let store = Store::new();
    let directory = store.tool.directory().to_path_buf();
    let served = Served::start(&directory);
    let url = format!("http://127.0.0.1:{}", served.port);
    let write = ["grafana", "--to", "provisioning", "--seen-as", "/etc/grafana/provisioning"];
    let said = roundel(&directory, &write, &[]);
    assert!(
        said.contains(&format!("data sources: {url}, interval 1m")) && said.contains("give --url"),
        "{said}"
    );
    let provisioning = directory.join("provisioning");
    let read = |name: &str| fs::read_to_string(provisioning.join(name)).unwrap();
    assert!(read("dashboards/roundel.yaml").contains("\"/etc/grafana/provisioning/dashboards/roundel\""));
    assert!(read("datasources/roundel.yaml").contains("timeInterval: \"1m\""));
    // The daemon answers with the same.
    let asked = testkit::http_get(served.port, "/grafana/dashboards/host.json").unwrap();
    assert!(asked.ends_with(&read("dashboards/roundel/host.json")), "{asked}");
    // Again, and not over what others have written.
    roundel(&directory, &write, &[]);
    fs::write(provisioning.join("datasources/roundel.yaml"), "apiVersion: 1\n").unwrap();
    fs::remove_file(provisioning.join("dashboards/roundel/host.json")).unwrap();
    let output = try_roundel(&directory, &write, &[]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("nothing is written") && text.contains("datasources/roundel.yaml"), "{text}");
    assert!(!provisioning.join("dashboards/roundel/host.json").exists());
    served.stop();
    let output = try_roundel(&directory, &["grafana", "--to", "other"], &[]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("or give --interval"), "{output:?}");
    let words = ["grafana", "--to", "other", "--interval", "5m", "--url", "https://history.example/r/"];
    let said = roundel(&directory, &words, &[]);
    assert!(said.contains("https://history.example/r, interval 5m"), "{said}");
}
