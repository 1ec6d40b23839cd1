//! The executable from an operator's view: start, signals, personalities, import and export.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use testkit::{PidFile, Running, Signal, wait_for, wait_until};

const ROUNDEL: &str = env!("CARGO_BIN_EXE_roundel");

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(ROUNDEL, directory.path().join("rrdcached")).unwrap();
        std::fs::create_dir(directory.path().join("base")).unwrap();
        Place(directory)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    fn start(&self, program: &str, words: &[&str]) -> Running {
        let mut command = Command::new(program);
        command.args(words).current_dir(self.0.path()).env_remove("RRDCACHED_ADDRESS").env_remove("RUST_LOG");
        Running::quiet(&mut command)
    }

    fn command(&self, program: &str, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(words).current_dir(self.0.path()).env_remove("RRDCACHED_ADDRESS");
        command
    }

    fn run(&self, program: &str, words: &[&str]) -> Output {
        self.command(program, words).output().unwrap()
    }
}

fn connect(path: &Path) -> UnixStream {
    wait_for("the daemon to listen", || UnixStream::connect(path).ok())
}

fn say(path: &Path, line: &str) -> String {
    let mut stream = connect(path);
    stream.write_all(format!("{line}\n").as_bytes()).unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    answer
}

#[test]
fn a_stop_by_signal_keeps_everything() {
    for signal in [Signal::TERM, Signal::INT, Signal::USR1] {
        let place = Place::new();
        let words = ["serve", "--base", "base", "--store", "store", "--listen", "unix:sock"];
        let mut daemon = place.start(ROUNDEL, &words);
        let sock = place.path("sock");
        let create = "CREATE d/x.rrd -b 1000000000 -s 10 DS:a:GAUGE:20:0:U RRA:AVERAGE:0.5:1:9";
        assert_eq!(say(&sock, create), "0 RRD created OK\n");
        assert_eq!(say(&sock, "UPDATE d/x.rrd 1000000010:1"), "0 errors, enqueued 1 value(s).\n");
        daemon.signal(signal);
        assert!(daemon.wait().success(), "{signal:?}");
        assert!(!sock.exists());
        let daemon = place.start(ROUNDEL, &words);
        assert_eq!(say(&sock, "LAST d/x.rrd"), "0 1000000010\n");
        daemon.kill();
        // The socket of a daemon that was killed is replaced.
        let daemon = place.start(ROUNDEL, &words);
        assert_eq!(say(&sock, "LAST d/x.rrd"), "0 1000000010\n");
        drop(daemon);
    }
}

#[test]
fn a_reload_changes_permissions_and_nothing_else() {
    let place = Place::new();
    let config = |more: &str| {
        let text = format!("store = 'store'\nbase = 'base'\n[[listen]]\naddress = 'unix:sock'\n{more}");
        std::fs::write(place.path("roundel.toml"), text).unwrap();
    };
    config("");
    // The default name is found in the current directory.
    let daemon = place.start(ROUNDEL, &["serve"]);
    let sock = place.path("sock");
    assert_eq!(say(&sock, "PING"), "0 PONG\n");
    let until = |want: &str| wait_until(want, || say(&sock, "PING") == want);
    config("permissions = ['STATS']\n");
    daemon.signal(Signal::HUP);
    until("-1 Permission denied.\n");
    assert!(say(&sock, "STATS").starts_with("9 "));
    config("permissions = ['NONSENSE']\n");
    daemon.signal(Signal::HUP);
    config("permissions = ['PING']\n");
    daemon.signal(Signal::HUP);
    until("0 PONG\n");
    assert!(daemon.terminate().success());
}

#[test]
fn a_socket_may_have_the_longest_possible_path() {
    let place = Place::new();
    for bytes in [102, 107] {
        let directory = place.text("");
        let name = "s".repeat(bytes - directory.len());
        let sock = place.path(&name);
        assert_eq!(sock.as_os_str().len(), bytes);
        let address = format!("unix:{}", sock.display());
        let daemon =
            place.start(ROUNDEL, &["serve", "--base", "base", "--store", "store", "--listen", &address]);
        assert_eq!(say(&sock, "PING"), "0 PONG\n");
        assert!(daemon.terminate().success());
    }
}

#[test]
fn two_daemons_cannot_share_a_store() {
    let place = Place::new();
    let daemon =
        place.start(ROUNDEL, &["serve", "--base", "base", "--store", "store", "--listen", "unix:sock"]);
    assert_eq!(say(&place.path("sock"), "PING"), "0 PONG\n");
    let same_socket =
        place.run(ROUNDEL, &["serve", "--base", "other-base", "--store", "other", "--listen", "unix:sock"]);
    assert!(!same_socket.status.success());
    assert!(String::from_utf8_lossy(&same_socket.stderr).contains("another daemon answers there"));
    let same_store =
        place.run(ROUNDEL, &["serve", "--base", "base", "--store", "store", "--listen", "unix:two"]);
    assert!(!same_store.status.success());
    assert!(String::from_utf8_lossy(&same_store.stderr).contains("cannot open store"));
    assert!(!place.path("two").exists());
    assert_eq!(say(&place.path("sock"), "PING"), "0 PONG\n");
    drop(daemon);
}

#[test]
fn as_rrdcached_it_goes_to_the_background() {
    let place = Place::new();
    let sock = place.text("sock");
    let pid = place.text("pid");
    let base = place.text("base");
    let _daemon = PidFile(place.path("pid"));
    let output = place.run(
        &place.text("rrdcached"),
        &["-m", "0600", "-l", &sock, "-b", &base, "-p", &pid, "-j", "journal", "-B", "-w", "60"],
    );
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("-w"), "{output:?}");
    assert_eq!(say(Path::new(&sock), "PING"), "0 PONG\n");
    let mode = std::fs::metadata(&sock).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let number = std::fs::read_to_string(&pid).unwrap();
    assert!(Command::new("kill").arg(number.trim()).status().unwrap().success());
    wait_until("the daemon to end", || !Path::new(&pid).exists());
    assert!(!Path::new(&sock).exists());
}

#[test]
fn rrd_files_are_imported_and_exported_with_and_without_a_daemon() {
    let place = Place::new();
    let tool = |words: &[&str]| {
        let output = place.run("/usr/bin/rrdtool", words);
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    std::fs::create_dir_all(place.path("tree/d")).unwrap();
    for name in ["tree/a.rrd", "tree/d/b c.rrd"] {
        tool(&["create", name, "-b", "1000000000", "-s", "10", "DS:a:GAUGE:20:0:U", "RRA:AVERAGE:0.5:1:9"]);
        tool(&["update", name, "1000000010:1", "1000000027:3.25"]);
    }
    std::fs::write(place.path("tree/junk.rrd"), "junk").unwrap();
    let daemon =
        place.start(ROUNDEL, &["serve", "--base", "base", "--store", "store", "--listen", "unix:sock"]);
    let sock = place.path("sock");
    assert_eq!(say(&sock, "PING"), "0 PONG\n");
    let import = place.run(ROUNDEL, &["import", "tree", "--to", "unix:sock"]);
    let text = String::from_utf8_lossy(&import.stdout);
    assert!(!import.status.success() && text.contains("imported 2 RRDs"), "{import:?}");
    assert!(String::from_utf8_lossy(&import.stderr).contains("tree/junk.rrd: "), "{import:?}");
    let check = |directory: &str| {
        for name in ["a.rrd", "d/b c.rrd"] {
            let before = tool(&["dump", &format!("tree/{name}")]);
            let after = tool(&["dump", &format!("{directory}/{name}")]);
            assert!(before == after, "{directory}/{name} differs");
        }
    };
    // However the daemon is given.
    let whole = sock.display().to_string();
    for (index, from) in ["sock", "./sock", "unix:sock", &whole].into_iter().enumerate() {
        let to = format!("out{index}");
        let export = place.run(ROUNDEL, &["export", "--all", "--to", &to, "--from", from]);
        assert!(export.status.success(), "{export:?}");
        check(&to);
    }
    let mut asking = place.command(ROUNDEL, &["export", "--all", "--to", "out-environment"]);
    let export = asking.env("RRDCACHED_ADDRESS", "unix:sock").output().unwrap();
    assert!(export.status.success(), "{export:?}");
    check("out-environment");
    let nobody = place.run(ROUNDEL, &["export", "--all", "--to", "out-none", "--from", "unix:nobody"]);
    assert!(
        String::from_utf8_lossy(&nobody.stderr).contains("cannot talk to the daemon at \"unix:nobody\""),
        "{nobody:?}"
    );
    assert!(daemon.terminate().success());
    let export =
        place.run(ROUNDEL, &["export", "a.rrd", "d/b c.rrd", "--to", "out-offline", "--from", "store"]);
    assert!(export.status.success(), "{export:?}");
    check("out-offline");
    let none = place.run(ROUNDEL, &["export", "none", "--to", "out-missing", "--from", "store"]);
    assert!(!none.status.success());
    assert!(String::from_utf8_lossy(&none.stderr).contains("none: No such file or directory"));

    // A directory that is no store is not made one, and what opening a store finds is said: it is mended then.
    std::fs::create_dir(place.path("empty")).unwrap();
    let wrong = place.run(ROUNDEL, &["export", "--all", "--to", "out-wrong", "--from", "empty"]);
    assert!(!wrong.status.success() && std::fs::read_dir(place.path("empty")).unwrap().next().is_none());
    let wrong = place.run(ROUNDEL, &["import", "tree", "--to", "out-offline"]);
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("is no store"), "{wrong:?}");
    for entry in std::fs::read_dir(place.path("store/shard-000")).unwrap().map(Result::unwrap) {
        if entry.file_name().to_string_lossy().starts_with("log-") {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
    let damaged = place.run(ROUNDEL, &["export", "--all", "--to", "out-damaged", "--from", "store"]);
    let said = String::from_utf8_lossy(&damaged.stderr);
    assert!(!damaged.status.success() && said.contains("the log is damaged"), "{said}");
}

#[test]
fn validate_refuses_what_serve_refuses_and_passes_what_it_passes() {
    let place = Place::new();
    let refused = [
        ("pid_file = 'no/pid'", "pid_file"),
        ("[http]\nlisten = ['nonsense']", "[http] listen"),
        ("[[listen]]\naddress = 'unix:s'\n[[listen]]\naddress = 'unix:s'", "listens there already"),
        ("[collectd]\nlisten = ['udp://127.0.0.1:1']\ntypes = ['no.db']", "no.db"),
        ("[limits]\nconnections = 0", "connections = 0"),
        ("[stripes]\nshards = 100000", "from 1 to 256"),
    ];
    for (text, want) in refused {
        std::fs::write(place.path("x.toml"), text).unwrap();
        let said = [&["validate", "x.toml"][..], &["serve", "--config", "x.toml"]].map(|words| {
            let output = place.run(ROUNDEL, words);
            assert!(!output.status.success(), "{words:?}: {text}");
            String::from_utf8_lossy(&output.stderr).into_owned()
        });
        assert!(said.iter().all(|said| said.contains(want)), "{text}: {said:?}");
        assert!(!place.path("var").exists(), "{text}: something was made");
    }
    std::fs::write(place.path("x.toml"), "base = 'base'\n[[listen]]\naddress = 'unix:sock'\n").unwrap();
    let daemon = place.start(ROUNDEL, &["serve", "--config", "x.toml"]);
    assert_eq!(say(&place.path("sock"), "PING"), "0 PONG\n");
    // Of a daemon that runs already, too.
    assert!(place.run(ROUNDEL, &["validate", "x.toml"]).status.success());
    assert!(daemon.terminate().success());
}

#[test]
fn invalid_arguments_are_refused_with_advice() {
    let place = Place::new();
    std::fs::write(place.path("bad.toml"), "layout = 'stripes'\nbse = '.'\n").unwrap();
    let output = place.run(ROUNDEL, &["validate", "bad.toml"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("bad.toml:2:"), "{output:?}");
    let output = place.run(&place.text("rrdcached"), &["-w", "x"]);
    assert_eq!(output.status.code(), Some(2));
    let output = place.run(ROUNDEL, &["rrdcached", "-P", "FOO"]);
    assert_eq!(output.status.code(), Some(4));
    let output = place.run(ROUNDEL, &["inspect", "bad.toml"]);
    assert!(!output.status.success());
    let mut text = String::new();
    BufReader::new(&*output.stderr).read_to_string(&mut text).unwrap();
    assert!(text.contains("cannot tell what \"bad.toml\" is"), "{text}");
}

#[test]
fn other_machines_are_let_in_by_tokens_or_in_words() {
    let place = Place::new();
    let config = |text: &str| {
        let text = format!("store = 'store'\nbase = 'base'\n[[listen]]\naddress = 'unix:sock'\n{text}");
        std::fs::write(place.path("roundel.toml"), text).unwrap();
    };
    let validated = || {
        let output = place.run(ROUNDEL, &["validate"]);
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let open = [
        ("[[listen]]\naddress = '0.0.0.0:0'\n", "anonymous = 'read'\n", "[[listen]] address"),
        ("[http]\nlisten = ['0.0.0.0:0']\n", "anonymous = 'all'\n", "[http] listen"),
        ("[agents]\nlisten = ['0.0.0.0:0']\n", "open = true\n", "[agents] listen"),
    ];
    for (section, word, key) in open {
        config(section);
        let (is_good, said) = validated();
        assert!(!is_good && said.contains(key) && said.contains("roundel token add"), "{section}: {said}");
        config(&format!("{section}{word}"));
        assert_eq!(validated(), (true, String::new()), "{section}{word}");
    }
    config("[[listen]]\naddress = '127.0.0.1:0'\nanonymous = 'everything'\n");
    assert!(validated().1.contains("roundel.toml:7: anonymous: \"everything\""), "{}", validated().1);
    config("[[access.user]]\nname = 'a'\nread = ['/x']\n");
    assert!(validated().1.contains("[[access.user]] \"a\": read \"/x\""), "{}", validated().1);

    config(&format!("[access]\naudit = 'audit'\n{}", open[0].0));
    let token = |words: &[&str]| place.run(ROUNDEL, &[&["token"], words].concat());
    let failed = |words: &[&str], cause: &str| {
        let output = token(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(cause), "{words:?}: {said}");
    };
    failed(&["add", "a"], "nothing could be done with it");
    failed(&["add", "a b", "--read", "**"], "cannot use the name");
    failed(&["add", "a", "--read", "/x"], "--read \"/x\"");
    failed(&["add", "a", "--read", "**", "--expires", "0"], "such as 90d");
    failed(&["revoke", "a"], "there is no token \"a\"");
    let words = ["add", "ann", "--read", "net/**", "--write", "hosts/{name}/**", "--expires", "90d"];
    let made = token(&words);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let secret = String::from_utf8(made.stdout).unwrap();
    assert!(secret.starts_with("rdl_"), "{secret}");
    failed(&words, "there is one of that name");
    let listed = String::from_utf8(token(&["list"]).stdout).unwrap();
    assert!(listed.starts_with("ann  read net/**  write hosts/{name}/**  until 20"), "{listed}");
    let file = std::fs::read_to_string(place.path("store/tokens")).unwrap();
    assert!(!file.contains(secret.trim()), "{file}");
    let mode = std::fs::metadata(place.path("store/tokens")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // Now it starts, and the token is good for what it says.
    let daemon = place.start(ROUNDEL, &["serve"]);
    let mut stream = connect(&place.path("sock"));
    let definition = "DS:a:GAUGE:20:0:U RRA:AVERAGE:0.5:1:9";
    writeln!(stream, "AUTH {secret}CREATE hosts/ann/x.rrd {definition}").unwrap();
    writeln!(stream, "CREATE hosts/bob/x.rrd {definition}\nQUIT").unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..2], ["0 authenticated as ann", "0 RRD created OK"], "{said}");
    assert!(lines[2].contains("Permission denied"), "{said}");
    drop(daemon);
    assert!(token(&["revoke", "ann"]).status.success());
    assert!(token(&["list"]).stdout.is_empty());
    let audit = std::fs::read_to_string(place.path("audit")).unwrap();
    let count = |what: &str| audit.matches(&format!("\"what\":\"{what}\"")).count();
    assert_eq!(["token", "create", "refused"].map(count), [2, 1, 1], "{audit}");
    assert!(audit.lines().last().unwrap().contains("\"name\":\"ann\",\"detail\":\"revoked\""), "{audit}");
}

#[test]
fn the_daemon_confines_itself_unless_it_must_run_programs() {
    let place = Place::new();
    let confined = |more: &str| {
        let text = format!("store = 'store'\nbase = 'base'\n[[listen]]\naddress = 'unix:sock'\n{more}");
        std::fs::write(place.path("roundel.toml"), text).unwrap();
        let daemon = place.start(ROUNDEL, &["serve"]);
        assert_eq!(say(&place.path("sock"), "PING"), "0 PONG\n");
        let threads = std::fs::read_dir(format!("/proc/{}/task", daemon.id())).unwrap();
        let of_thread = |thread: std::io::Result<std::fs::DirEntry>| {
            let status = std::fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
            let value = |key: &str| {
                status.lines().find_map(|line| line.strip_prefix(key)).map(|rest| rest.trim().to_string())
            };
            (value("NoNewPrivs:"), value("Seccomp:"))
        };
        let found: Vec<_> = threads.map(of_thread).collect();
        assert!(!found.is_empty());
        found.iter().all(|found| *found == (Some("1".to_string()), Some("2".to_string())))
    };
    assert!(confined(""));
    std::fs::write(place.path("mrtg.cfg"), "WorkDir: /nowhere\n").unwrap();
    assert!(!confined("[[mrtg]]\nconfig = 'mrtg.cfg'\n"));
    assert!(confined("[[mrtg]]\nconfig = 'mrtg.cfg'\nprograms = false\n"));
}

#[test]
fn our_rrdtool_does_what_its_token_says() {
    let place = Place::new();
    let text = "store = 'store'\nbase = 'base'\n[[listen]]\naddress = 'unix:sock'\nanonymous = 'none'\n";
    std::fs::write(place.path("roundel.toml"), text).unwrap();
    let token = |words: &[&str]| {
        String::from_utf8(place.run(ROUNDEL, &[&["token", "add"], words].concat()).stdout).unwrap()
    };
    let all = token(&["root", "--read", "**", "--write", "**", "--operate"]);
    let some = token(&["ann", "--read", "net/**", "--write", "net/*.rrd"]);
    std::fs::write(place.path("token"), &some).unwrap();
    let _daemon = place.start(ROUNDEL, &["serve"]);
    connect(&place.path("sock"));
    for directory in ["net", "secret", "none", "other"] {
        std::fs::create_dir(place.path("base").join(directory)).unwrap();
    }
    let rrdtool = |name: &str, value: &str, line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let address = place.text("sock");
        let mut command = place.command(env!("CARGO_BIN_EXE_rrdtool"), &words);
        command.current_dir(place.path("base")).env("RRDCACHED_ADDRESS", address).env(name, value);
        let output = command.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    };
    let definition = "-b 1000000000 -s 10 DS:a:GAUGE:20:0:U RRA:AVERAGE:0.5:1:9";
    for name in ["net/a.rrd", "secret/a.rrd"] {
        let (is_good, said) = rrdtool("ROUNDEL_TOKEN", all.trim(), &format!("create {name} {definition}"));
        assert!(is_good, "{said}");
    }
    let file = place.text("token");
    let ann = |line: &str| rrdtool("ROUNDEL_TOKEN_FILE", &file, line);
    for line in [
        "update net/a.rrd 1000000010:5",
        "lastupdate net/a.rrd",
        "fetch net/a.rrd AVERAGE -s 1000000000 -e 1000000010",
        "info net/a.rrd",
    ] {
        let (is_good, said) = ann(line);
        assert!(is_good, "{line}: {said}");
    }
    assert_eq!(ann("list /"), (true, "net\n".to_string()));
    for line in ["update secret/a.rrd 1000000010:5", "info secret/a.rrd", "info none/a.rrd"] {
        let (is_good, said) = ann(line);
        assert!(!is_good && said.contains("No such file"), "{line}: {said}");
    }
    let (is_good, said) = ann(&format!("create other/a.rrd {definition}"));
    assert!(!is_good && said.contains("Permission denied"), "{said}");
    let (is_good, said) = rrdtool("ROUNDEL_TOKEN", "rdl_unknown", "info net/a.rrd");
    assert!(!is_good && said.contains("this token is not known"), "{said}");
    let (is_good, said) = rrdtool("UNUSED", "", "info net/a.rrd");
    assert!(!is_good && said.contains("Permission denied"), "{said}");
}
