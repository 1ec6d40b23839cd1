//! What LibreNMS and Munin do to their trees, by hand.

use super::tree::same;
use super::*;

const MAKE: &str = "create() { mkdir -p $(dirname $1); $t create $1 -O -b 1000000000 -s 10 DS:x:GAUGE:30:U:U RRA:AVERAGE:0.5:1:20; }; ";
const SHOW: &str = "find . -name '*.rrd' | sort | while read f; do echo $f; $t lastupdate $f; $t fetch $f AVERAGE -s 1000000000 -e 1000000060; done";

#[test]
fn hosts_are_renamed_deleted_and_added_again() {
    let (directory, mut daemon, tool) = beside_files(Kind::Stripes);
    let plain = directory.path().join("plain");
    let same = |daemon: &Daemon, script: &str| same(daemon, &tool, &plain, &format!("{MAKE}{script}"));
    for script in [
        // Enough that a host is more than a tenth of all, and than twenty.
        "for h in sw1 sw2 sw3; do for n in $(seq 25); do create $h/port-id$n.rrd; $t update $h/port-id$n.rrd 1000000010:$n; done; done",
        // It is renamed, and polled at once under its new name.
        "mv sw1 core1; for n in $(seq 25); do $t update core1/port-id$n.rrd 1000000020:$n; done; $t update sw1/port-id1.rrd 1000000030:1 2>/dev/null || echo gone",
        // It is deleted, and added again: no history comes back.
        "rm -rf sw2; for n in $(seq 25); do create sw2/port-id$n.rrd; $t update sw2/port-id$n.rrd 1000000030:$n; done; $t fetch sw2/port-id3.rrd AVERAGE -s 1000000000 -e 1000000060",
        // The same with a lock file, as its scripts leave them, and one port that is polled meanwhile.
        "touch core1/.lock; rm -rf core1/port-id1?.rrd; create core1/port-id12.rrd; $t update core1/port-id12.rrd 1000000010:5; $t update core1/port-id2.rrd 1000000040:5; ls -A core1 | wc -l",
        SHOW,
    ] {
        same(&daemon, script);
    }
    daemon.kill();
    daemon.start();
    same(&daemon, SHOW);
}

#[test]
fn a_purge_by_age_finds_what_is_no_longer_updated() {
    let (_directory, daemon, tool) = beside_files(Kind::Stripes);
    let address = format!("unix:{}", daemon.socket().display());
    let sh = |script: &str| {
        let mut command = Command::new("sh");
        command.args(["-ec", script]).current_dir(daemon.base()).env("t", &tool.link);
        let output = command.env("RRDCACHED_ADDRESS", &address).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&text).trim().to_string()
    };
    let made = sh(
        "for n in old new; do $t create $n.rrd -b 1000000000 -s 10 DS:x:GAUGE:30:U:U RRA:AVERAGE:0.5:1:20; $t update $n.rrd 1000000010:1; done; \
                   $t update new.rrd N:5; $t flushcached old.rrd; $t flushcached new.rrd",
    );
    assert_eq!(made, "");
    assert_eq!(sh("find . -name '*.rrd' -mtime +30 -print -delete"), "./old.rrd");
    assert_eq!(sh("$t list /"), "new.rrd");
    assert_eq!(sh("$t last old.rrd 2>/dev/null || echo gone"), "-1\ngone");
}

#[test]
fn a_field_of_munin_changes_its_type() {
    let (directory, daemon, tool) = beside_files(Kind::Stripes);
    let plain = directory.path().join("plain");
    for script in [
        "mkdir -p d/h; echo version 2 > datafile; for n in a b; do $t create d/h-if-$n-d.rrd -b 1000000000 -s 10 DS:42:DERIVE:30:0:U RRA:AVERAGE:0.5:1:20; \
         $t update d/h-if-$n-d.rrd 1000000010:1 1000000020:30; done",
        "$t tune d/h-if-a-d.rrd --data-source-type 42:GAUGE; mv d/h-if-a-d.rrd d/h-if-a-g.rrd; $t update d/h-if-a-g.rrd 1000000030:7; $t info d/h-if-a-g.rrd | grep type",
        // The host gets another domain; the file that is no RRD stays as it is.
        "mkdir e; for f in d/h-*; do mv $f e/${f#d/}; done; rmdir d/h; rmdir d; cat datafile; echo version 3 > datafile.new; mv datafile.new datafile; cat datafile",
        SHOW,
    ] {
        same(&daemon, &tool, &plain, script);
    }
}
