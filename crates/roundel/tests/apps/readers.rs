//! Programs that read RRDs and write none: graphite-web's reader, collection3, Ganglia's graph.php. What they show of placeholders is
//! what they show of files with Debian's library and rrdtool, and so is what they show of a mounted store with these.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::{Daemon, Kind, peer};

use super::mounting::{Mount, can_mount};
use super::{our_tools, output};

const START: i64 = 1_700_000_000;

/// A directory of files and a daemon's tree with the same RRDs in them, and that daemon's store, mounted.
struct Trees {
    /// Where this machine can mount. The first to go.
    mount: Option<Mount>,
    daemon: Daemon,
    /// Where our rrdtool is.
    tools: PathBuf,
    /// Where our librrd is.
    library: PathBuf,
    directory: tempfile::TempDir,
}

impl Trees {
    fn new(rrds: &[(&str, &str)]) -> Self {
        let directory = tempfile::Builder::new().prefix("readers-").tempdir().unwrap();
        let mut daemon = testkit::daemon!(Kind::Stripes, &directory.path().join("daemon"));
        daemon.start();
        let tools = our_tools(directory.path());
        let library = testkit::librrd_directory(directory.path()).unwrap();
        let mount = can_mount().then(|| Mount::of(&daemon, "ro"));
        let trees = Trees { mount, directory, daemon, tools, library };
        for (place, rrdtool) in
            [(trees.plain(), PathBuf::from("/usr/bin/rrdtool")), (trees.ours(), trees.tools.join("rrdtool"))]
        {
            for (name, words) in rrds {
                make(&rrdtool, &place.join(name), words);
            }
        }
        // Times of placeholders follow at once.
        for (name, _) in rrds {
            let mut flush = trees.on_ours("/usr/bin/rrdtool");
            output(flush.args(["flushcached", "--daemon"]).arg(trees.address()).arg(name));
        }
        trees
    }

    fn plain(&self) -> PathBuf {
        self.directory.path().join("plain")
    }

    fn ours(&self) -> PathBuf {
        self.daemon.base()
    }

    fn address(&self) -> String {
        format!("unix:{}", self.daemon.socket().display())
    }

    /// A program with Debian's library, on files.
    fn on_files(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.plain()).env("TZ", "UTC").env_remove("RRDCACHED_ADDRESS");
        command
    }

    /// The same in the mount, and where that is.
    fn on_mount(&self, program: &str) -> Option<(Command, &Path)> {
        let place = &self.mount.as_ref()?.directory;
        let mut command = self.on_files(program);
        command.current_dir(place);
        Some((command, place))
    }

    /// The same with our library and rrdtool, on placeholders.
    fn on_ours(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let path = format!("{}:{}", self.tools.display(), std::env::var("PATH").unwrap());
        command.current_dir(self.ours()).env("TZ", "UTC").env_remove("RRDCACHED_ADDRESS");
        command.env("PATH", path).env("LD_LIBRARY_PATH", &self.library);
        command
    }
}

/// Creates an RRD and gives it forty readings, ten seconds apart.
fn make(rrdtool: &Path, file: &Path, words: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let start = START.to_string();
    output(
        Command::new(rrdtool).arg("create").arg(file).args(["-s", "10", "-b", &start]).args(words.split(' ')),
    );
    let count = words.matches("DS:").count();
    let reading = |number: i64| {
        let values: String =
            (1..=count as i64).map(|ds| format!(":{}", (number * number * ds) % 37)).collect();
        format!("{}{values}", START + 10 * number)
    };
    output(Command::new(rrdtool).arg("update").arg(file).args((1..=40).map(reading)));
}

const LOAD: &str = "DS:shortterm:GAUGE:20:U:U DS:midterm:GAUGE:20:U:U DS:longterm:GAUGE:20:U:U \
                    RRA:AVERAGE:0.1:1:1200 RRA:MIN:0.1:1:1200 RRA:MAX:0.1:1:1200 RRA:AVERAGE:0.1:7:1200";

/// What graphite-web's reader says of an RRD: its data sources, how long it goes back, when it ends, and its values.
const GRAPHITE: &str = r"
import json, os, sys
os.environ['DJANGO_SETTINGS_MODULE'] = 'graphite.settings'
from django.conf import settings
settings.FLUSHRRDCACHED = sys.argv[1]
settings.RRD_CF = 'AVERAGE'
from graphite.readers.rrd import RRDReader
for source in sorted(RRDReader.get_datasources('h1/load/load.rrd')):
    reader = RRDReader('h1/load/load.rrd', source)
    info, values = reader.fetch(1700000000, 1700000390)
    print(json.dumps([source, RRDReader.get_retention('h1/load/load.rrd'), info, list(values)]))
print(int(next(iter(reader.get_intervals())).end))
";

#[test]
fn graphite_web_reads_placeholders_and_a_mount() {
    if peer::debian("graphite-web", "/usr/lib/python3/dist-packages/graphite").is_none() {
        return;
    }
    let trees = Trees::new(&[("h1/load/load.rrd", LOAD)]);
    // A file was changed when the test wrote it, long after its end.
    let stamp = format!("@{}", START + 400);
    output(trees.on_files("touch").args(["-d", &stamp, "h1/load/load.rrd"]));
    // As of then, because a reader does not look further back than the RRD goes.
    let at = |mut command: Command, flush: &str| {
        command
            .env("LD_PRELOAD", testkit::faketime())
            .env("FAKETIME_FMT", "%s")
            .env("FAKETIME", (START + 450).to_string());
        output(command.args(["-W", "ignore", "-c", GRAPHITE, flush]))
    };
    let want = at(trees.on_files("/usr/bin/python3"), "");
    assert!(want.contains("midterm") && want.ends_with(&format!("\n{}\n", START + 400)), "{want}");
    assert_eq!(at(trees.on_ours("/usr/bin/python3"), ""), want);
    assert_eq!(at(trees.on_ours("/usr/bin/python3"), &trees.address()), want, "with FLUSHRRDCACHED");
    if let Some((python, _)) = trees.on_mount("/usr/bin/python3") {
        assert_eq!(at(python, ""), want, "in the mount");
    }
}

#[test]
fn collection3_shows_placeholders_and_a_mount() {
    if peer::debian("collectd-core", "/usr/share/doc/collectd-core/examples/collection3").is_none() {
        return;
    }
    let trees = Trees::new(&[
        ("h1/load/load.rrd", LOAD),
        (
            "h1/cpu-0/cpu-idle.rrd",
            "DS:value:DERIVE:20:0:U RRA:AVERAGE:0.1:1:1200 RRA:MIN:0.1:1:1200 RRA:MAX:0.1:1:1200",
        ),
    ]);
    let numbers = |mut perl: Command, tree: &Path, rrdtool: &Path, query: &str| {
        let here = trees.directory.path().join(tree.file_name().unwrap()).with_extension("collection3");
        fs::create_dir_all(&here).unwrap();
        output(
            Command::new("cp").args(["-aT", "/usr/share/doc/collectd-core/examples/collection3"]).arg(&here),
        );
        let config = here.join("etc/collection.conf");
        let text = fs::read_to_string(&config).unwrap();
        fs::write(&config, format!("DataDir \"{}\"\n{text}", tree.display())).unwrap();
        perl.current_dir(here.join("bin")).env("PERL5LIB", "../lib").env("REQUEST_METHOD", "GET");
        let query = format!("hostname=h1;begin={START};end={};{query}", START + 390);
        let picture = perl.arg("graph.cgi").env("QUERY_STRING", &query).output().unwrap();
        let png = picture.stdout.windows(4).position(|bytes| bytes == b"\x89PNG").expect("a picture");
        let size = picture.stdout[png..png + 24].to_vec();
        // The arguments with which it draws, to print what the picture says.
        let said = output(perl.env("QUERY_STRING", format!("{query};debug=1")));
        let arguments = said.rsplit_once(");\n").expect("arguments after the objects").1;
        let arguments: Vec<String> = arguments
            .lines()
            .take_while(|line| !line.starts_with("Last-Modified"))
            .map(|line| line.trim_end_matches(',').replacen("GPRINT:", "PRINT:", 1))
            .filter(|line| !line.is_empty())
            .collect();
        let mut graph = Command::new(rrdtool);
        graph
            .args(["graph", "/dev/null", "-s", &START.to_string(), "-e", &(START + 390).to_string()])
            .args(&arguments)
            .env("TZ", "UTC");
        (
            size,
            output(&mut graph),
            said.contains(&format!("Last-modified: {}", "Tue, 14 Nov 2023 22:20:00 GMT")),
        )
    };
    for query in ["plugin=load;type=load", "plugin=cpu;plugin_instance=0;type=cpu;type_instance=idle"] {
        let want = numbers(trees.on_files("perl"), &trees.plain(), Path::new("/usr/bin/rrdtool"), query);
        let ours = numbers(trees.on_ours("perl"), &trees.ours(), &trees.tools.join("rrdtool"), query);
        assert!(want.1.lines().count() > 3, "{}", want.1);
        assert_eq!((&ours.0, &ours.1), (&want.0, &want.1), "{query}");
        assert!(ours.2, "a placeholder was modified with the last update");
        if let Some((perl, place)) = trees.on_mount("perl") {
            let mounted = numbers(perl, place, Path::new("/usr/bin/rrdtool"), query);
            assert_eq!((mounted.0, mounted.1, mounted.2), (want.0, want.1, true), "{query}, mounted");
        }
    }
}

#[test]
fn ganglias_web_front_end_shows_placeholders_and_a_mount() {
    if peer::debian("ganglia-webfrontend", "/usr/share/ganglia-webfrontend").is_none() {
        return;
    }
    let sum = "DS:sum:GAUGE:120:U:U RRA:AVERAGE:0.5:1:5856 RRA:AVERAGE:0.5:4:20160";
    let names =
        ["load_one", "cpu_user", "cpu_system", "cpu_idle"].map(|metric| format!("c1/h1/{metric}.rrd"));
    let rrds: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), sum)).collect();
    let trees = Trees::new(&rrds);
    let web = trees.directory.path().join("web");
    output(Command::new("cp").args(["-aL", "/usr/share/ganglia-webfrontend"]).arg(&web));
    for name in ["compiled", "cache", "sessions"] {
        fs::create_dir(trees.directory.path().join(name)).unwrap();
    }
    // Debian's does not work with Debian's PHP 8, which passes four arguments.
    let api = web.join("lib/common_api.php");
    let text = fs::read_to_string(&api).unwrap();
    fs::write(&api, text.replace("$line, $context)", "$line, $context = null)")).unwrap();
    let show = |mut php: Command, tree: &Path, rrdtool: &Path, query: &str| {
        let root = trees.directory.path().display();
        let config = format!(
            "<?php\n$conf['gweb_confdir'] = '{root}'; $conf['gmetad_root'] = '{root}'; $conf['rrds'] = '{}'; $conf['rrdtool'] = '{}';\n\
             $conf['dwoo_compiled_dir'] = '{root}/compiled'; $conf['dwoo_cache_dir'] = '{root}/cache'; $conf['ganglia_port'] = 1;\n",
            tree.display(),
            rrdtool.display()
        );
        fs::write(web.join("conf.php"), config).unwrap();
        php.current_dir(&web).args(["-q", "-d", "display_errors=0", "-d"]);
        php.arg(format!("session.save_path={root}/sessions"));
        php.env("SCRIPT_FILENAME", web.join("graph.php"))
            .env("REDIRECT_STATUS", "200")
            .env("REQUEST_METHOD", "GET");
        let range = format!("c=c1&h=h1&r=custom&cs={START}&ce={}", START + 390);
        let answer = php.env("QUERY_STRING", format!("{range}&{query}")).output().unwrap();
        assert!(answer.status.success(), "{answer:?}");
        let end =
            answer.stdout.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("the end of the header");
        answer.stdout[end + 4..].to_vec()
    };
    let both = |query: &str| {
        let want = show(trees.on_files("php-cgi"), &trees.plain(), Path::new("/usr/bin/rrdtool"), query);
        (want, show(trees.on_ours("php-cgi"), &trees.ours(), &trees.tools.join("rrdtool"), query))
    };
    for query in
        ["m=load_one&v=1&csv=1", "m=cpu_user&v=1&json=1", "g=load_report&json=1", "g=cpu_report&csv=1"]
    {
        let (want, ours) = both(query);
        let [want, ours] = [want, ours].map(|bytes| String::from_utf8(bytes).unwrap());
        assert!(want.len() > 500, "{query}: {want}");
        assert_eq!(ours, want, "{query}");
        if let Some((php, place)) = trees.on_mount("php-cgi") {
            let mounted = show(php, place, Path::new("/usr/bin/rrdtool"), query);
            assert_eq!(String::from_utf8_lossy(&mounted), want, "{query}, mounted");
        }
        // Debian's rrdtool does, too, when it knows the daemon.
        let mut php = trees.on_files("php-cgi");
        php.env("RRDCACHED_ADDRESS", trees.address());
        let told = show(php, &trees.ours(), Path::new("/usr/bin/rrdtool"), query);
        assert_eq!(String::from_utf8_lossy(&told), want, "{query}");
    }
    let (want, ours) = both("m=load_one&v=1&z=large");
    assert!(want.starts_with(b"\x89PNG"), "{}", String::from_utf8_lossy(&want));
    assert_eq!(ours[..24], want[..24]);
}
