//! What safety costs: W1 with TLS and a token, with a backup to a local S3 server, and with a follower that has to have each value, against W1
//! without; and how soon a store is back.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::Bench;
use super::subject::Subject;
use crate::Outcome;
use crate::builds::Program;
use crate::client::Client;
use crate::daemon::{Daemon, Kind};
use crate::figures::{Goal, Runs, Unit};
use crate::report::Row;
use crate::secure::Certificate;
use crate::workload::{Shape, Workload};

/// Rounds of a run.
const ROUNDS: u64 = 90;
/// Longest wait for a copy, a round of the backup, or the rest of a restore.
const WAIT_MAX: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(20);

/// What was measured.
#[derive(Default)]
struct Measured {
    plain: Runs,
    /// Over TCP, without TLS and with it.
    tcp: Runs,
    secure: Runs,
    tcp_cpu: Runs,
    secure_cpu: Runs,
    backed_up: Runs,
    replicated: Runs,
    /// Bytes per value that the daemon wrote, and that were sent.
    written: Runs,
    sent: Runs,
    /// Seconds from the beginning of the command that restores.
    first_answer: Runs,
    complete: Runs,
}

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> Outcome<()> {
    if bench.is_against() {
        bench.report.omit("Not measured", "Safe: its rows compare the build with itself".to_string());
        return Ok(());
    }
    let program = bench.pair(Kind::Roundel)[1].clone();
    let measured = measure(bench, &program)?;
    for row in rows(measured) {
        bench.report.row(row);
    }
    bench.report.note(
        "Safe",
        format!(
            "Five daemons of this build in turn, {ROUNDS} rounds a run (BATCH over a UNIX socket, until drained): one alone; two over TCP of \
             this machine, one of them with TLS 1.3 and a token; one with `[backup]` to versitygw on this machine, interval 1 s, unencrypted; one with a follower on this machine and `ack = \
             \"replica\"`. Peer, client, S3 server and follower share the cores. Bytes sent are roundel_backup_sent_bytes_total, until the \
             round after the run; bytes written are those of the daemon's process."
        ),
    );
    Ok(())
}

/// The rows of the table.
fn rows(measured: Measured) -> Vec<Row> {
    use Goal::{AtMost, Part, Times};
    use Unit::{Bytes, PerSecond, Seconds};
    let Measured { plain, tcp, secure, tcp_cpu, secure_cpu, backed_up, replicated, .. } = measured;
    let Measured { written, sent, first_answer, complete, .. } = measured;
    let without = Runs::default;
    let row = |figure: &str, (peer, ours): (Runs, Runs), unit, (goal, aim)| Row {
        figure: format!("W1, {figure}"),
        peer,
        ours,
        unit,
        goal,
        aim,
    };
    vec![
        row(
            "values/s with TLS and a token, against the same over TCP without",
            (tcp, secure),
            PerSecond,
            (Times(0.8), Times(0.95)),
        ),
        row(
            "daemon CPU per value with TLS and a token, against the same over TCP without",
            (tcp_cpu, secure_cpu),
            Seconds,
            (Goal::None, Goal::None),
        ),
        row(
            "values/s while backed up to S3, against the same without",
            (plain.clone(), backed_up),
            PerSecond,
            (Times(0.9), Times(0.97)),
        ),
        row(
            "bytes per value: sent to S3, against written locally",
            (written, sent),
            Bytes,
            (Part(1.0 / 1.3), Part(1.0 / 1.05)),
        ),
        row(
            "values/s with ack = \"replica\", against the same without a follower",
            (plain, replicated),
            PerSecond,
            (Times(0.5), Times(0.8)),
        ),
        row(
            "restore from S3 until the first rows are answered",
            (without(), first_answer),
            Seconds,
            (AtMost(30.0, Seconds), Goal::None),
        ),
        row("restore from S3 until it is complete", (without(), complete), Seconds, (Goal::None, Goal::None)),
    ]
}

/// The S3 server, killed in the end.
struct S3 {
    child: Child,
    port: u16,
}

impl Drop for S3 {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl S3 {
    fn start(place: &Path) -> Outcome<S3> {
        let port = free_port()?;
        let own = Path::new("target/versitygw/versitygw");
        let program = if own.exists() { own.canonicalize()? } else { PathBuf::from("versitygw") };
        fs::create_dir_all(place.join("root/bucket"))?;
        fs::create_dir_all(place.join("side"))?;
        let mut command = Command::new(program);
        command.args([
            "--access",
            "an-id",
            "--secret",
            "a-secret",
            "--port",
            &format!("127.0.0.1:{port}"),
            "posix",
        ]);
        command.arg("--sidecar").arg(place.join("side")).arg(place.join("root"));
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.map_err(|error| format!("versitygw (make peers, with Go): {error}"))?;
        let s3 = S3 { child, port };
        wait("the S3 server", || Ok(TcpStream::connect(("127.0.0.1", port)).is_ok()))?;
        Ok(s3)
    }

    fn section(&self) -> String {
        format!(
            "[backup]\nto = \"s3://bucket/x\"\nendpoint = \"http://127.0.0.1:{}\"\nregion = \"us-east-1\"\n\
             access_key_id = \"an-id\"\nsecret_access_key = \"a-secret\"\ninterval = \"1s\"\n",
            self.port
        )
    }
}

fn free_port() -> Outcome<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn wait(what: &str, mut done: impl FnMut() -> Outcome<bool>) -> Outcome<()> {
    let begun = Instant::now();
    while !done()? {
        if begun.elapsed() > WAIT_MAX {
            return Err(format!("{what}: not within {WAIT_MAX:?}").into());
        }
        thread::sleep(POLL);
    }
    Ok(())
}

/// A number of `/metrics`.
fn metric(http: &str, name: &str) -> Outcome<Option<f64>> {
    let mut stream = TcpStream::connect(http)?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse::<f64>().ok());
    Ok(value)
}

fn sent(http: &str) -> Outcome<f64> {
    Ok(metric(http, "roundel_backup_sent_bytes_total")?.unwrap_or_default())
}

/// Waits until a round of the backup has begun and ended after now.
fn wait_for_backup(http: &str) -> Outcome<()> {
    let rounds = || Outcome::Ok(metric(http, "roundel_backup_rounds_total")?.unwrap_or_default());
    let before = rounds()?;
    wait("a round of the backup", || Ok(rounds()? >= before + 2.0))
}

/// A daemon whose load comes over TCP; with a certificate, by TLS and with a token.
fn over_tcp(
    bench: &Bench,
    program: &Program,
    (workload, count): (Workload, usize),
    is_secure: bool,
) -> Outcome<Subject> {
    let place = bench.place(if is_secure { "safe-tls" } else { "safe-tcp" });
    let (mut daemon, address) = (Daemon::new(program, &place)?, format!("127.0.0.1:{}", free_port()?));
    daemon.configure(&format!("[[listen]]\naddress = \"{address}\"\n"));
    if !is_secure {
        daemon.start()?;
        return Ok(Subject::through(Client::connect(&address)?, daemon, workload, count));
    }
    let certificate = Certificate::make(daemon.directory())?;
    daemon.configure(&format!("anonymous = \"none\"\n{}", certificate.section));
    daemon.start()?;
    let mut command = Command::new(&program.roundel);
    command.args(["token", "add", "bench", "--read", "**", "--write", "**", "--operate", "--config"]);
    let output = command.arg(daemon.directory().join("roundel.toml")).output()?;
    if !output.status.success() {
        return Err(format!("token add: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let token = String::from_utf8(output.stdout)?;
    let client = Client::connect_secure(&address, &certificate, token.trim())?;
    Ok(Subject::through(client, daemon, workload, count))
}

fn measure(bench: &mut Bench, program: &Program) -> Outcome<Measured> {
    let (workload, count) = bench.workload(Shape::W1);
    let s3 = S3::start(&bench.place("safe-s3"))?;
    let mut backed_up = Daemon::new(program, &bench.place("safe-backed-up"))?;
    let http = backed_up.set_http()?;
    backed_up.configure(&s3.section());
    let (port, mut primary) = (free_port()?, Daemon::new(program, &bench.place("safe-primary"))?);
    primary.configure(&format!(
        "[replication]\nlisten = [\"127.0.0.1:{port}\"]\nack = \"replica\"\nack_timeout = \"60s\"\n"
    ));
    let plain = Daemon::new(program, &bench.place("safe-plain"))?;
    let [mut plain, mut backed_up, mut primary] = [
        Subject::on(plain, workload, count)?,
        Subject::on(backed_up, workload, count)?,
        Subject::on(primary, workload, count)?,
    ];
    let mut tcp = over_tcp(bench, program, (workload, count), false)?;
    let mut secure = over_tcp(bench, program, (workload, count), true)?;
    let mut follower = Daemon::new(program, &bench.place("safe-follower"))?;
    follower.configure(&format!("[follow]\nprimary = \"127.0.0.1:{port}\"\n"));
    follower.start()?;
    let mut asked = Client::connect(&follower.address())?;
    wait("the follower", || Ok(asked.ask("REPLICATION")?.lines.iter().any(|line| line == "connected yes")))?;
    for subject in [&mut plain, &mut tcp, &mut secure, &mut backed_up, &mut primary] {
        subject.create(&bench.progress_of(count))?;
        subject.run(ROUNDS)?;
    }
    let (mut measured, runs) = (Measured::default(), bench.pick(3, 5));
    for run in 0..runs {
        bench.say(&format!("Safe: run {} of {runs}", run + 1));
        measured.plain.push(plain.run(ROUNDS)?.drained_rate());
        for (subject, rate, cpu) in [
            (&mut tcp, &mut measured.tcp, &mut measured.tcp_cpu),
            (&mut secure, &mut measured.secure, &mut measured.secure_cpu),
        ] {
            let run = subject.run(ROUNDS)?;
            rate.push(run.drained_rate());
            cpu.push(run.cpu_per_value());
        }
        wait_for_backup(&http)?;
        let before = (backed_up.daemon.written()?, sent(&http)?);
        let run = backed_up.run(ROUNDS)?;
        measured.backed_up.push(run.drained_rate());
        wait_for_backup(&http)?;
        let values = run.values as f64;
        measured.written.push((backed_up.daemon.written()? - before.0) as f64 / values);
        measured.sent.push((sent(&http)? - before.1) / values);
        measured.replicated.push(primary.run(ROUNDS)?.drained_rate());
    }
    for daemon in [&mut plain.daemon, &mut tcp.daemon, &mut secure.daemon, &mut primary.daemon, &mut follower]
    {
        daemon.stop()?;
    }
    for _ in 0..runs {
        restore(&mut backed_up, program, &http, &mut measured)?;
    }
    backed_up.daemon.stop()?;
    Ok(measured)
}

/// Removes the store and restores it, to be served at once.
fn restore(subject: &mut Subject, program: &Program, http: &str, measured: &mut Measured) -> Outcome<()> {
    subject.daemon.stop()?;
    let directory = subject.daemon.directory().to_path_buf();
    fs::remove_dir_all(directory.join("store"))?;
    let begun = Instant::now();
    let mut command = Command::new(&program.roundel);
    command
        .args(["restore", "--from", "s3://bucket/x", "--early", "--config"])
        .arg(directory.join("roundel.toml"));
    let output = command.arg("--to").arg(directory.join("store")).output()?;
    if !output.status.success() {
        return Err(format!("restore: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    // Ends with LAST of some RRDs, which must be that of the last round.
    subject.crash()?;
    let now = subject.now_seconds();
    let rows = format!("FETCH {} AVERAGE {} {now}", crate::workload::rrd_name(0), now - 86_400);
    subject.client()?.ask(&rows)?;
    measured.first_answer.push(begun.elapsed().as_secs_f64());
    wait("the rest of the restore", || {
        Ok(metric(http, "roundel_restore_left_bytes")?.is_none_or(|left| left == 0.0))
    })?;
    measured.complete.push(begun.elapsed().as_secs_f64());
    Ok(())
}
