//! A mounted store beside a directory of plain files: Debian's rrdtool and the programs of an administrator must not see a
//! difference.

use testkit::{Client, Signal, wait_until};

use super::mounting::{Mount, can_mount};
use super::*;

impl Mount {
    /// Runs commands of a shell in it and in a directory of plain files: both must print the same.
    fn same(&self, plain: &Path, script: &str) {
        let (ours, want) = (shell(&self.directory, script), shell(plain, script));
        assert_eq!(normal(&ours), normal(&want), "{script}");
    }

    /// SIGTERM, and how the process ended.
    pub(super) fn stop(mut self) -> std::process::ExitStatus {
        self.process.signal(Signal::TERM);
        self.process.wait()
    }
}

/// What a script prints, and its status if it is not 0. `rrdtool` is Debian's, without a daemon.
pub(super) fn shell(directory: &Path, script: &str) -> String {
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(directory).env("TZ", "UTC").env("LC_ALL", "C");
    let output = command.env_remove("RRDCACHED_ADDRESS").output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).replace(&*directory.display().to_string(), "");
    match output.status.code() {
        Some(0) => text,
        code => format!("{text}\nstatus {code:?}"),
    }
}

/// A daemon with an empty store, mounted, and a directory of plain files.
pub(super) fn mounted(kind: Kind, options: &str) -> Option<(tempfile::TempDir, Daemon, Mount, PathBuf)> {
    if !can_mount() {
        return None;
    }
    let directory = tempfile::Builder::new().prefix("mount-").tempdir().unwrap();
    let mut daemon = testkit::daemon!(kind, &directory.path().join("daemon"));
    daemon.start();
    let plain = directory.path().join("plain");
    std::fs::create_dir(&plain).unwrap();
    let mount = Mount::of(&daemon, options);
    Some((directory, daemon, mount, plain))
}

pub(super) const MAKE: &str = "mkdir -p d; for n in a d/b d/c; do rrdtool create $n.rrd -b 1000000000 -s 10 DS:x:GAUGE:30:U:U DS:y:COUNTER:30:0:U \
    RRA:AVERAGE:0.5:1:20 RRA:MAX:0.5:3:9 RRA:LAST:0.5:2:9; rrdtool update $n.rrd 1000000010:1:10 1000000025:2:30 1000000064:U:60; done";

const READ: &str = "for n in a d/b d/c; do rrdtool info $n.rrd; rrdtool dump $n.rrd; rrdtool lastupdate $n.rrd; rrdtool last $n.rrd; \
    rrdtool first $n.rrd --rraindex 1; rrdtool fetch $n.rrd AVERAGE -s 1000000000 -e 1000000100; \
    rrdtool xport -s 1000000000 -e 1000000090 --step 30 DEF:v=$n.rrd:x:AVERAGE XPORT:v; \
    rrdtool graph - -s 1000000000 -e 1000000090 DEF:v=$n.rrd:x:AVERAGE LINE1:v | md5sum; \
    stat -c '%n %s %A' $n.rrd; done; find . -name '*.rrd' | sort";

#[test]
fn stock_rrdtool_works_in_a_mounted_store_as_with_files() {
    for kind in [Kind::Stripes, Kind::Files] {
        let Some((_directory, mut daemon, mount, plain)) = mounted(kind, "") else { return };
        for script in [
            MAKE,
            READ,
            "rrdtool update a.rrd 1000000072:5:61; rrdtool updatev a.rrd 1000000083:6:62 1000000091:7:70; rrdtool update a.rrd 1000000091:7:70",
            READ,
            "rrdtool tune a.rrd --maximum x:9 --heartbeat y:60; rrdtool tune d/b.rrd DEL:y; rrdtool tune d/b.rrd DS:z:GAUGE:30:U:U RRA:MIN:0.5:1:7",
            READ,
            "rrdtool dump a.rrd | rrdtool restore - r.rrd; rrdtool dump a.rrd > ${TMPDIR:-/tmp}/$$.xml; rrdtool restore ${TMPDIR:-/tmp}/$$.xml r.rrd; rrdtool restore -f ${TMPDIR:-/tmp}/$$.xml r.rrd; rm ${TMPDIR:-/tmp}/$$.xml; rrdtool dump r.rrd",
            "rrdtool create a.rrd -O DS:x:GAUGE:30:U:U RRA:LAST:0.5:1:5; rrdtool create n.rrd --source a.rrd -s 10 DS:x:GAUGE:30:U:U RRA:AVERAGE:0.5:1:20; rrdtool dump n.rrd",
            "mv a.rrd d/a.rrd; mv d e; mkdir d; ls -1 d e; rrdtool update e/a.rrd 1000000100:1:80; rrdtool lastupdate e/a.rrd; rrdtool lastupdate d/b.rrd",
            "rm e/b.rrd; rm -r n.rrd; rmdir e; rmdir d; find . | sort; rm -r e; find . | sort; ls e",
        ] {
            mount.same(&plain, script);
        }
        daemon.kill();
        drop(mount);
    }
}

#[test]
fn a_mounted_file_is_bit_for_bit_what_export_writes() {
    let Some((directory, daemon, mount, plain)) = mounted(Kind::Stripes, "") else { return };
    shell(&mount.directory, MAKE);
    // One with seasons, whose rings begin where they are.
    let seasons = "rrdtool create e.rrd -b 1000000000 -s 10 DS:x:GAUGE:30:U:U RRA:AVERAGE:0.5:1:20 RRA:HWPREDICT:30:0.1:0.0035:6; \
        for n in 1 2 3 4 5 6 7 8 9; do rrdtool update e.rrd 10000000${n}0:$n; done; rrdtool last e.rrd";
    assert_eq!(shell(&mount.directory, seasons), "1000000090\n");
    let exported = directory.path().join("exported");
    let output = Command::new(env!("CARGO_BIN_EXE_roundel"))
        .args(["export", "--all", "--to"])
        .arg(&exported)
        .args(["--from", &format!("127.0.0.1:{}", daemon.tcp_port())])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let sums = "find . -name '*.rrd' | sort | xargs md5sum";
    let want = shell(&exported, sums);
    assert_eq!(want.lines().count(), 4);
    assert_eq!(shell(&mount.directory, sums), want);
    // So do copies by every way; sizes and times are those of the RRDs.
    let to = plain.display();
    shell(&mount.directory, &format!("tar cf - . | tar xf - -C {to}"));
    assert_eq!(shell(&plain, sums), want);
    assert_eq!(
        shell(&plain, "stat -c '%n %s %Y' a.rrd d/b.rrd"),
        shell(&mount.directory, "stat -c '%n %s %Y' a.rrd d/b.rrd")
    );
    assert_eq!(shell(&mount.directory, "stat -c %Y a.rrd"), "1000000064\n");
    let copied = shell(
        &mount.directory,
        &format!("rsync -a ./ {to}/r/; cp -a . {to}/c; rsync -ain ./ {to}/r/; du -s --apparent-size d"),
    );
    assert!(!copied.contains("status") && !copied.contains(".rrd"), "{copied}");
    for copy in ["r", "c"] {
        assert_eq!(shell(&plain.join(copy), sums), want);
    }
    // Another daemon's socket, and the same store at rest.
    drop(mount);
    let far = Mount::new(&format!("127.0.0.1:{}", daemon.tcp_port()), &directory.path().join("far"), "ro");
    assert_eq!(shell(&far.directory, sums), want);
    assert!(shell(&far.directory, "rm a.rrd").contains("Read-only"), "a read-only mount changes");
    assert!(far.stop().success());
    let store = daemon.directory().join("store");
    let mut daemon = daemon;
    daemon.kill();
    let rest = Mount::new(&store.display().to_string(), &directory.path().join("rest"), "");
    assert_eq!(shell(&rest.directory, sums), want);
    shell(&rest.directory, "rrdtool update a.rrd 1000000072:5:61");
    assert!(rest.stop().success());
    let mut client = daemon.start();
    assert_eq!(client.ask("LAST a.rrd").unwrap().message, "1000000070");
}

#[test]
fn trees_are_brought_in_by_every_way() {
    let Some((_directory, daemon, mount, plain)) = mounted(Kind::Stripes, "") else { return };
    shell(&plain, MAKE);
    let from = plain.display();
    let sums = "for f in $(find . -name '*.rrd' | sort); do rrdtool dump $f; done";
    let want = shell(&plain, sums);
    for (name, script) in [
        ("cp", format!("cp -r {from} cp")),
        ("tar", format!("mkdir tar; tar cf - -C {from} . | tar xf - -C tar --no-same-owner")),
        ("rsync", format!("rsync -r {from}/ rsync/; rsync -r --inplace {from}/ rsync/")),
        ("mv", format!("cp -r {from} {from}.2; mv {from}.2 mv")),
    ] {
        assert_eq!(shell(&mount.directory, &script), "", "{script}");
        assert_eq!(shell(&mount.directory.join(name), sums), want, "{script}");
    }
    let mut client = Client::connect(&daemon.socket()).unwrap();
    assert_eq!(client.ask("LIST RECURSIVE /").unwrap().lines.len(), 4 * 3);
    // Over one that is there.
    shell(&plain, "rrdtool update a.rrd 1000000072:5:61");
    assert_eq!(
        shell(&mount.directory, &format!("cp {from}/a.rrd cp/a.rrd; rrdtool lastupdate cp/a.rrd | tail -1")),
        "1000000072: 5 61\n"
    );
    assert_eq!(client.ask("LAST cp/a.rrd").unwrap().message, "1000000070");
}

#[test]
fn an_update_of_the_daemon_is_never_mixed_with_what_a_program_writes() {
    let Some((_directory, daemon, mount, _plain)) = mounted(Kind::Stripes, "") else { return };
    shell(&mount.directory, MAKE);
    let mut client = Client::connect(&daemon.socket()).unwrap();
    // A file that is open shows one moment; another that is opened later shows the present.
    let before = shell(&mount.directory, "md5sum a.rrd");
    let file = std::fs::File::open(mount.directory.join("a.rrd")).unwrap();
    assert_eq!(client.ask("UPDATE a.rrd 1000000072:5:61").unwrap().status, 0);
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut &file, &mut bytes).unwrap();
    drop(file);
    wait_until("the daemon's update", || shell(&mount.directory, "md5sum a.rrd") != before);
    assert!(shell(&mount.directory, "rrdtool lastupdate a.rrd").contains("1000000072: 5 61"));
    std::fs::write(mount.directory.join("old.rrd"), &bytes).unwrap();
    assert!(shell(&mount.directory, "rrdtool lastupdate old.rrd").contains("1000000064: U 60"));
    // What is written to a file that shows an earlier moment is refused.
    let open =
        std::fs::OpenOptions::new().read(true).write(true).open(mount.directory.join("a.rrd")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&open, &bytes, 0).unwrap();
    assert_eq!(client.ask("UPDATE a.rrd 1000000095:7:80").unwrap().status, 0);
    let refused = open.sync_all().unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(rustix::io::Errno::STALE.raw_os_error()), "{refused}");
    drop(open);
    assert!(shell(&mount.directory, "rrdtool lastupdate a.rrd").contains("1000000095: 7 80"));
    // Who opens it from then on can write again.
    assert_eq!(
        shell(&mount.directory, "rrdtool update a.rrd 1000000101:1:90; rrdtool last a.rrd"),
        "1000000101\n"
    );
    assert_eq!(client.ask("LAST a.rrd").unwrap().message, "1000000100");
}

#[test]
fn programs_that_update_side_by_side_lose_nothing() {
    let Some((_directory, daemon, mount, _plain)) = mounted(Kind::Stripes, "") else { return };
    shell(&mount.directory, MAKE);
    let script = "for t in $(seq 1 20); do rrdtool update d/b.rrd $((1000000100 + t * 10)):$t:U 2>/dev/null || true; done";
    let mut children: Vec<_> = (0..2)
        .map(|_| {
            Command::new("sh")
                .args(["-c", script])
                .current_dir(&mount.directory)
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    children.iter_mut().for_each(|child| assert!(child.wait().unwrap().success()));
    let mut client = Client::connect(&daemon.socket()).unwrap();
    assert_eq!(client.ask("LAST d/b.rrd").unwrap().message, "1000000300");
}

#[test]
fn a_daemon_that_goes_away_is_an_error_and_comes_back() {
    let Some((_directory, mut daemon, mount, plain)) = mounted(Kind::Stripes, "") else { return };
    shell(&mount.directory, MAKE);
    shell(&plain, MAKE);
    daemon.kill();
    let failed = shell(&mount.directory, "rrdtool info d/c.rrd; ls .");
    assert!(failed.contains("Input/output error"), "{failed}");
    daemon.start();
    wait_until("the daemon", || shell(&mount.directory, "ls d") == "b.rrd\nc.rrd\n");
    mount.same(&plain, READ);
    assert!(mount.stop().success());
}

#[test]
fn what_is_no_rrd_is_refused_or_lives_elsewhere() {
    let Some((directory, daemon, mount, _plain)) = mounted(Kind::Stripes, "") else { return };
    shell(&mount.directory, MAKE);
    for (script, want) in [
        ("mknod f p", "Operation not permitted"),
        ("ln -s a.rrd l", "Operation not permitted"),
        ("ln a.rrd l", "Operation not permitted"),
        ("cp /etc/passwd x.rrd", "Invalid argument"),
        ("cp /etc/passwd a.rrd", "Invalid argument"),
        ("cp /etc/passwd datafile", "Invalid argument"),
        ("chmod 600 a.rrd", "Operation not permitted"),
        ("mkdir a.rrd", "File exists"),
        ("rmdir d", "Directory not empty"),
        ("cat nothing", "No such file or directory"),
        ("touch $(printf n%0255d 0)", "File name too long"),
        ("mkdir $(printf n%0255d 0)", "File name too long"),
        ("mv a.rrd $(printf n%0255d 0)", "File name too long"),
        ("touch 'a\nb.rrd'", "Invalid argument"),
        ("mkdir 'a\nb'", "Invalid argument"),
    ] {
        let text = shell(&mount.directory, script);
        assert!(text.contains(want), "{script}: {text}");
    }
    assert!(shell(&mount.directory, "rrdtool lastupdate a.rrd").contains("1000000064"));
    // Programs that look for free space find it.
    assert_eq!(shell(&mount.directory, "df --output=avail,iavail . | tail -1 | grep -c ' 0'; true"), "0\n");
    drop(mount);
    let extra = directory.path().join("extra");
    std::fs::create_dir(&extra).unwrap();
    let mount = Mount::new(
        &format!("unix:{}", daemon.socket().display()),
        &directory.path().join("other"),
        &format!("extra={},uid=7,gid=8", extra.display()),
    );
    // Munin: a state beside its RRDs, written under another name and renamed. LibreNMS: locks.
    let script = "echo one > datafile.tmp; mv datafile.tmp datafile; cat datafile; (flock -n 9; echo locked) 9> d/.lock; ls -A d; \
                  mkdir state; echo x > state/y; ls state; rm -r state; stat -c '%u %g' a.rrd datafile; rsync -r datafile d/; cat d/datafile";
    let text = shell(&mount.directory, script);
    assert_eq!(text, "one\nlocked\n.lock\nb.rrd\nc.rrd\ny\n7 8\n7 8\none\n");
    assert_eq!(std::fs::read_to_string(extra.join("datafile")).unwrap(), "one\n");
    // A listing tells the kernel what is so now, not what was so when it began.
    std::fs::write(mount.directory.join("state.tmp"), "").unwrap();
    // The first one is without sizes, because this thread has not asked for any yet.
    let asked = std::fs::read_dir(&mount.directory).unwrap().map(|entry| entry.unwrap().metadata().unwrap());
    assert!(asked.count() > 2);
    // The kernel keeps sizes for a second, and does not say when it drops them.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let listing = std::fs::read_dir(&mount.directory).unwrap();
    std::fs::write(mount.directory.join("state.tmp"), "a state").unwrap();
    assert!(listing.count() > 2);
    assert_eq!(std::fs::metadata(mount.directory.join("state.tmp")).unwrap().len(), 7);
    // The socket of a daemon whose files are here.
    let socket = mount.directory.join("d/daemon.sock");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    std::os::unix::net::UnixStream::connect(&socket).unwrap();
    listener.accept().unwrap();
    assert_eq!(
        shell(&mount.directory, "stat -c %F d/daemon.sock; rm d/daemon.sock; ls d"),
        "socket\nb.rrd\nc.rrd\ndatafile\n"
    );
    let mut client = Client::connect(&daemon.socket()).unwrap();
    assert_eq!(client.ask("LIST RECURSIVE /").unwrap().lines.len(), 3);
}
