//! A gmond's XML, read at every step: Debian's gmetad, which writes files, and ours.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::Bench;
use super::collector::{self, Collector};
use crate::Outcome;
use crate::builds::Program;
use crate::daemon::Daemon;
use crate::figures::{Goal, Runs, Unit};
use crate::report::Row;
use crate::usage::{ProcessUsage, wait_until_idle};

/// What the cluster has.
const HOSTS: usize = 1_000;
const METRICS: usize = 30;
/// Seconds between polls.
const STEP: u64 = 8;
/// Archives, the same for both: those of gmetad are 640 kB a file.
const ARCHIVES: [&str; 2] = ["RRA:AVERAGE:0.5:1:244", "RRA:AVERAGE:0.5:24:244"];
/// The longest wait for a poll.
const POLL_LIMIT: Duration = Duration::from_secs(60);

/// What one collector gave.
#[derive(Default)]
struct Measured {
    time: Runs,
    cpu: Runs,
}

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> Outcome<()> {
    let [peer, ours] = collector::sides(bench);
    let peer = measure(bench, peer.as_ref())?;
    let ours = measure(bench, ours.as_ref())?;
    let mut row = |figure: &str, peer, ours, goal, aim| {
        let figure = format!("gmond's XML of {HOSTS} hosts, {METRICS} metrics each: {figure}");
        bench.report.row(Row { figure, peer, ours, unit: Unit::Seconds, goal, aim });
    };
    let part = |part| Goal::Part(part);
    row("time to read, consolidate and store", peer.time, ours.time, part(5.0), part(20.0));
    row("CPU of a poll", peer.cpu, ours.cpu, part(5.0), part(20.0));
    bench.report.note(
        "Collectors",
        format!(
            "gmond's XML: served by the bench on loopback, polled every {STEP} s; archives {}. The time is from the connection until \
             the collector rests. gmetad writes files in place (to the page cache), without rrdcached.",
            ARCHIVES.join(" ")
        ),
    );
    Ok(())
}

/// Measures a build of ours, or Debian's gmetad.
fn measure(bench: &mut Bench, program: Option<&Program>) -> Outcome<Measured> {
    let title = program.map_or_else(|| "gmetad".to_string(), Program::title);
    let place = bench.place(&format!("gmond-{title}"));
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let (sender, polls) = mpsc::channel();
    let stop = AtomicBool::new(false);
    let measured = thread::scope(|scope| {
        scope.spawn(|| serve(&listener, &sender, &stop));
        let measured = watch(bench, program, &place, port, &polls);
        stop.store(true, Ordering::Relaxed);
        // The server looks at `stop` when there is a connection.
        std::net::TcpStream::connect(("127.0.0.1", port)).ok();
        measured
    });
    fs::remove_dir_all(place).ok();
    measured
}

fn watch(
    bench: &Bench,
    program: Option<&Program>,
    place: &Path,
    port: u16,
    polls: &mpsc::Receiver<Instant>,
) -> Outcome<Measured> {
    let collector = match program {
        None => start_gmetad(place, port)?,
        Some(program) => Collector::start_ours(Daemon::new(program, place)?, &sections(port))?,
    };
    let (pid, title) = (collector.pid()?, program.map_or_else(|| "gmetad".to_string(), Program::title));
    let count = bench.pick(5, 9);
    let mut measured = Measured::default();
    // The first two make the RRDs.
    for poll in 0..count + 2 {
        bench.say(&format!("Gmond: {title}, poll {} of {}", poll + 1, count + 2));
        let before = ProcessUsage::of(pid)?;
        let start = polls.recv_timeout(POLL_LIMIT).map_err(|_| format!("{title} does not poll"))?;
        let took = wait_until_idle(pid)?.duration_since(start);
        if poll >= 2 {
            measured.time.push(took.as_secs_f64());
            measured.cpu.push(ProcessUsage::of(pid)?.since(&before).cpu.as_secs_f64());
        }
    }
    Ok(measured)
}

fn sections(port: u16) -> String {
    format!(
        "[[gmond]]\nname = \"bench\"\naddresses = [\"127.0.0.1:{port}\"]\nstep = \"{STEP}s\"\n\
         [gmetad]\nrras = [\"{}\"]\n",
        ARCHIVES.join("\", \"")
    )
}

fn start_gmetad(place: &Path, port: u16) -> Outcome<Collector> {
    let files = place.join("rrd");
    fs::create_dir_all(&files)?;
    let free = || Ok::<u16, std::io::Error>(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port());
    let text = format!(
        "data_source \"bench\" {STEP} 127.0.0.1:{port}\nsetuid off\nrrd_rootdir \"{}\"\nxml_port {}\ninteractive_port {}\n\
         case_sensitive_hostnames 0\nRRAs \"{}\"\n",
        files.display(),
        free()?,
        free()?,
        ARCHIVES.join("\" \"")
    );
    let config = place.join("gmetad.conf");
    fs::write(&config, text)?;
    let config = config.display().to_string();
    // With -d it stays in the foreground.
    Collector::start_peer("/usr/sbin/gmetad", &["-d", "1", "-c", &config], place)
}

/// Answers each connection, and tells when it came.
fn serve(listener: &TcpListener, polls: &mpsc::Sender<Instant>, stop: &AtomicBool) {
    for (round, stream) in listener.incoming().enumerate() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let text = xml(now, round);
        let Ok(mut stream) = stream else { continue };
        // Not while it is made: that is not the collector's time.
        let start = Instant::now();
        if stream.write_all(text.as_bytes()).is_ok() {
            polls.send(start).ok();
        }
    }
}

fn xml(now: u64, round: usize) -> String {
    let mut text = String::with_capacity(HOSTS * METRICS * 320);
    text += "<?xml version=\"1.0\" encoding=\"ISO-8859-1\" standalone=\"yes\"?>\n<GANGLIA_XML VERSION=\"3.7.2\" SOURCE=\"gmond\">\n";
    let time = format!("LOCALTIME=\"{now}\" OWNER=\"o\" LATLONG=\"\" URL=\"\"");
    text += &format!("<CLUSTER NAME=\"bench\" {time}>\n");
    for host in 0..HOSTS {
        let name = format!("NAME=\"node{host}\" IP=\"10.0.{}.{}\" TAGS=\"\"", host / 250, host % 250);
        let seen =
            format!("REPORTED=\"{now}\" TN=\"1\" TMAX=\"20\" DMAX=\"0\" LOCATION=\"\" GMOND_STARTED=\"1\"");
        writeln!(text, "<HOST {name} {seen}>").ok();
        for metric in 0..METRICS {
            let value = ((host * 31 + metric * 17 + round * 7) % 1000) as f64 / 10.0;
            write!(
                text,
                "<METRIC NAME=\"metric_{metric}\" VAL=\"{value:.1}\" TYPE=\"float\" UNITS=\"%\" TN=\"3\" TMAX=\"90\" DMAX=\"0\" \
                 SLOPE=\"both\">\n<EXTRA_DATA>\n<EXTRA_ELEMENT NAME=\"GROUP\" VAL=\"cpu\"/>\n<EXTRA_ELEMENT NAME=\"TITLE\" \
                 VAL=\"A metric\"/>\n</EXTRA_DATA>\n</METRIC>\n"
            )
            .ok();
        }
        text += "</HOST>\n";
    }
    text + "</CLUSTER>\n</GANGLIA_XML>\n"
}
