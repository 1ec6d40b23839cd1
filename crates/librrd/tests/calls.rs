//! Programs on Debian's librrd and on ours, unchanged: the same answers and the same RRDs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// A directory with our library under its real name.
fn library(place: &Path) -> PathBuf {
    // Cargo builds it beside its tests before they run.
    let built = std::env::current_exe().unwrap().with_file_name("liblibrrd.so");
    assert!(built.exists(), "{built:?} is not there");
    let directory = place.join("lib");
    std::fs::create_dir(&directory).unwrap();
    std::os::unix::fs::symlink(built, directory.join("librrd.so.8")).unwrap();
    directory
}

/// What `command` prints in a directory of its own, on either library.
fn on_both(command: impl Fn() -> Command) -> [(String, tempfile::TempDir); 2] {
    [false, true].map(|ours| {
        let place = tempfile::tempdir().unwrap();
        let mut command = command();
        command.current_dir(place.path()).env("TZ", "UTC").env("LC_ALL", "C").env_remove("RRDCACHED_ADDRESS");
        if ours {
            command.env("LD_LIBRARY_PATH", library(place.path()));
        }
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "ours: {ours}\n{text}\n{errors}");
        (text, place)
    })
}

fn compare([(theirs, their_place), (ours, our_place)]: [(String, tempfile::TempDir); 2], files: &[&str]) {
    for (number, (their, our)) in theirs.lines().zip(ours.lines()).enumerate() {
        // RRDtool draws lots where an archive begins.
        if !their.contains("cur_row") {
            assert_eq!(our, their, "line {}", number + 1);
        }
    }
    assert_eq!(ours.lines().count(), theirs.lines().count());
    for file in files {
        let read = |place: &tempfile::TempDir| {
            let dump = Command::new("/usr/bin/rrdtool")
                .args(["dump", file])
                .current_dir(place.path())
                .output()
                .unwrap();
            assert!(dump.status.success(), "{file}: {}", String::from_utf8_lossy(&dump.stderr));
            String::from_utf8(dump.stdout).unwrap()
        };
        assert_eq!(read(&our_place), read(&their_place), "{file} differs");
    }
}

#[test]
fn a_c_program_gets_the_same_from_either() {
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("calls");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/calls.c");
    let made =
        Command::new("cc").args(["-w", "-o"]).arg(&program).args([source, "-lrrd", "-lm"]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    compare(on_both(|| Command::new(&program)), &["x.rrd", "z.rrd"]);
}

#[test]
fn perl_gets_the_same_from_either() {
    let script = r#"
        use RRDs;
        sub told { my ($call, @values) = @_; my $error = RRDs::error(); $error = '' unless defined $error;
            print "$call: @{[map { defined $_ ? $_ : 'undef' } @values]} '$error'\n" }
        RRDs::create('p.rrd', '--start', 1000000000, '--step', 10, 'DS:a:COUNTER:20:0:U', 'RRA:AVERAGE:0.5:1:10');
        told('create');
        RRDs::update('p.rrd', '1000000010:100', '1000000020:200', '1000000030:400'); told('update');
        my ($start, $step, $names, $rows) = RRDs::fetch('p.rrd', 'AVERAGE', '-s', 1000000000, '-e', 1000000029);
        told('fetch', $start, $step, @$names, map { $_->[0] } @$rows);
        my $info = RRDs::info('p.rrd'); told('info', map { "$_=" . ($info->{$_} // 'undef') } grep { !/cur_row/ } sort keys %$info);
        told('last', RRDs::last('p.rrd'), RRDs::first('p.rrd'));
        my $written = RRDs::updatev('p.rrd', '1000000040:500');
        told('updatev', map { "$_=$written->{$_}" } sort keys %$written);
        RRDs::update('p.rrd', '5:1'); told('too old');
        my ($prints, $x, $y) = RRDs::graph('g.png', '-s', 1000000000, '-e', 1000000040, 'DEF:a=p.rrd:a:AVERAGE',
            'LINE:a#f00', 'PRINT:a:MAX:%.1lf'); told('graph', @$prints, $x, $y);
        my ($first, $last, $width, $columns, $legends, $data) = RRDs::xport('-s', 1000000000, '-e', 1000000040,
            'DEF:a=p.rrd:a:AVERAGE', 'XPORT:a:x'); told('xport', $first, $last, $width, $columns, @$legends, map { $_->[0] } @$data);
        told('times', RRDs::times('end-1h', '1000000000'));
        RRDs::tune('p.rrd', '-i', 'a:1'); told('tune');
        RRDs::dump('p.rrd', 'p.xml'); told('dump');
        RRDs::restore('p.xml', 'q.rrd'); told('restore');
        RRDs::create('q.rrd', 'DS:bad'); told('bad');
    "#;
    let run = || {
        let mut command = Command::new("perl");
        command.args(["-e", script]);
        command
    };
    compare(on_both(run), &["p.rrd", "q.rrd"]);
}
