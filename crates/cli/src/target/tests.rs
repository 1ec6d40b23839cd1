//! The table of policies: where each finds an RRD, in every situation.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixListener;
use std::sync::Mutex;

use rrd_file::name::RrdName;
use rrd_file::placeholder::StoreIdentity;

use super::*;

/// What a daemon was asked.
type Asked = Arc<Mutex<Vec<String>>>;

/// A daemon that does whatever it is asked, its address and what it was asked.
fn daemon(directory: &Path, name: &str) -> (String, Asked) {
    let path = directory.join(name);
    let listener = UnixListener::bind(&path).unwrap();
    let asked = Asked::default();
    let log = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, log) = (BufReader::new(stream.unwrap()), Arc::clone(&log));
            std::thread::spawn(move || {
                let mut line = String::new();
                while stream.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
                    log.lock().unwrap().push(std::mem::take(&mut line));
                    stream.get_mut().write_all(b"0 done\n").unwrap();
                }
            });
        }
    });
    (format!("unix:{}", path.display()), asked)
}

/// Where the named daemon is.
const NAMED: [&str; 3] = ["none", "down", "up"];
/// What is at the name. `tree` is nothing, below a store's tree.
const NAMES: [&str; 4] = ["nothing.rrd", "file.rrd", "tree/placeholder.rrd", "tree/nothing.rrd"];

/// One letter for each of [`NAMES`]: F = the file, S = the store's daemon, N = the named daemon, - = an error.
fn outcomes(base: &Path, policy: Policy, named: &str, by_option: bool) -> String {
    let address = match named {
        "none" => None,
        name => Some(format!("unix:{}", base.join(name).display()).into_bytes()),
    };
    let mut environment = Environment::of_process();
    environment.daemon = if by_option { None } else { address.clone() };
    let mut tool = Tool::new(environment);
    let option = address.as_deref().filter(|_| by_option);
    let makes = [Policy::CREATE, Policy::PUT, Policy::CHANGE, Policy::COPY_TO]
        .iter()
        .any(|other| other.0 == policy.0);
    let mut letter = |name: &&str| {
        let word = base.join(name).as_os_str().as_bytes().to_vec();
        let found = if makes {
            tool.write_target(policy, &word, option).map(|location| match location {
                Location::Local(_) => None,
                Location::Remote(remote) => Some(remote),
            })
        } else {
            tool.read_target(policy, &word, option).map(|location| match location {
                Location::Local(_) => None,
                Location::Remote(remote) => Some(remote),
            })
        };
        match found {
            Ok(None) => 'F',
            Ok(Some(remote)) if remote.daemon.address().ends_with(b"/store") => 'S',
            Ok(Some(_)) => 'N',
            Err(_) => '-',
        }
    };
    NAMES.iter().map(&mut letter).collect()
}

#[test]
fn every_policy_finds_an_rrd_where_its_places_say() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path();
    let (_, asked) = daemon(base, "up");
    let (address, _) = daemon(base, "store");
    std::fs::create_dir(base.join("tree")).unwrap();
    let store = StoreIdentity([7; 16]);
    let name = RrdName::new(b"placeholder.rrd").unwrap();
    std::fs::write(
        base.join(NAMES[2]),
        rrd_file::placeholder::encode(&Placeholder { store, name, rrd: None }),
    )
    .unwrap();
    rrd_file::daemon_address::write(&base.join("tree"), store, &address).unwrap();
    let file = base.join(NAMES[1]);
    let args: [&[u8]; 3] = [file.as_os_str().as_bytes(), b"DS:a:GAUGE:600:U:U", b"RRA:AVERAGE:0.5:1:10"];
    Tool::new(Environment::of_process()).run(b"create", &args, &mut std::io::sink()).unwrap();

    // For each state of the named daemon (none, down, up) what is found at each of the four names.
    let rows = [
        ("read", Policy::READ, ["-FS-", "-FS-", "NNNN"], ["-FS-", "-FS-", "NNNN"]),
        ("read flushed", Policy::READ_FLUSHED, ["-FS-", "-FS-", "NFNN"], ["-FS-", "-FS-", "NFNN"]),
        ("here first", Policy::HERE_FIRST, ["-FS-", "-FS-", "-FS-"], ["-FS-", "-FS-", "NFSN"]),
        ("update here first", Policy::UPDATE_HERE_FIRST, ["-FS-", "-FS-", "-FS-"], ["-FS-", "-FS-", "NFSN"]),
        ("update", Policy::UPDATE, ["-FS-", "----", "NNNN"], ["-FS-", "----", "NNNN"]),
        ("update, list", Policy::UPDATEV, ["-FS-", "----", "NNNN"], ["-FS-", "-F--", "NFNN"]),
        ("create", Policy::CREATE, ["FFSS", "FFSS", "NNNN"], ["FFSS", "FFSS", "NNNN"]),
        ("put", Policy::PUT, ["FFSS", "----", "NNNN"], ["FFSS", "FF-S", "FFNS"]),
        ("change", Policy::CHANGE, ["FFSF", "FF-F", "NFNN"], ["FFSF", "FF-F", "NFNN"]),
        ("copy", Policy::COPY, ["-FS-", "-F--", "NFNN"], ["-FS-", "-F--", "NFNN"]),
        ("copy to", Policy::COPY_TO, ["FFSF", "FF-F", "FFNF"], ["FFSF", "FF-F", "FFNF"]),
    ];
    for (name, policy, by_option, by_environment) in rows {
        let found = |option: bool| NAMED.map(|named| outcomes(base, policy, named, option));
        assert_eq!(found(true), by_option, "{name}, the daemon named by an option");
        assert_eq!(found(false), by_environment, "{name}, the daemon named by the environment");
        let asked = std::mem::take(&mut *asked.lock().unwrap());
        let flushes = asked.iter().filter(|line| line.starts_with("flush ")).count();
        // Each name by option and by environment.
        let want = if policy.0 == Policy::READ_FLUSHED.0 { 2 * NAMES.len() } else { 0 };
        assert_eq!(flushes, want, "{name}: {asked:?}");
    }
}
