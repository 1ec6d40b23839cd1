//! A mounted store as those meet it who did not mount it: other users, `mount(8)`, programs that have files open when the store
//! changes, hangs or is unmounted.

use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::fs::{Advice, fadvise};
use testkit::{Client, DEADLINE, Signal, send_signal, wait_for, wait_until};

use super::mount::{MAKE, mounted, shell};
use super::mounting::{Mount, can_mount, is_mounted};
use super::*;

/// A user without rights, as the words before a command.
const NOBODY: &str = "setpriv --reuid nobody --regid nogroup --clear-groups";

/// Programs of other users reach everything in it.
fn open_to_all(directory: &Path) {
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn other_users_have_the_rights_of_files() {
    let Some((directory, daemon, mount, _plain)) = mounted(Kind::Stripes, "") else { return };
    open_to_all(directory.path());
    shell(&mount.directory, MAKE);
    let at = |mount: &Mount, script: &str| {
        shell(directory.path(), &format!("{NOBODY} sh -c 'cd {} && {script}'", mount.directory.display()))
    };
    assert!(at(&mount, "rrdtool last a.rrd").contains("can't cd"));
    drop(mount);
    let from = format!("unix:{}", daemon.socket().display());
    let open = Mount::new(&from, &directory.path().join("open"), "allow_other");
    assert_eq!(at(&open, "rrdtool last a.rrd; ls d"), "1000000064\nb.rrd\nc.rrd\n");
    for script in ["rrdtool update a.rrd 1000000070:1:70", "rm a.rrd", "mv a.rrd b.rrd", "mkdir e"] {
        assert!(at(&open, script).contains("Permission denied"), "{script}");
    }
    drop(open);
    let theirs = Mount::new(&from, &directory.path().join("theirs"), "allow_other,uid=65534,gid=65534");
    let script = "rrdtool update a.rrd 1000000070:1:70; rrdtool last a.rrd; mkdir e; mv a.rrd e/; ls e";
    assert_eq!(at(&theirs, script), "1000000070\na.rrd\n");
}

/// Runs a script as root in a mount namespace of its own, in which every user may use `/dev/fuse`, as on Debian; `roundel` is
/// there in the working directory.
fn in_namespace(directory: &Path, script: &str) -> String {
    let prepare = format!(
        "touch roundel && mount --bind {} roundel && mknod fuse c 10 229 && chmod 666 fuse && mount --bind fuse /dev/fuse || exit",
        env!("CARGO_BIN_EXE_roundel")
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", &format!("{prepare}\n{script}")]);
    let output = command.current_dir(directory).env_remove("RRDCACHED_ADDRESS").output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// A daemon with an RRD, and a directory for mounts that every user can enter.
fn with_an_rrd() -> Option<(tempfile::TempDir, Daemon)> {
    if !can_mount() {
        return None;
    }
    let directory = tempfile::Builder::new().prefix("mount-").tempdir().unwrap();
    open_to_all(directory.path());
    let mut daemon = testkit::daemon!(Kind::Stripes, &directory.path().join("daemon"));
    let mut client = daemon.start();
    assert_eq!(
        client.ask("CREATE a.rrd -b 1000000000 DS:x:GAUGE:600:U:U RRA:LAST:0.5:1:5").unwrap().status,
        0
    );
    Some((directory, daemon))
}

#[test]
fn a_user_without_rights_mounts_and_unmounts() {
    let Some((directory, daemon)) = with_an_rrd() else { return };
    let script = format!(
        "mkdir m && chown nobody m
         as() {{ {NOBODY} \"$@\"; }}
         as ./roundel mount m --from 127.0.0.1:{port} -o uid=65534
         as rrdtool last m/a.rrd
         ls m 2>&1 | grep -o 'Permission denied'
         as rrdtool update m/a.rrd 1000000300:1 && as rrdtool last m/a.rrd
         as fusermount3 -u m && as ls m | wc -l
         as ./roundel mount m --from 127.0.0.1:{port} -o allow_other
         echo status $?",
        port = daemon.tcp_port()
    );
    let text = in_namespace(directory.path(), &script);
    let (before, after) = text.split_once("status 1\n").unwrap_or_else(|| panic!("{text}"));
    assert_eq!(before, "1000000000\nPermission denied\n1000000300\n0\n", "{text}");
    // fusermount3 says what to do.
    assert!(after.contains("cannot mount on \"m\"") && after.contains("user_allow_other"), "{after}");
}

#[test]
fn mount_and_umount_know_the_type_roundel() {
    let Some((directory, daemon)) = with_an_rrd() else { return };
    let script = format!(
        "mkdir m upper work
         mount -t overlay overlay -o lowerdir=/usr/sbin,upperdir=upper,workdir=work /usr/sbin || exit
         ln -s $PWD/roundel /usr/sbin/mount.roundel
         mount -t roundel unix:{socket} m -o ro,allow_other,nofail
         rrdtool last m/a.rrd
         {NOBODY} rrdtool first m/a.rrd
         rm m/a.rrd 2>&1 | grep -o 'Read-only'
         umount m
         mount -t roundel none m || echo status $?
         echo 'unix:{socket} '$PWD/m' roundel uid=7,x-systemd.automount 0 0' > fstab
         mount --fstab fstab m
         stat -c %u m/a.rrd
         umount m",
        socket = daemon.socket().display()
    );
    let text = in_namespace(directory.path(), &script);
    let want = "1000000000\n999998700\nRead-only\nstatus 32\n7\n";
    assert!(text.starts_with(want), "{text}");
    assert!(text.contains("mount.roundel: cannot mount the store of the daemon"), "{text}");
}

#[test]
fn a_daemon_that_hangs_is_waited_for_only_so_long() {
    let Some((_directory, daemon, mount, _plain)) = mounted(Kind::Stripes, "") else { return };
    // Not by the mount: the kernel tells it late that a file was closed, and until then it has the bytes.
    let mut client = Client::connect(&daemon.socket()).unwrap();
    for name in ["a.rrd", "d/b.rrd", "d/c.rrd"] {
        let create = format!("CREATE {name} -b 1000000000 DS:x:GAUGE:600:U:U RRA:LAST:0.5:1:5");
        assert_eq!(client.ask(&create).unwrap().status, 0);
    }
    send_signal(daemon.process(), Signal::STOP);
    // A reader waits for 15 seconds; two, one after the other, would wait for 30.
    let (begun, longest) = (Instant::now(), Duration::from_secs(22));
    let read = |name: &str| {
        let mut command = Command::new("cat");
        command.arg(mount.directory.join(name)).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let (mut impatient, patient) = (read("d/b.rrd"), read("d/c.rrd"));
    // Until both wait for their bytes; no one says so: the kernel shows only that they wait for the mount, perhaps to open a file.
    std::thread::sleep(Duration::from_millis(300));
    impatient.kill().unwrap();
    impatient.wait().unwrap();
    assert!(begun.elapsed() < longest, "a reader cannot be killed");
    let refused = patient.wait_with_output().unwrap();
    let took = begun.elapsed();
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(error.contains("Input/output error"), "{error}");
    assert!(took < longest, "it took {took:?}");
    // Others do not wait as long again, one after the other.
    let begun = Instant::now();
    let text = shell(&mount.directory, "for n in a d/b d/c; do cat $n.rrd >/dev/null; done; ls d; true");
    assert!(text.contains("Input/output error"), "{text}");
    assert!(begun.elapsed() < longest, "it took {:?}", begun.elapsed());
    // It ends while the daemon hangs.
    let begun = Instant::now();
    assert!(Command::new("umount").arg(&mount.directory).status().unwrap().success());
    assert!(!is_mounted(&mount.directory));
    assert!(mount.stop().success());
    assert!(begun.elapsed() < Duration::from_secs(20));
    send_signal(daemon.process(), Signal::CONT);
}

#[test]
fn a_mount_whose_process_was_killed_is_to_be_unmounted_first() {
    let Some((_directory, daemon, mut mount, _plain)) = mounted(Kind::Stripes, "") else { return };
    mount.process.signal(Signal::KILL);
    mount.process.wait();
    let mut again = Command::new(env!("CARGO_BIN_EXE_roundel"));
    again.arg("mount").arg(&mount.directory).args(["--from", &format!("unix:{}", daemon.socket().display())]);
    let output = again.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("first `umount"), "{text}");
}

#[test]
fn who_has_a_file_open_at_the_end_can_go_on() {
    let Some((_directory, _daemon, mut mount, _plain)) = mounted(Kind::Stripes, "") else { return };
    shell(&mount.directory, MAKE);
    let want = std::fs::read(mount.directory.join("d/b.rrd")).unwrap();
    let file = std::fs::File::open(mount.directory.join("a.rrd")).unwrap();
    mount.process.signal(Signal::TERM);
    wait_until("the end", || !is_mounted(&mount.directory));
    let mut bytes = vec![0; want.len()];
    file.read_exact_at(&mut bytes, 0).unwrap();
    // Both were made alike.
    assert!(bytes == want);
    drop(file);
    let begun = Instant::now();
    assert!(mount.process.wait().success());
    assert!(begun.elapsed() < Duration::from_secs(8), "the process waits though nothing is open");
}

/// Reads a file whose pages the kernel has just dropped.
fn read_anew(file: &std::fs::File) -> std::io::Result<Vec<u8>> {
    fadvise(file, 0, None, Advice::DontNeed).unwrap();
    let mut bytes = vec![0; file.metadata()?.len() as usize];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// A mounted RRD, and a client that updates the RRD in the daemon.
struct UpdatedFile {
    path: PathBuf,
    client: Client,
    time: u64,
}

impl UpdatedFile {
    fn open(&self) -> std::fs::File {
        std::fs::File::open(&self.path).unwrap()
    }

    fn update(&mut self) {
        self.time += 10;
        assert_eq!(self.client.ask(&format!("UPDATE a.rrd {0}:{0}", self.time)).unwrap().status, 0);
    }

    /// Closes a file, and returns the RRD's content once that is not `old` any more. The kernel tells the mount later that the
    /// file was closed. Until then, programs that open the file see what the closed file showed.
    fn close(&self, file: std::fs::File, old: &[u8]) -> Vec<u8> {
        drop(file);
        wait_for("the mount to show another content", || {
            std::fs::read(&self.path).ok().filter(|now| now != old)
        })
    }

    /// Gives the kernel time to tell the mount that a file was closed, so that the next program to open the file is the first one.
    /// The file has the content that it had before, and nothing else shows that the mount has been told. The checks hold also
    /// if the mount learns it later.
    fn settle() {
        std::thread::sleep(Duration::from_millis(100));
    }

    /// Opens the file, updates the RRD a while later, and reads the open file, which has the content before the update. Returns the
    /// content after it.
    ///
    /// The mount asks the daemon for the bytes of a file that has been open for 20 ms, and nothing shows when it has all of them. So
    /// the file stays open for a fixed time, which doubles as long as the update came too early.
    fn change_late(&mut self, mut first: Vec<u8>) -> Vec<u8> {
        let (begun, mut pause) = (Instant::now(), Duration::from_millis(500));
        loop {
            let file = self.open();
            std::thread::sleep(pause);
            self.update();
            let read = read_anew(&file);
            let after = self.close(file, &first);
            match read {
                Ok(bytes) => {
                    assert!(bytes == first, "a reader sees another moment");
                    return after;
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::StaleNetworkFileHandle, "{error}"),
            }
            assert!(
                begun.elapsed() < DEADLINE,
                "after {pause:?}, the mount did not have the bytes of an open file"
            );
            (first, pause) = (after, pause * 2);
            UpdatedFile::settle();
        }
    }
}

#[test]
fn what_the_kernel_has_of_a_file_and_what_it_has_not_are_of_one_moment() {
    let Some((_directory, daemon, mount, _plain)) = mounted(Kind::Stripes, "") else { return };
    // So large that the mount itself does not keep its bytes.
    let mut client = Client::connect(&daemon.socket()).unwrap();
    let create = "CREATE a.rrd -b 1000000000 -s 10 DS:x:GAUGE:30:U:U RRA:LAST:0.5:1:600000";
    assert_eq!(client.ask(create).unwrap().status, 0);
    let mut rrd = UpdatedFile { path: mount.directory.join("a.rrd"), client, time: 1_000_000_000 };
    // The kernel has all of it when it is opened again, and drops it then.
    let first = std::fs::read(&rrd.path).unwrap();
    assert!(read_anew(&rrd.open()).unwrap() == first);
    UpdatedFile::settle();
    // It changes long after it was opened: the mount has what the kernel asks for.
    let mut second = rrd.change_late(first);
    // It changes as soon as it is open.
    let mut refused = 0;
    for _ in 0..20 {
        UpdatedFile::settle();
        let file = rrd.open();
        rrd.update();
        match read_anew(&file) {
            Ok(bytes) => assert!(bytes == second, "a reader sees another moment"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::StaleNetworkFileHandle, "{error}");
                refused += 1;
            }
        }
        second = rrd.close(file, &second);
    }
    assert!(refused > 0, "what the kernel has is asked for again whenever a file is opened");
    // Who writes has its bytes before others change it, even if he is not the first to open it.
    UpdatedFile::settle();
    let reader = rrd.open();
    let writer = std::fs::OpenOptions::new().read(true).write(true).open(&rrd.path).unwrap();
    rrd.update();
    assert!(read_anew(&reader).unwrap() == second);
    writer.write_all_at(b"RRD", 0).unwrap();
    assert!(writer.sync_all().is_ok(), "nothing was changed");
    drop(writer);
    let last = rrd.close(reader, &second);
    // It goes as soon as it is open.
    UpdatedFile::settle();
    let file = rrd.open();
    std::fs::remove_file(&rrd.path).unwrap();
    assert!(read_anew(&file).unwrap() == last);
}
