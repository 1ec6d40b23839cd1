//! Trees of placeholders that programs move, copy and remove, with the command lines and the administrator's commands on them.

use super::*;

/// Runs commands of a shell in both directories, with our `rrdtool` as `$t` and the daemon that the environment names; what they print must be the same.
pub(super) fn same(daemon: &Daemon, tool: &Tool, plain: &Path, script: &str) {
    let run = |directory: &Path, address: Option<String>| {
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(directory).env("TZ", "UTC").env("t", &tool.link);
        command.env_remove("RRDCACHED_ADDRESS");
        if let Some(address) = address {
            command.env("RRDCACHED_ADDRESS", address);
        }
        let output = command.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        normal(&String::from_utf8_lossy(&text))
    };
    let address = format!("unix:{}", daemon.socket().display());
    let want = run(plain, None);
    assert_eq!(run(&daemon.base(), Some(address)), want, "{script}\n{}", daemon.log());
}

#[test]
fn what_programs_do_to_a_tree_has_the_effect_that_it_has_on_files() {
    let (directory, mut daemon, tool) = beside_files(Kind::Stripes);
    let plain = directory.path().join("plain");
    let make = "mkdir -p h; for n in a b c; do $t create h/$n.rrd -b 1000000000 -s 10 DS:x:GAUGE:30:U:U RRA:AVERAGE:0.5:1:20; \
                $t update h/$n.rrd 1000000010:1 1000000020:2; done";
    let show = "for f in $(find . -name '*.rrd' | sort); do echo $f; $t lastupdate $f; $t fetch $f AVERAGE -s 1000000000 -e 1000000060; done";
    for script in [
        make,
        // A host is renamed, with what it sends at once.
        "mv h new; $t update new/a.rrd 1000000030:5; $t update h/a.rrd 1000000030:5 2>/dev/null || echo gone; $t lastupdate new/a.rrd; ls h",
        "cp -a new copy; $t update new/b.rrd 1000000030:7; $t tune copy/b.rrd --maximum x:9; $t info copy/b.rrd | grep max; $t dump new/b.rrd | grep max",
        "mv -T new t; mv -T copy new; mv -T t copy",
        show,
        // A host is deleted and added again: no history comes back.
        "rm -r new; $t lastupdate new/a.rrd 2>/dev/null || echo gone; mkdir new; $t create new/a.rrd -O -b 1000000000 -s 10 DS:x:GAUGE:30:U:U RRA:AVERAGE:0.5:1:20; \
         $t lastupdate new/a.rrd; $t create new/a.rrd -O DS:x:GAUGE:30:U:U RRA:AVERAGE:0.5:1:20 2>/dev/null || echo exists",
        "ln -s copy link; $t update link/c.rrd 1000000030:3; $t lastupdate copy/c.rrd; ln copy/c.rrd hard.rrd; $t update hard.rrd 1000000040:3; $t lastupdate copy/c.rrd",
        "mv copy/a.rrd new/a.rrd; cp new/a.rrd new/z.rrd; $t update new/z.rrd 1000000050:1",
        show,
        // Debian's own, through the daemon.
        "mv new/z.rrd y.rrd; rrdtool update y.rrd 1000000060:8; rrdtool last y.rrd; rrdtool last new/z.rrd >/dev/null 2>&1 || echo gone",
    ] {
        same(&daemon, &tool, &plain, script);
    }
    daemon.kill();
    daemon.start();
    same(&daemon, &tool, &plain, show);
}

/// Runs `roundel` and returns what it prints.
fn roundel(words: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_roundel")).args(words.split(' ')).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn the_administrator_renames_and_restores_over_tcp() {
    for kind in [Kind::Stripes, Kind::Files] {
        let (_directory, mut daemon, tool) = beside_files(kind);
        let base = daemon.base();
        let has_trash = kind == Kind::Stripes;
        let ask = |words: &str| {
            let (command, rest) = words.split_once(' ').unwrap_or((words, ""));
            let rest = if rest.is_empty() { String::new() } else { format!(" {rest}") };
            roundel(&format!("{command}{rest} --daemon 127.0.0.1:{}", daemon.tcp_port()))
        };
        let address = format!("unix:{}", daemon.socket().display());
        let create = |name: &str, value: i64| {
            let words = format!("create {name} -b 1000000000 -s 10 DS:x:GAUGE:30:U:U RRA:AVERAGE:0.5:1:20");
            assert_eq!(tool.run(&base, Some(&address), &words).1, "");
            let update = format!("update {name} 1000000010:{value}");
            assert_eq!(tool.run(&base, Some(&address), &update).1, "");
        };
        std::fs::create_dir(base.join("h")).unwrap();
        (1..4).for_each(|number| create(&format!("h/{number}.rrd"), number));
        let last = |name: &str| {
            let (text, error) = tool.run(&base, Some(&address), &format!("lastupdate {name}"));
            text.rsplit_once(' ').map_or(error, |(_, value)| value.trim().to_string())
        };
        assert_eq!(ask("rename h/1.rrd h/2.rrd"), "renamed 1 RRDs, 0 failed\n");
        assert_eq!((last("h/2.rrd").as_str(), base.join("h/1.rrd").exists()), ("1", false));
        assert!(ask("rename h/2.rrd h/3.rrd --no-clobber").contains("h/3.rrd exists"));
        assert_eq!(ask("copy h g"), "copied 2 RRDs, 0 failed\n");
        assert!(ask("rename nope.rrd x.rrd").contains("nope.rrd: no such RRD"));
        assert!(ask("remove g").contains("use --recursive"));
        assert_eq!(ask("remove g --recursive"), "removed 2 RRDs, 0 failed\n");
        assert!(!base.join("g/2.rrd").exists());
        assert!(ask("rename h/2.rrd ../x.rrd").contains("Permission denied"));
        if !has_trash {
            assert!(ask("trash list").contains("keeps no trash"), "{}", ask("trash list"));
            continue;
        }
        let list = ask("trash list");
        let names: Vec<&str> = list.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
        assert_eq!(names, ["g/2.rrd", "g/3.rrd", "h/2.rrd"], "{list}");
        assert_eq!(ask("restore g"), "restored 2 RRDs, 0 failed\n");
        assert_eq!((last("g/2.rrd").as_str(), last("g/3.rrd").as_str()), ("1", "3"));
        assert!(ask("restore h/2.rrd").contains("File exists"), "{}", ask("restore h/2.rrd"));
        assert_eq!(ask("trash restore h/2.rrd --to old.rrd"), "restored 1 RRDs, 0 failed\n");
        assert_eq!((last("old.rrd").as_str(), last("h/2.rrd").as_str()), ("2", "1"));
        assert_eq!(ask("remove old.rrd"), "removed 1 RRDs, 0 failed\n");
        assert_eq!(ask("trash empty"), "deleted 1 RRDs, 0 failed\n");
        assert_eq!(ask("trash list"), "");
        daemon.kill();
    }
}
