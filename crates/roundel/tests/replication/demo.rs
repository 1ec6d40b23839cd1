//! `make cluster`: what it starts, and that nothing is left of it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use testkit::{Running, Signal, free_ports, peer, wait_until};

/// Ports of the demo, from `CLUSTER_PORT` to the port of its S3 server.
const PORTS: u16 = 52;

/// `crates/testkit/kafka/cluster.sh`, ended with this value.
struct Demo {
    script: Running,
    work: PathBuf,
    said: PathBuf,
}

impl Demo {
    fn start(kafka: &Path, place: &Path) -> Demo {
        let programs = Path::new(env!("CARGO_BIN_EXE_roundel")).parent().unwrap();
        let (work, said) = (place.join("work"), place.join("said"));
        let mut script = Command::new("sh");
        script
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/kafka/cluster.sh"))
            .args([kafka, programs, &work])
            .env("CLUSTER_PORT", free_ports(PORTS).start.to_string());
        Demo { script: Running::start(&mut script, &said), work, said }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.said).unwrap()
    }

    /// Waits for these words: the script itself ends when something does not come.
    fn wait_for(&mut self, words: &str) {
        while !self.said().contains(words) {
            assert!(self.script.ended().is_none(), "it ends before it says \"{words}\"");
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }

    /// A line of what it says to try, by the shell, in its directory.
    fn try_line(&self, line: &str) -> Output {
        let said = self.said();
        let setup = |word: &str| said.lines().find(|line| line.trim_start().starts_with(word)).unwrap();
        let words = [setup("export PATH="), setup("place="), line].join("\n");
        Command::new("sh").args(["-ec", &words]).current_dir(&self.work).output().unwrap()
    }

    fn must(&self, line: &str) -> String {
        let output = self.try_line(line);
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Asks it to end, if it has not yet.
    fn end(&self) {
        self.script.signal(Signal::TERM);
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.said());
            self.end();
        }
        self.script.wait();
    }
}

#[test]
fn make_cluster_shows_a_cluster_with_its_backups_and_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let Some(kafka) = peer::kafka() else { return };
    if peer::versitygw().is_none() {
        return;
    }
    let mut demo = Demo::start(&kafka, place.path());
    demo.wait_for("In another terminal");
    assert!(demo.said().contains("16 partitions, all led, with 2 ready replicas each"), "{}", demo.said());
    wait_until("a value", || demo.said().contains("  200 values through node-1"));

    assert!(
        demo.said().contains("roundel backup list --from $place --config $config ")
            && demo.said().contains("./s3-server ")
    );
    assert!(demo.must("roundel backup list --from $place --config $config").lines().count() > 0);
    let verified = demo.must("roundel backup verify --from $place --config $config");
    demo.must("kill -9 $(cat pids/s3)");
    assert!(!demo.try_line("roundel backup list --from $place --config $config").status.success());
    let values = || demo.said().matches("  200 values through").count();
    let before = values();
    wait_until("updates that do not wait for the S3 server", || values() > before + 1);
    demo.must("./s3-server >/dev/null 2>&1 & echo $! >pids/s3");
    let goes_on = || demo.must("roundel backup verify --from $place --config $config") != verified;
    wait_until("a later moment in the backup", goes_on);
    demo.must("roundel restore --from $place --config $config --to restored && roundel export --all --from restored --to files");
    assert!(demo.must("ls files").contains("switch-"), "the partition has RRDs");

    demo.end();
    let (said, work) = (demo.said.clone(), demo.work.clone());
    drop(demo);
    assert!(std::fs::read_to_string(said).unwrap().ends_with("its files are removed.\n"));
    assert!(!work.exists());
}
