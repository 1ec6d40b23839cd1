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

/// Each script gets an odd name as `$n`, and where it is to be moved as `$m`.
#[test]
fn odd_names_are_names_like_others() {
    let (directory, mut daemon, tool) = beside_files(Kind::Stripes);
    let plain = directory.path().join("plain");
    let long = "a".repeat(250);
    let deep = "d/".repeat(60);
    let names = [
        "with blank",
        " around ",
        r"tab\t",
        r#"quo"te"#,
        "it's",
        r"back\\slash",
        r"\0377\0376",
        "*",
        "$(rm)",
        "-rf",
        "case",
        "CASE",
        "gr\u{fc}n",
        &long,
        &deep,
    ];
    let create = "-b 1000000000 -s 10 DS:x:GAUGE:30:U:U RRA:AVERAGE:0.5:1:20";
    let each = |script: &str| {
        names.iter().enumerate().fold(String::new(), |all, (number, name)| {
            let quoted = name.replace('\'', "'\\''");
            // A line feed at the end is cut off by the shell, a suffix is not.
            format!("{all}n=./$(printf %b '{quoted}_').rrd; m=moved/$n; v={number}; {script}\n")
        })
    };
    let show = each(
        "$t lastupdate \"$m\"; $t fetch \"$m\" AVERAGE -s 1000000000 -e 1000000030; $t info \"$m\" | grep last_up",
    );
    for script in [
        each(&format!(
            "mkdir -p \"$(dirname \"$n\")\" \"$(dirname \"$m\")\"; $t create \"$n\" {create}; $t update \"$n\" 1000000010:$v 1000000020:$v"
        )),
        each(
            "$t last \"$n\"; mv \"$n\" \"$m\"; $t last \"$n\" >/dev/null 2>&1 || echo gone; $t update \"$m\" 1000000030:7",
        ),
        show.clone(),
        each(
            "cp \"$m\" \"$n\"; $t tune \"$n\" -a x:$v; $t dump \"$n\" | grep max; $t dump \"$m\" | grep max",
        ),
        each(
            "ln -s \"$PWD/$m\" \"$n.link\" 2>/dev/null && $t lastupdate \"$n.link\"; ln \"$m\" \"$n.hard\" 2>/dev/null && $t update \"$n.hard\" 1000000040:8; $t last \"$m\"",
        ),
        each("rrdtool update \"$m\" 1000000050:9; rrdtool last \"$m\""),
    ] {
        same(&daemon, &tool, &plain, &script);
    }
    daemon.kill();
    daemon.start();
    same(&daemon, &tool, &plain, &show);
    // Commands are lines.
    let mut create = Command::new(&tool.link);
    create.args(["create", "line\nfeed.rrd", "DS:x:GAUGE:30:U:U", "RRA:AVERAGE:0.5:1:20"]);
    let output = create.current_dir(daemon.base()).env_remove("RRDCACHED_ADDRESS").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("a line feed"), "{said}");
}

/// Runs `roundel` and returns what it prints.
fn roundel(words: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_roundel")).args(words.split(' ')).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn a_daemon_is_not_started_in_the_tree_of_another() {
    let (directory, mut daemon, _tool) = beside_files(Kind::Stripes);
    let inside = daemon.base().join("in/side");
    std::fs::create_dir_all(&inside).unwrap();
    let above = directory.path().canonicalize().unwrap();
    let store = directory.path().join("second");
    let start = |tree: &Path| {
        let config = directory.path().join("second.toml");
        let address = format!("unix:{}", directory.path().join("second.sock").display());
        std::fs::write(
            &config,
            format!("store = {store:?}\nbase = {tree:?}\n[[listen]]\naddress = {address:?}\n"),
        )
        .unwrap();
        let output = Command::new("timeout")
            .args(["60", env!("CARGO_BIN_EXE_roundel"), "serve", "--config"])
            .arg(config)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    for tree in [&daemon.base(), &inside, &above] {
        let said = start(tree);
        for text in [&daemon.base().display().to_string(), "sock", "a tree of its own"] {
            assert!(said.contains(text), "{tree:?}: {said}");
        }
    }
    // The first one is not disturbed, and its address is still there.
    let address = std::fs::read_to_string(daemon.base().join(".roundel-daemon")).unwrap();
    assert!(address.contains(&daemon.socket().display().to_string()), "{address}");
    daemon.kill();
    daemon.start();
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
        for command in ["rename h h/sub", "copy h h/sub/", "rename h ./h//sub/x"] {
            assert!(ask(command).contains("which is in it"), "{command}");
        }
        assert_eq!((last("h/2.rrd").as_str(), base.join("h/sub").exists()), ("1", false));
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
        let partly = ask("restore nope g/2.rrd");
        assert!(partly.starts_with("restored 1 RRDs, 1 failed\n"), "{partly}");
        assert!(partly.contains("nope: nothing of that name was removed"), "{partly}");
        assert_eq!(ask("restore g"), "restored 1 RRDs, 0 failed\n");
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
