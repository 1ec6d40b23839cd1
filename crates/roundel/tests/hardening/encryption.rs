//! TLS of the ports beside HTTP: what is refused there, what a client is told, and that it costs others nothing.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::time::{Duration, Instant};

use testkit::{Client, DEADLINE, Daemon, Kind, Running};

use crate::signer::Signer;
use crate::{CREATE, ROUNDEL};

const RRDTOOL: &str = env!("CARGO_BIN_EXE_rrdtool");
/// Clients that begin TLS and say no more.
const SLOW: usize = 2_000;

/// A daemon with TLS on each of its ports.
struct Guarded {
    daemon: Daemon,
    client: Client,
    signer: Signer,
    open: u16,
    /// Demands certificates of clients.
    closed: u16,
    agents: u16,
    http: u16,
    followers: u16,
    xml: [u16; 2],
    _place: tempfile::TempDir,
}

impl Guarded {
    fn start() -> Self {
        let place = tempfile::tempdir().unwrap();
        let mut daemon = testkit::daemon!(Kind::Stripes, place.path());
        let (signer, directory) = (Signer::new("ours"), daemon.directory().to_path_buf());
        fs::write(directory.join("ca.crt"), &signer.pem).unwrap();
        fs::write(directory.join("clients.crt"), &signer.pem).unwrap();
        for name in ["server", "client"] {
            signer.sign(
                &directory,
                name,
                if name == "server" { "localhost" } else { "hall-2.example" },
                2099,
            );
        }
        let [open, closed, agents, one, two, gmond, http, followers] = [0; 8].map(|_| testkit::free_port());
        let path = |name: &str| directory.join(name).display().to_string();
        let ours = format!("cert_file = \"{}\", key_file = \"{}\"", path("server.crt"), path("server.key"));
        let clients = path("clients.crt");
        daemon.configure(&format!(
            "[[listen]]\naddress = \"127.0.0.1:{open}\"\ntls = {{ {ours} }}\n\
             [[listen]]\naddress = \"127.0.0.1:{closed}\"\n\
             tls = {{ {ours}, client_auth_type = \"RequireAndVerifyClientCert\", client_ca_file = \"{clients}\" }}\n\
             [agents]\nlisten = [\"127.0.0.1:{agents}\"]\ntls = {{ {ours} }}\n\
             [gmond_listen]\nlisten = [\"udp://127.0.0.1:{gmond}\"]\n\
             [gmetad]\nxml_listen = [\"127.0.0.1:{one}\"]\ninteractive_listen = [\"127.0.0.1:{two}\"]\ntls = {{ {ours} }}\n\
             [http]\nlisten = [\"127.0.0.1:{http}\"]\n[http.web_config.tls_server_config]\n{}\n\
             [replication]\nlisten = [\"127.0.0.1:{followers}\"]\ntls = {{ {ours} }}\n",
            ours.replace(", ", "\n")
        ));
        let client = daemon.start();
        Guarded {
            daemon,
            client,
            signer,
            open,
            closed,
            agents,
            http,
            followers,
            xml: [one, two],
            _place: place,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.daemon.directory().join(name)
    }

    /// Runs `rrdtool` with this daemon's address, and what it trusts and shows.
    fn rrdtool(&self, port: u16, shown: Option<&str>, words: &[&str]) -> Output {
        let address = format!("tls:localhost:{port}");
        self.run(Command::new(RRDTOOL).args(words), &address, shown)
    }

    fn run(&self, command: &mut Command, address: &str, shown: Option<&str>) -> Output {
        command.env("RRDCACHED_ADDRESS", address).env("ROUNDEL_CA_FILE", self.path("ca.crt"));
        if let Some(name) = shown {
            command.env("ROUNDEL_CERT_FILE", self.path(&format!("{name}.crt")));
            command.env("ROUNDEL_KEY_FILE", self.path(&format!("{name}.key")));
        }
        command.env("TZ", "UTC").output().unwrap()
    }

    /// What `rrdtool` says of a connection that it cannot make.
    fn refusal(&self, port: u16, shown: Option<&str>) -> String {
        let output = self.rrdtool(port, shown, &["info", "x.rrd"]);
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    }

    fn openssl(&self, port: u16, words: &[&str], input: &str) -> (bool, String) {
        let mut child = Command::new("timeout")
            .args(["20", "openssl", "s_client", "-connect", &format!("127.0.0.1:{port}"), "-CAfile"])
            .arg(self.path("ca.crt"))
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).ok();
        let output = child.wait_with_output().unwrap();
        assert_ne!(output.status.code(), Some(124), "port {port} {words:?} does not end");
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        (!text.contains("no peer certificate available"), text)
    }
}

/// Everything until the other end closes the connection.
fn until_end(port: u16, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
    }
    answer
}

/// What `testssl` looks for, at one port.
fn probe(guarded: &Guarded, port: u16) {
    let check = |words: &[&str], want: bool| {
        let (done, text) = guarded.openssl(port, words, "");
        assert_eq!(done, want, "port {port} {words:?}: {text}");
        text
    };
    check(&["-tls1", "-cipher", "ALL:@SECLEVEL=0"], false);
    check(&["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], false);
    // Asked for as well, nothing is compressed.
    let text = check(&["-tls1_2", "-comp"], true);
    assert!(text.contains("Compression: NONE"), "port {port}: {text}");
    check(&["-tls1_3"], true);
    // No forward secrecy, no authentication of what is encrypted, none of the server, no encryption.
    check(&["-tls1_2", "-cipher", "AES128-GCM-SHA256:AES256-SHA:@SECLEVEL=0"], false);
    check(&["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA:ECDHE-ECDSA-AES256-SHA384:@SECLEVEL=0"], false);
    check(&["-tls1_2", "-cipher", "aNULL:eNULL:@SECLEVEL=0"], false);
    check(&["-tls1_2", "-cipher", "ALL:@SECLEVEL=0", "-sigalgs", "ECDSA+SHA1:RSA+SHA1"], false);
    check(&["-tls1_3", "-alpn", "h2"], port == guarded.http);
    // A client that begins another handshake in the connection, or goes on with a session of before.
    let shown = ["client.crt", "client.key"].map(|name| guarded.path(name).display().to_string());
    let shown = ["-cert", &shown[0], "-key", &shown[1]];
    let (_, text) = guarded.openssl(port, &[&shown[..], &["-tls1_2"]].concat(), "R\nPING\n");
    let begun = text.split_once("RENEGOTIATING").map(|(_, after)| after);
    let is_done = |after: &str| after.contains("verify return") || after.contains("PONG");
    // Ganglia's port answers and ends before that.
    let is_begun = begun.is_some() || guarded.xml.contains(&port);
    assert!(is_begun && !begun.is_some_and(is_done), "port {port}: {text}");
    // Over HTTP, a session may go on, until certificates change.
    if port != guarded.http {
        let words = [&shown[..], &["-tls1_2", "-reconnect"]].concat();
        let (_, text) = guarded.openssl(port, &words, "");
        assert!(text.contains("New, TLS") && !text.contains("Reused, TLS"), "port {port}: {text}");
        let answer = until_end(port, b"PING\n");
        assert_eq!(answer, b"-1 This port speaks TLS only.\n", "port {port}");
    }
}

#[test]
fn every_port_refuses_what_is_old_weak_or_plain() {
    let guarded = Guarded::start();
    let [one, two] = guarded.xml;
    let ports = [guarded.open, guarded.closed, guarded.agents, one, two, guarded.http, guarded.followers];
    // Some end a connection only after the time for a first line.
    std::thread::scope(|threads| {
        for port in ports {
            let guarded = &guarded;
            threads.spawn(move || probe(guarded, port));
        }
    });
    // Where there is no TLS, who begins it is not left waiting.
    let begun = Instant::now();
    let (done, text) = guarded.openssl(guarded.daemon.tcp_port(), &[], "");
    assert!(!done && begun.elapsed() < Duration::from_secs(5), "{text}");
    let answer = until_end(guarded.daemon.tcp_port(), &[22, 3, 1, 0, 5, 1, 0, 0, 1, 0]);
    assert_eq!(answer, b"-1 This port does not speak TLS.\n");
    let refusal = guarded.refusal(guarded.daemon.tcp_port(), None);
    assert!(refusal.contains("does not speak TLS"), "{refusal}");
}

#[test]
fn a_record_that_is_too_long_ends_its_handshake() {
    // A record of 65535 bytes is none.
    let guarded = Guarded::start();
    let mut hello = vec![22, 3, 1, 0xff, 0xff];
    hello.resize(100, 0);
    let begun = Instant::now();
    until_end(guarded.open, &hello);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(guarded.rrdtool(guarded.open, None, &["list", "/"]).status.success());
}

#[test]
fn certificates_are_judged_as_they_are_now() {
    let mut guarded = Guarded::start();
    assert_eq!(guarded.client.ask(&format!("CREATE x.rrd {CREATE}")).unwrap().status, 0);
    let works = |guarded: &Guarded, port, shown| {
        let output = guarded.rrdtool(port, shown, &["info", "x.rrd"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    works(&guarded, guarded.open, None);
    works(&guarded, guarded.closed, Some("client"));
    let check = |guarded: &Guarded, port, shown, want: &[&str]| {
        let refusal = guarded.refusal(port, shown);
        assert!(want.iter().all(|part| refusal.contains(part)), "{refusal} lacks one of {want:?}");
    };
    // Clients.
    let directory = guarded.daemon.directory().to_path_buf();
    let others = Signer::new("others");
    others.sign(&directory, "stranger", "hall-2.example", 2099);
    guarded.signer.sign(&directory, "old", "hall-2.example", 2020);
    check(&guarded, guarded.closed, None, &["demands a certificate", "ROUNDEL_CERT_FILE"]);
    check(&guarded, guarded.closed, Some("stranger"), &["does not accept the certificate"]);
    check(&guarded, guarded.closed, Some("old"), &["does not accept the certificate", "CertificateExpired"]);
    check(&guarded, guarded.closed, Some("missing"), &["missing.crt"]);
    // Who is removed from the file of authorities does not get in again.
    fs::write(directory.join("clients.crt"), &others.pem).unwrap();
    check(&guarded, guarded.closed, Some("client"), &["does not accept the certificate"]);
    works(&guarded, guarded.closed, Some("stranger"));
    // The daemon's own, each renewed while it runs.
    let renew = |name: &str, until| guarded.signer.sign(&directory, "server", name, until);
    renew("localhost", 2020);
    check(&guarded, guarded.open, None, &["localhost has expired", "renewed"]);
    renew("db1.example", 2099);
    check(&guarded, guarded.open, None, &["not for the name localhost", "db1.example"]);
    others.sign(&directory, "server", "localhost", 2099);
    check(&guarded, guarded.open, None, &["no authority that is trusted here", "ROUNDEL_CA_FILE"]);
    // What `openssl req -x509` makes is an authority at once.
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-subj",
            "/CN=localhost",
        ])
        .args(["-addext", "subjectAltName=DNS:localhost", "-out", "server.crt", "-keyout", "server.key"])
        .current_dir(&directory)
        .output()
        .unwrap();
    assert!(made.status.success());
    let trusted = fs::read(guarded.path("ca.crt")).unwrap();
    fs::copy(guarded.path("server.crt"), guarded.path("ca.crt")).unwrap();
    check(&guarded, guarded.open, None, &["CA:TRUE", "basicConstraints=CA:FALSE"]);
    fs::write(guarded.path("ca.crt"), trusted).unwrap();
    renew("localhost", 2098);
    works(&guarded, guarded.open, None);
    // One that cannot be used leaves the last good one in force, and is logged.
    fs::write(directory.join("server.crt"), "nonsense").unwrap();
    works(&guarded, guarded.open, None);
    assert!(
        guarded.daemon.log().contains("server.crt\\\" has no certificate in PEM")
            || guarded.daemon.log().contains("has no certificate in PEM")
    );
    // A connection that was there before goes on.
    assert_eq!(guarded.client.ask("PING").unwrap().message, "PONG");
}

/// A connection with TLS by openssl, which says a line and reads one.
struct Talk {
    _process: Running,
    input: ChildStdin,
    output: BufReader<std::process::ChildStdout>,
}

impl Talk {
    fn begin(guarded: &Guarded) -> Self {
        let mut command = Command::new("openssl");
        command
            .args([
                "s_client",
                "-quiet",
                "-verify_quiet",
                "-connect",
                &format!("127.0.0.1:{}", guarded.open),
                "-CAfile",
            ])
            .arg(guarded.path("ca.crt"))
            .stderr(Stdio::null());
        let (process, input, output) = Running::piped(&mut command);
        Talk { _process: process, input, output }
    }

    fn ping(&mut self) -> Duration {
        let begun = Instant::now();
        self.input.write_all(b"PING\n").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert_eq!(line, "0 PONG\n");
        begun.elapsed()
    }
}

#[test]
fn slow_handshakes_by_the_thousand_hold_up_nobody() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let more = rustix::process::Rlimit { current: limit.maximum, ..limit };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, more).unwrap();
    if limit.maximum.is_some_and(|most| most < 2 * SLOW as u64) {
        return testkit::skip("the system allows too few open files");
    }
    let guarded = Guarded::start();
    let mut before = Talk::begin(&guarded);
    before.ping();
    let slow: Vec<TcpStream> = (0..SLOW)
        .map(|number| {
            let mut stream = TcpStream::connect(("127.0.0.1", guarded.open)).unwrap();
            // Some send nothing at all.
            if number % 4 > 0 {
                stream.write_all(&[22, 3, 1, 2, 0, 1]).ok();
            }
            stream
        })
        .collect();
    let slowest = (0..50).map(|_| before.ping()).max().unwrap();
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    let begun = Instant::now();
    Talk::begin(&guarded).ping();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    // All but the newest have made room, and those have a deadline.
    let has_ended = |mut stream: &TcpStream| {
        stream.set_nonblocking(true).unwrap();
        !matches!(stream.read(&mut [0; 64]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
    };
    let ended = |streams: &[TcpStream]| streams.iter().filter(|stream| has_ended(stream)).count();
    assert!(ended(&slow) >= SLOW / 2, "{}", ended(&slow));
    while ended(&slow) < SLOW {
        assert!(begun.elapsed() < DEADLINE, "{} of {SLOW} have ended", ended(&slow));
        std::thread::sleep(Duration::from_millis(200));
    }
    before.ping();
}

#[test]
fn every_verb_answers_over_tls_as_without() {
    let guarded = Guarded::start();
    let tls = format!("tls:localhost:{}", guarded.open);
    let plain = format!("127.0.0.1:{}", guarded.daemon.tcp_port());
    let create =
        ["DS:a:GAUGE:20:0:U", "DS:b:COUNTER:20:0:U", "RRA:AVERAGE:0.5:1:20000", "RRA:MAX:0.5:10:900"];
    let run = |address: &str, words: &[&str]| guarded.run(Command::new(RRDTOOL).args(words), address, None);
    for (address, name) in [(&tls, "tls.rrd"), (&plain, "plain.rrd")] {
        let head = ["create", name, "-b", "1000000000", "-s", "10"];
        assert!(run(address, &[&head[..], &create].concat()).status.success());
        // In one call, so that it is a record of more than 16 kB.
        let values: Vec<String> =
            (1..4000).map(|n| format!("{}:{}.5:{}", 1_000_000_000 + n * 10, n, n * n)).collect();
        let words: Vec<&str> =
            ["update", name].into_iter().chain(values.iter().map(String::as_str)).collect();
        let output = run(address, &words);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let range = ["-s", "1000000000", "-e", "1000040000"];
    for verb in [
        &["dump", "tls.rrd"][..],
        &["info", "tls.rrd"],
        &["last", "tls.rrd"],
        &["lastupdate", "tls.rrd"],
        &["first", "tls.rrd"],
        &["list", "/"],
        &["fetch", "tls.rrd", "AVERAGE", range[0], range[1], range[2], range[3]],
        &["xport", range[0], range[1], range[2], range[3], "DEF:a=tls.rrd:a:AVERAGE", "XPORT:a:a"],
        &["graph", "-", range[0], range[1], range[2], range[3], "DEF:a=tls.rrd:a:AVERAGE", "LINE:a#f00"],
        &["flushcached", "tls.rrd"],
        &["tune", "tls.rrd", "-h", "a:30"],
        &["update", "none.rrd", "N:1"],
        &["fetch", "none.rrd", "AVERAGE"],
    ] {
        let (one, other) = (run(&tls, verb), run(&plain, verb));
        assert_eq!(one.stdout, other.stdout, "{verb:?}");
        // Errors name the daemon.
        let said = |stderr: &[u8], address: &str| String::from_utf8_lossy(stderr).replace(address, "DAEMON");
        assert_eq!(said(&one.stderr, &tls), said(&other.stderr, &plain), "{verb:?}");
        assert_eq!(one.status, other.status, "{verb:?}");
    }
    // What was written over either is the same.
    let of =
        |name: &str| run(&plain, &["fetch", name, "AVERAGE", range[0], range[1], range[2], range[3]]).stdout;
    assert!(of("tls.rrd").len() > 100_000 && of("tls.rrd") == of("plain.rrd"));
    let export = |address: &str, to: &str| {
        let to = guarded.path(to);
        let command = &mut Command::new(ROUNDEL);
        let output = guarded.run(
            command.args(["export", "--from", address]).arg("--to").arg(&to).arg("tls.rrd"),
            address,
            None,
        );
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::read(to.join("tls.rrd")).unwrap()
    };
    assert!(export(&tls, "one") == export(&plain, "other"));
}

#[test]
fn librrd_speaks_frames_over_tls() {
    let guarded = Guarded::start();
    let script = "import rrdtool, sys\n\
        d = ['--daemon', sys.argv[1]]\n\
        rrdtool.create('py.rrd', '-b', '1000000000', '-s', '10', 'DS:a:GAUGE:20:0:U', 'RRA:AVERAGE:0.5:1:9000', *d)\n\
        for n in range(1, 2000): rrdtool.update('py.rrd', *d, f'{1000000000 + n * 10}:{n}')\n\
        print(rrdtool.fetch('py.rrd', 'AVERAGE', '-s', '1000000000', '-e', '1000030000', *d))\n\
        print(rrdtool.info('py.rrd', *d), rrdtool.last('py.rrd', *d))\n";
    let run = |address: &str| {
        let mut command = Command::new("/usr/bin/python3");
        command
            .args(["-c", script, address])
            .env("LD_LIBRARY_PATH", testkit::librrd_directory(guarded.daemon.directory()).unwrap());
        let output = guarded.run(&mut command, address, None);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    let encrypted = run(&format!("tls:localhost:{}", guarded.open));
    let plain = run(&format!("127.0.0.1:{}", guarded.daemon.tcp_port()));
    assert!(encrypted.len() > 20_000 && encrypted == plain);
}

/// Answers one client of a port with these lines, one for each of its own; returns what it said.
fn answer_with(listener: &TcpListener, answers: &[&str]) -> Vec<String> {
    let (mut stream, _) = listener.accept().unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    let mut said = Vec::new();
    for answer in answers {
        said.extend(lines.next());
        stream.write_all(format!("{answer}\n").as_bytes()).unwrap();
    }
    said
}

#[test]
fn a_token_is_shown_first_and_never_in_the_open() {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let ask = |host: &str, allowed: bool| {
        let mut command = Command::new(RRDTOOL);
        command.args(["last", "x.rrd", "--daemon", &format!("{host}:{port}")]).env("ROUNDEL_TOKEN", "rt_9");
        command
            .envs(allowed.then_some(("ROUNDEL_TOKEN_PLAIN", "1")))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let said_by = |child: Child| {
        let output = child.wait_with_output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    let child = ask("127.0.0.1", false);
    assert_eq!(answer_with(&listener, &["0 authenticated as ann", "0 1000000000"])[0], "AUTH rt_9");
    assert_eq!(said_by(child), "1000000000\n");
    let child = ask("127.0.0.1", false);
    answer_with(&listener, &["-1 no such token"]);
    let said = said_by(child);
    assert!(said.contains("-1 no such token"), "{said}");
    // An address of this machine that others may reach; nothing is sent to find it.
    let probe = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    let Some(outside) = probe.connect("192.0.2.1:9").and_then(|()| probe.local_addr()).ok() else {
        return testkit::skip("this machine has no network");
    };
    let outside = outside.ip().to_string();
    let child = ask(&outside, false);
    assert_eq!(listener.accept().unwrap().0.read(&mut [0]).unwrap(), 0);
    let said = said_by(child);
    assert!(said.contains("is not sent unencrypted") && said.contains("ROUNDEL_TOKEN_PLAIN"), "{said}");
    let child = ask(&outside, true);
    assert_eq!(answer_with(&listener, &["0 authenticated as ann", "0 1000000000"])[0], "AUTH rt_9");
    assert_eq!(said_by(child), "1000000000\n");
}

#[test]
fn an_agent_sends_over_tls() {
    let mut guarded = Guarded::start();
    let place = tempfile::tempdir().unwrap();
    let config = place.path().join("agent.toml");
    let text = |trusted: &str| {
        format!(
            "[log]\nlevel = \"info\"\n[collect]\nhost = true\n[agent]\nname = \"hall-2\"\nspool = \"{}\"\n\
             store = \"tls:localhost:{}\"\nca_file = \"{}\"\n",
            place.path().join("spool").display(),
            guarded.agents,
            guarded.path(trusted).display()
        )
    };
    Signer::new("others").sign(guarded.daemon.directory(), "other", "x", 2099);
    fs::write(&config, text("other.crt")).unwrap();
    let start = || {
        let mut command = Command::new(ROUNDEL);
        command.args(["agent", "--config"]).arg(&config);
        Running::start(&mut command, place.path().join("log"))
    };
    let log = || fs::read_to_string(place.path().join("log")).unwrap();
    let wait = |what: &str, holds: &mut dyn FnMut() -> bool| {
        let begun = Instant::now();
        while !holds() {
            assert!(begun.elapsed() < DEADLINE, "no {what}: {}", log());
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let agent = start();
    wait("refusal", &mut || log().contains("no authority that is trusted here"));
    drop(agent);
    fs::write(&config, text("ca.crt")).unwrap();
    let _agent = start();
    wait("readings", &mut || {
        guarded.client.ask("LIST RECURSIVE /").unwrap().lines.join(" ").contains("hall-2/")
    });
    assert!(guarded.daemon.log().contains("an agent has connected"));
}
