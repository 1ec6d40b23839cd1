//! `roundel export --to postgres://`: a real PostgreSQL has the rows that rrdtool fetches.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use oracle::wait_until;

use super::store::{START, Store, check_rows, finest, parse, roundel, try_roundel};

/// A cluster of its own in a temporary directory, on a UNIX socket there and a port of the loopback.
pub struct Cluster {
    server: Child,
    directory: tempfile::TempDir,
    bin: PathBuf,
    pub port: u16,
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
    /// Starts it; `None`, said aloud, when PostgreSQL is not installed.
    pub fn start() -> Option<Self> {
        Cluster::start_with(|_| String::new())
    }

    /// Starts it with options that `prepare` gives for its directory.
    fn start_with(prepare: impl FnOnce(&Path) -> String) -> Option<Self> {
        let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let bin = versions.map(|version| version.path().join("bin")).find(|bin| bin.join("initdb").exists());
        let Some(bin) = bin else {
            oracle::skip("PostgreSQL is not installed: make peers");
            return None;
        };
        let directory = tempfile::Builder::new().prefix("postgres-").tempdir().unwrap();
        std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o777)).unwrap();
        let data = directory.path().join("data");
        let mut init = unprivileged(&bin.join("initdb"));
        init.args(["-A", "trust", "-U", "ann", "-E", "UTF8", "--no-sync", "-D"]).arg(&data);
        let output = init.current_dir(directory.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let port = oracle::free_port();
        let mut server = unprivileged(&bin.join("postgres"));
        server.arg("-D").arg(&data).arg("-k").arg(directory.path()).args(["-p", &port.to_string(), "-F"]);
        server.args(prepare(directory.path()).split_whitespace());
        let server = server.current_dir(directory.path()).stderr(Stdio::null()).spawn().unwrap();
        let cluster = Cluster { server, directory, bin, port };
        wait_until("PostgreSQL to start", || cluster.psql("SELECT 1").is_some());
        Some(cluster)
    }

    pub fn url(&self, user: &str) -> String {
        let host = self.directory.path().to_str().unwrap().replace('/', "%2F");
        format!("postgres://{user}@{host}:{}/postgres", self.port)
    }

    /// What psql prints, with `|` between columns; `None` when it fails.
    fn psql(&self, statement: &str) -> Option<String> {
        let mut psql = Command::new(self.bin.join("psql"));
        psql.arg("-h").arg(self.directory.path()).args([
            "-p",
            &self.port.to_string(),
            "-U",
            "ann",
            "-d",
            "postgres",
        ]);
        let output = psql.args(["-XAtqc", statement]).stdin(Stdio::null()).output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    }

    fn rows(&self, view: &str) -> std::collections::BTreeMap<super::store::Place, f64> {
        let select =
            format!("SELECT name, ds, cf, step, extract(epoch FROM time)::bigint, value FROM {view}");
        parse(&self.psql(&select).expect("rows"))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // SIGQUIT: at once, with its children.
        let id = rustix::process::Pid::from_child(&self.server);
        rustix::process::kill_process(id, rustix::process::Signal::QUIT).ok();
        self.server.wait().ok();
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
    assert_eq!(
        roundel(&directory, &export, &[]),
        format!("exported 4 RRDs, 0 failed: {} rows copied\n", first.len())
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

    let mut other = Command::new(cluster.bin.join("psql"));
    other.arg("-h").arg(cluster.directory.path()).args([
        "-p",
        &cluster.port.to_string(),
        "-U",
        "ann",
        "-d",
        "postgres",
    ]);
    let lock =
        "SELECT pg_advisory_lock(hashtextextended('roundel export to roundel', 0)); SELECT pg_sleep(60)";
    let mut other = other.args(["-XAtqc", lock]).stdout(Stdio::null()).spawn().unwrap();
    wait_until("the lock", || {
        cluster.psql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").unwrap() == "1\n"
    });
    let failed = try_roundel(&directory, &["export", "--all", "--from", "store", "--to", &url], &[]);
    assert!(String::from_utf8_lossy(&failed.stderr).contains("another export writes"), "{failed:?}");
    other.kill().unwrap();
    other.wait().unwrap();
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
