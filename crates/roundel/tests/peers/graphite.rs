//! graphite-web with the same `.rrd` files: `/render` of many targets, of random ones, and what is found, byte for byte.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use testkit::random::Random;
use testkit::{Daemon, Kind, Running, Share};

const START: i64 = 1_700_000_040;

/// graphite-web as a process.
struct GraphiteWeb {
    _process: Running,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl GraphiteWeb {
    /// Starts it over a directory; `None`, and the test is skipped, without it.
    fn start(base: &Path, own: &Path) -> Option<GraphiteWeb> {
        let python = testkit::peer::graphite_web()?;
        std::fs::create_dir_all(own).unwrap();
        let script = own.join("reference.py");
        std::fs::write(&script, include_str!("graphite/reference.py")).unwrap();
        let mut command = Command::new(&python);
        command.args(["-W", "ignore"]).arg(&script).arg(base).arg(own).stderr(Stdio::null());
        let (process, requests, answers) = Running::piped(&mut command);
        Some(GraphiteWeb { _process: process, requests, answers })
    }

    /// The status and the body of an answer.
    fn get(&mut self, target: &str) -> (u16, Vec<u8>) {
        writeln!(self.requests, "{target}").unwrap();
        let mut line = String::new();
        while !line.starts_with("= ") {
            line.clear();
            assert!(self.answers.read_line(&mut line).unwrap() > 0, "graphite-web has ended");
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut body = vec![0; words[2].parse().unwrap()];
        self.answers.read_exact(&mut body).unwrap();
        (words[1].parse().unwrap(), body)
    }
}

/// A daemon over standard files, and graphite-web over the same.
struct Pair {
    theirs: GraphiteWeb,
    _daemon: Daemon,
    http: u16,
    /// Answers that were compared: not those of an error in graphite-web.
    compared: Share,
    _directory: tempfile::TempDir,
}

impl Pair {
    fn start(create: impl FnOnce(&mut testkit::Client)) -> Option<Pair> {
        let directory = tempfile::Builder::new().prefix("graphite-").tempdir().unwrap();
        let mut daemon = testkit::daemon!(Kind::Files, &directory.path().join("daemon"));
        let theirs = GraphiteWeb::start(&daemon.base(), &directory.path().join("own"))?;
        let http = testkit::free_port();
        daemon.configure(&format!("[http]\nlisten = [\"127.0.0.1:{http}\"]\n"));
        let mut client = daemon.start();
        create(&mut client);
        Some(Pair { theirs, _daemon: daemon, http, compared: Share::default(), _directory: directory })
    }

    fn ours(&self, target: &str) -> (u16, Vec<u8>) {
        let mut answer =
            testkit::http_bytes(self.http, "GET", target, "Accept: application/json\r\n", b"").unwrap();
        let head = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
        let status = String::from_utf8_lossy(&answer[9..12]).parse().unwrap();
        (status, answer.split_off(head + 4))
    }

    /// What differs: nothing if both answers are equal, both are refusals, or graphite-web fails.
    fn difference(&mut self, target: &str) -> Option<String> {
        let (status, theirs) = self.theirs.get(target);
        let (our_status, ours) = self.ours(target);
        self.compared.add(status != 500);
        if status == 200 && our_status == 200 && theirs == ours
            || status == 400 && our_status == 400
            || status == 500
        {
            return None;
        }
        let place = theirs.iter().zip(&ours).position(|(one, other)| one != other).unwrap_or(0);
        let near = |bytes: &[u8]| {
            let end = (place + 80).min(bytes.len());
            String::from_utf8_lossy(&bytes[place.saturating_sub(60).min(end)..end]).into_owned()
        };
        Some(format!("{target}\n  {status}: {}\n  {our_status}: {}\n", near(&theirs), near(&ours)))
    }
}

/// RRDs of two sources with gaps, and one with longer rows.
fn create(client: &mut testkit::Client) {
    let mut random = Random::new(5);
    let mut say = |line: &str| {
        let answer = client.ask(line).unwrap();
        assert_eq!(answer.status, 0, "{line}: {answer:?}");
    };
    for host in ["web1", "web2", "db_1"] {
        for part in ["cpu-0", "cpu-1"] {
            let name = format!("net/{host}/{part}/if.rrd");
            say(&format!(
                "CREATE {name} -s 60 -b {START} DS:in:GAUGE:120:U:U DS:out:GAUGE:120:U:U RRA:AVERAGE:0.5:1:600 RRA:AVERAGE:0.5:10:600"
            ));
            let mut count = 0;
            for row in 1..400 {
                if random.once_in(30) {
                    continue;
                }
                count = if random.once_in(50) { 0 } else { count + random.below(100) };
                let wave = (row as f64 / 10.0).sin() * 20.0;
                say(&format!("UPDATE {name} {}:{count}:{wave:.3}", START + 60 * row));
            }
            say(&format!("FLUSH {name}"));
        }
    }
    say(&format!("CREATE net/slow/x.rrd -s 300 -b {START} DS:in:GAUGE:900:U:U RRA:AVERAGE:0.5:1:600"));
    for row in 1..80 {
        say(&format!("UPDATE net/slow/x.rrd {}:{}", START + 300 * row, random.below(1000) as f64 / 7.0));
    }
    say("FLUSH net/slow/x.rrd");
}

fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "%{byte:02X}");
        out
    })
}

/// The requests of a target: some ranges, with and without consolidation.
fn requests(target: &str) -> [String; 4] {
    let range = |from: i64, until: i64, more: &str| {
        format!(
            "/render?format=json&target={}&from={}&until={}{more}",
            encoded(target),
            START + from,
            START + until
        )
    };
    [
        range(6000, 9600, ""),
        range(6007, 20_011, "&maxDataPoints=20"),
        range(300, 24_000, "&maxDataPoints=1"),
        range(-100, 27_000, "&xFilesFactor=0.99&maxDataPoints=50"),
    ]
}

/// Calls that are put around each other: what they are called, and the arguments after the series.
const AROUND: [&str; 36] = [
    "scale(@,0.5)",
    "offset(@,3)",
    "absolute(@)",
    "sumSeries(@)",
    "averageSeries(@)",
    "maxSeries(@)",
    "aliasByNode(@,1,3)",
    "derivative(@)",
    "nonNegativeDerivative(@)",
    "perSecond(@)",
    "integral(@)",
    "keepLastValue(@)",
    "transformNull(@,1)",
    "summarize(@,'10min','max')",
    "summarize(@,'1h')",
    "hitcount(@,'1h')",
    "timeShift(@,'1h')",
    "movingAverage(@,5)",
    "movingMedian(@,'10min')",
    "consolidateBy(@,'sum')",
    "sortByMaxima(@)",
    "limit(@,2)",
    "highestMax(@,2)",
    "groupByNode(@,1,'sum')",
    "asPercent(@)",
    "exclude(@,'web1')",
    "removeBelowValue(@,5)",
    "nPercentile(@,90)",
    "alias(@,'x')",
    "sortByName(@)",
    "countSeries(@)",
    "isNonNull(@)",
    "interpolate(@)",
    "diffSeries(@)",
    "rangeOfSeries(@)",
    "group(@,net.slow.x.in)",
];

/// What is asked of `/metrics`.
const FOUND: [&str; 20] = [
    "find?query=*",
    "find?query=net.*",
    "find?query=net.*.*",
    "find?query=net.web1.cpu-0.if",
    "find?query=net.web1.cpu-0.if.*",
    "find?query=net.*.*.if.in",
    "find?query=net.{web1,db_1}.cpu-?.if.o*",
    "find?query=none.*",
    "find?query=net.*&wildcards=1",
    "find?query=net.slow.x.*&wildcards=1",
    "find?query=net.*&leavesOnly=1",
    "find?query=&format=json",
    "find?query=net.w&format=completer",
    "find?query=net.&format=completer&wildcards=1",
    "find?query=net..if&format=completer",
    "find?query=net.*.*&format=nodelist&position=1",
    "find?query=net.*&format=none",
    "expand?query=net.*.*&query=net.*",
    "expand?query=net.*.*.if.in&query=net.none&groupByExpr=1",
    "expand?query=net.slow.*.*&leavesOnly=1",
];

#[test]
fn renders_and_finds_what_graphite_web_does() {
    let Some(mut pair) = Pair::start(create) else { return };
    for seed in testkit::random::seeds(1) {
        let mut random = Random::new(seed);
        let listed = include_str!("graphite/targets.txt").lines().map(str::to_owned);
        let mut targets: Vec<String> = listed.filter(|_| seed == 0).collect();
        for _ in 0..60 {
            let leaf = random.pick(&["net.*.*.if.in", "net.web1.*.if.out", "net.web2.cpu-0.if.in"]);
            let depth = 2 + random.below(3);
            let around = |inner: String, _| random.pick(&AROUND).replace('@', &inner);
            targets.push((0..depth).fold(leaf.to_owned(), around));
        }
        let mut all: Vec<String> = targets.iter().flat_map(|target| requests(target)).collect();
        all.extend(FOUND.iter().map(|query| format!("/metrics/{query}")));
        let different: Vec<String> = all.iter().filter_map(|request| pair.difference(request)).collect();
        let count = different.len();
        assert!(count == 0, "seed {seed}: {count} of {}:\n{}", all.len(), different.concat());
    }
    pair.compared.require("answers", 80);
}
