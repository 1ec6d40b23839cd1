//! `roundel export --to postgres://`: a real PostgreSQL has the rows that rrdtool fetches.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use testkit::{Running, Signal, wait_until};

use super::store::{START, Store, check_rows, finest, parse, roundel, try_roundel};

/// A cluster of its own in a temporary directory, on a UNIX socket there and a port of the loopback.
pub struct Cluster {
    server: Running,
    bin: PathBuf,
    pub port: u16,
    directory: tempfile::TempDir,
}

/// Runs a program of PostgreSQL, which refuses to be root.
fn unprivileged(program: &Path) -> Command {
    if rustix::process::geteuid().is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "postgres", "--regid", "postgres", "--clear-groups"]).arg(program);
        command
    } else {
        Command::new(program)
    }
}

impl Cluster {
    /// Starts it; `None`, and the test is skipped, when PostgreSQL is not installed.
    pub fn start() -> Option<Self> {
        Cluster::start_with(|_| String::new())
    }

    /// Starts it with options that `prepare` gives for its directory.
    fn start_with(prepare: impl FnOnce(&Path) -> String) -> Option<Self> {
        let bin = testkit::peer::postgresql()?;
        let directory = tempfile::Builder::new().prefix("postgres-").tempdir().unwrap();
        std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o777)).unwrap();
        let data = directory.path().join("data");
        let mut init = unprivileged(&bin.join("initdb"));
        init.args(["-A", "trust", "-U", "ann", "-E", "UTF8", "--no-sync", "-D"]).arg(&data);
        let output = init.current_dir(directory.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let port = testkit::free_port();
        let options = prepare(directory.path());
        let server = Cluster::serve(&bin, directory.path(), port, &options);
        let cluster = Cluster { server, directory, bin, port };
        wait_until("PostgreSQL to start", || cluster.psql("SELECT 1").is_some());
        Some(cluster)
    }

    fn serve(bin: &Path, directory: &Path, port: u16, options: &str) -> Running {
        let mut server = unprivileged(&bin.join("postgres"));
        server.arg("-D").arg(directory.join("data")).arg("-k").arg(directory);
        server.args(["-p", &port.to_string(), "-F"]).args(options.split_whitespace());
        Running::quiet(server.current_dir(directory))
    }

    /// Ends it in the middle of whatever it does.
    fn kill(&mut self) {
        if self.server.ended().is_none() {
            self.server.signal(Signal::QUIT);
            self.server.wait();
        }
    }

    pub fn url(&self, user: &str) -> String {
        let host = self.directory.path().to_str().unwrap().replace('/', "%2F");
        format!("postgres://{user}@{host}:{}/postgres", self.port)
    }

    fn client(&self, statement: &str) -> Command {
        let mut psql = Command::new(self.bin.join("psql"));
        psql.arg("-h").arg(self.directory.path()).args(["-p", &self.port.to_string(), "-U", "ann"]);
        psql.args(["-d", "postgres", "-XAtqc", statement]).stdin(Stdio::null());
        psql
    }

    /// What psql prints, with `|` between columns; `None` when it fails.
    pub fn psql(&self, statement: &str) -> Option<String> {
        let output = self.client(statement).output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    }

    /// Statements of a session of its own, which goes on beside others.
    pub fn session(&self, statements: &str) -> Running {
        Running::quiet(&mut self.client(statements))
    }

    pub fn rows(&self, view: &str) -> std::collections::BTreeMap<super::store::Place, f64> {
        let select =
            format!("SELECT name, ds, cf, step, extract(epoch FROM time)::bigint, value FROM {view}");
        parse(&self.psql(&select).expect("rows"))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // SIGQUIT: at once, with its children.
        self.kill();
    }
}

#[test]
fn postgresql_has_what_rrdtool_fetches_once() {
    let Some(cluster) = Cluster::start() else { return };
    let mut store = Store::new();
    let directory = store.tool.directory().to_path_buf();
    let url = cluster.url("ann");
    let export = ["export", "--all", "--from", "store", "--to", &url];
    let first = finest(&store.rows());
    // What an export with an end leaves out comes with the next one.
    let middle = START + 30 * 60;
    roundel(&directory, &[&export[..], &["-e", &middle.to_string()]].concat(), &[]);
    let early = cluster.rows("roundel.history");
    assert!(!early.is_empty() && early.keys().all(|place| place.4 <= middle), "{early:?}");
    assert_eq!(
        roundel(&directory, &export, &[]),
        format!("exported 4 RRDs, 0 failed: {} rows copied\n", first.len() - early.len())
    );
    check_rows(&cluster.rows("roundel.history"), &first);
    assert_eq!(roundel(&directory, &export, &[]), "exported 4 RRDs, 0 failed: 0 rows copied\n");

    // Later rows come, those that the RRD has lost stay; `--again` replaces what there is.
    for (seed, name) in store.names.clone().iter().enumerate() {
        store.update(name, seed as i64, 60..70);
    }
    store.import();
    roundel(&directory, &export, &[]);
    let mut want = first.clone();
    want.extend(
        finest(&store.rows())
            .into_iter()
            .filter(|(place, _)| place.4 > if place.2 == "MAX" { last_row(&first) } else { START + 59 * 60 }),
    );
    check_rows(&cluster.rows("roundel.history"), &want);
    cluster.psql("DELETE FROM roundel.rows WHERE value > 1").unwrap();
    roundel(&directory, &[&export[..], &["--again"]].concat(), &[]);
    check_rows(&cluster.rows("roundel.history"), &finest(&store.rows()));

    // All archives, in a schema of their own, a table for each tree.
    roundel(
        &directory,
        &[&export[..], &["--schema", "all \"of\" it", "--archives", "all", "--tables", "tree"]].concat(),
        &[],
    );
    let mut all = cluster.rows("\"all \"\"of\"\" it\".history_hosts");
    assert!(all.keys().all(|place| place.0.starts_with("hosts/")));
    all.extend(cluster.rows("\"all \"\"of\"\" it\".history_ports"));
    all.extend(cluster.rows("\"all \"\"of\"\" it\".history"));
    check_rows(&all, &store.rows());
}

/// The end of the newest coarse row.
fn last_row(rows: &std::collections::BTreeMap<super::store::Place, f64>) -> i64 {
    rows.keys().filter(|place| place.2 == "MAX").map(|place| place.4).max().unwrap()
}

#[test]
fn an_export_that_is_interrupted_goes_on_and_two_do_not_mix() {
    let Some(cluster) = Cluster::start() else { return };
    let mut store = Store::new();
    let directory = store.tool.directory().to_path_buf();
    let url = cluster.url("ann");
    // The server refuses rows of one series once the others are in: nothing of the batch stays.
    roundel(&directory, &["export", "top.rrd", "--from", "store", "--to", &url], &[]);
    cluster.psql("ALTER TABLE roundel.rows ADD CONSTRAINT small CHECK (value < 1) NOT VALID").unwrap();
    let before = cluster.rows("roundel.history");
    let failed = try_roundel(&directory, &["export", "--all", "--from", "store", "--to", &url], &[]);
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(!failed.status.success() && said.contains("violates check constraint"), "{said}");
    assert_eq!(cluster.rows("roundel.history"), before);
    cluster.psql("ALTER TABLE roundel.rows DROP CONSTRAINT small").unwrap();
    roundel(&directory, &["export", "--all", "--from", "store", "--to", &url], &[]);
    check_rows(&cluster.rows("roundel.history"), &finest(&store.rows()));

    let lock =
        "SELECT pg_advisory_lock(hashtextextended('roundel export to roundel', 0)); SELECT pg_sleep(60)";
    let other = cluster.session(lock);
    wait_until("the lock", || {
        cluster.psql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").unwrap() == "1\n"
    });
    let failed = try_roundel(&directory, &["export", "--all", "--from", "store", "--to", &url], &[]);
    assert!(String::from_utf8_lossy(&failed.stderr).contains("another export writes"), "{failed:?}");
    other.kill();
}

#[test]
fn passwords_and_hypertables() {
    let Some(cluster) = Cluster::start() else { return };
    let store = Store::new();
    let directory = store.tool.directory().to_path_buf();
    // What TimescaleDB offers, as far as an export uses it; Debian has no package of it.
    let stub = "CREATE TABLE made (name text);
        CREATE FUNCTION create_hypertable(regclass, name, if_not_exists boolean) RETURNS void LANGUAGE sql
        AS $$ INSERT INTO made VALUES ($1::text || ' by ' || $2) $$";
    cluster.psql(stub).unwrap();
    cluster.psql("CREATE ROLE bob LOGIN PASSWORD 'se:cret' IN ROLE pg_write_all_data; GRANT CREATE ON DATABASE postgres TO bob; GRANT INSERT ON made TO bob").unwrap();
    let rules = "host all all 127.0.0.1/32 scram-sha-256\nlocal all all trust\n";
    std::fs::write(cluster.directory.path().join("data/pg_hba.conf"), rules).unwrap();
    cluster.psql("SELECT pg_reload_conf()").unwrap();
    let url = format!("postgres://bob@127.0.0.1:{}/postgres", cluster.port);
    let export = ["export", "ports", "--from", "store", "--to", &url];
    let passfile = directory.join("pgpass");
    std::fs::write(&passfile, format!("127.0.0.1:{}:*:bob:se\\:cret\n", cluster.port)).unwrap();
    let home = [("PGPASSFILE", passfile.to_str().unwrap())];
    // Others may read it.
    std::fs::set_permissions(&passfile, PermissionsExt::from_mode(0o644)).unwrap();
    wait_until("the rules", || !try_roundel(&directory, &export, &home).status.success());
    std::fs::set_permissions(&passfile, PermissionsExt::from_mode(0o600)).unwrap();
    roundel(&directory, &export, &home);
    let failed = try_roundel(&directory, &export, &[("PGPASSWORD", "wrong")]);
    assert!(String::from_utf8_lossy(&failed.stderr).contains("password authentication failed"), "{failed:?}");
    roundel(&directory, &export, &[("PGPASSWORD", "se:cret")]);
    assert_eq!(cluster.psql("SELECT * FROM made").unwrap(), "roundel.rows by time\n");
    // This server has no TLS; the next test's has.
    let failed = try_roundel(
        &directory,
        &["export", "ports", "--from", "store", "--to", &format!("{url}?sslmode=require")],
        &[],
    );
    assert!(String::from_utf8_lossy(&failed.stderr).contains("TLS"), "{failed:?}");
}

#[test]
fn an_encrypted_connection_is_verified() {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_string()]).unwrap();
    let pem = certified.cert.pem();
    let cluster = Cluster::start_with(|directory| {
        let (certificate, key) = (directory.join("server.crt"), directory.join("server.key"));
        std::fs::write(&certificate, &pem).unwrap();
        std::fs::write(&key, certified.signing_key.serialize_pem()).unwrap();
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
        if rustix::process::geteuid().is_root() {
            assert!(
                Command::new("chown").arg("postgres").args([&certificate, &key]).status().unwrap().success()
            );
        }
        format!("-c ssl=on -c ssl_cert_file={} -c ssl_key_file={}", certificate.display(), key.display())
    });
    let Some(cluster) = cluster else { return };
    let mut store = Store::new();
    let directory = store.tool.directory().to_path_buf();
    std::fs::write(directory.join("ca.pem"), pem).unwrap();
    let url = format!("postgres://ann@localhost:{}/postgres?sslmode=verify-full", cluster.port);
    let export =
        |url: &str| try_roundel(&directory, &["export", "--all", "--from", "store", "--to", url], &[]);
    let refused = export(&url);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("sslrootcert=FILE"), "{refused:?}");
    let accepted = export(&format!("{url}&sslrootcert=ca.pem"));
    assert!(accepted.status.success(), "{accepted:?}");
    check_rows(&cluster.rows("roundel.history"), &finest(&store.rows()));
    let other = export(&format!("{}&sslrootcert=ca.pem", url.replace("localhost", "127.0.0.1")));
    assert!(String::from_utf8_lossy(&other.stderr).contains("certificate"), "{other:?}");
}

#[test]
fn what_is_there_of_an_rrd_stays_alone_when_it_gets_another_step() {
    let Some(cluster) = Cluster::start() else { return };
    let mut store = Store::new();
    let directory = store.tool.directory().to_path_buf();
    let url = cluster.url("ann");
    let export = ["export", "top.rrd", "--from", "store", "--to", &url];
    roundel(&directory, &export, &[]);
    let before = cluster.rows("roundel.history");
    let newest = before.keys().map(|place| place.4).max().unwrap();
    let create = "DS:in:GAUGE:240:U:U DS:out:GAUGE:240:U:U RRA:AVERAGE:0.5:1:100";
    store.tool.run(&format!("create top.rrd --start {} --step 120 {create}", START - 120)).unwrap();
    store.update("top.rrd", 3, 0..70);
    store.import();
    roundel(&directory, &export, &[]);
    let mut after = cluster.rows("roundel.history");
    let new: Vec<_> =
        after.extract_if(.., |place, _| !before.contains_key(place)).map(|(place, _)| place).collect();
    assert_eq!(after, before);
    assert!(!new.is_empty() && new.iter().all(|place| place.3 == 120 && place.4 > newest), "{new:?}");
}

#[test]
fn a_sink_goes_on_after_whatever_its_database_does() {
    let Some(mut cluster) = Cluster::start() else { return };
    let mut store = Store::new();
    let directory = store.tool.directory().to_path_buf();
    let here = directory.display();
    let config = format!(
        "store = \"{here}/store\"\nplaceholders = false\nbase = \"{here}/base\"\n[[listen]]\naddress = \"unix:{here}/sock\"\n\
         [[sink]]\nto = \"{}\"\ninterval = \"1s\"\n",
        cluster.url("ann")
    );
    std::fs::create_dir(directory.join("base")).unwrap();
    let file = directory.join("roundel.toml");
    std::fs::write(&file, config).unwrap();
    let words = ["serve", "--config", file.to_str().unwrap()];
    let daemon = Running::program(&directory.join("log"), env!("CARGO_BIN_EXE_roundel"), &words);
    let arrive = |cluster: &Cluster, want: std::collections::BTreeMap<super::store::Place, f64>| {
        wait_until("the sink to have all rows", || {
            cluster.psql("SELECT 1 FROM roundel.rows LIMIT 1").is_some_and(|one| !one.is_empty()) && {
                let got = cluster.rows("roundel.history");
                want.iter().all(|(place, value)| {
                    got.get(place).is_some_and(|got| (got - value).abs() <= value.abs() * 1e-9)
                })
            }
        });
    };
    arrive(&cluster, finest(&store.rows()));
    // It is down while more comes, and one RRD is updated in microseconds: the others go on.
    cluster.kill();
    let mut stream = UnixStream::connect(directory.join("sock")).unwrap();
    let mut say = |line: String| {
        writeln!(stream, "{line}").unwrap();
        let mut answer = String::new();
        BufReader::new(&stream).read_line(&mut answer).unwrap();
        assert!(answer.starts_with("0 "), "{line}: {answer}");
    };
    say(format!("UPDATE top.rrd {}:1:2", START * 1_000_000));
    let name = store.names[1].clone();
    store.update(&name, 1, 60..75);
    for update in 60..75i64 {
        let value = (update * update % 37 + 1) as f64 / 7.0;
        let other = if update % 11 == 3 { "U".to_string() } else { format!("{}", value * 1e6) };
        say(format!("UPDATE {name} {}:{value}:{other}", START + 60 * update));
    }
    let log = || std::fs::read_to_string(directory.join("log")).unwrap();
    wait_until("a round to fail", || log().contains("a sink has not got its rows"));
    cluster.server = Cluster::serve(&cluster.bin, cluster.directory.path(), cluster.port, "");
    wait_until("PostgreSQL to start", || cluster.psql("SELECT 1").is_some());
    let mut want = finest(&store.rows());
    want.retain(|place, _| place.0 == name && (place.3 == 60 || place.2 == "MAX"));
    arrive(&cluster, want);
    wait_until("the log to name what stayed", || log().contains("top.rrd: its newest rows are after"));
    // It does not answer: nothing waits for it when the daemon ends.
    let other = cluster.session("BEGIN; LOCK TABLE roundel.series; SELECT pg_sleep(600)");
    let is_locked = "SELECT 1 FROM pg_locks WHERE relation = 'roundel.series'::regclass AND mode = 'AccessExclusiveLock' AND granted";
    wait_until("the lock", || cluster.psql(is_locked).is_some_and(|one| !one.is_empty()));
    say(format!("UPDATE {name} {}:1:2", START + 60 * 75));
    wait_until("the sink to wait", || {
        cluster.psql("SELECT 1 FROM pg_locks WHERE NOT granted LIMIT 1").is_some_and(|one| !one.is_empty())
    });
    let begun = std::time::Instant::now();
    daemon.terminate();
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    other.kill();
}
