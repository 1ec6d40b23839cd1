//! A MariaDB of the test's own: not the system's service, and gone at the end.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use testkit::{Running, wait_until};

/// A running server without data, on a port of 127.0.0.1.
pub struct Database {
    _process: Running,
    socket: PathBuf,
    pub port: u16,
}

impl Database {
    pub fn start(directory: &Path) -> Self {
        let (data, socket) = (directory.join("db"), directory.join("db.sock"));
        fs::create_dir_all(&data).unwrap();
        let user = super::output(Command::new("id").arg("-un"));
        let user = user.trim();
        let datadir = format!("--datadir={}", data.display());
        super::output(Command::new("mariadb-install-db").args([
            "--no-defaults",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            &format!("--user={user}"),
            &datadir,
        ]));
        let port = testkit::free_port();
        let mut server = Command::new("/usr/sbin/mariadbd");
        server
            .args([
                "--no-defaults",
                "--bind-address=127.0.0.1",
                "--skip-log-bin",
                "--innodb-flush-log-at-trx-commit=0",
            ])
            .args(["--character-set-server=utf8mb4", "--collation-server=utf8mb4_unicode_ci", &datadir])
            .args([
                format!("--user={user}"),
                format!("--port={port}"),
                format!("--socket={}", socket.display()),
            ])
            .args([format!("--pid-file={}", directory.join("db.pid").display())]);
        let process = Running::start(&mut server, directory.join("db.log"));
        let database = Database { _process: process, socket, port };
        wait_until("MariaDB", || {
            let tried = database.client().args(["-e", "select 1"]).stderr(Stdio::null()).output();
            tried.unwrap().status.success()
        });
        database
    }

    fn client(&self) -> Command {
        let mut command = Command::new("mariadb");
        command.args(["--no-defaults", "-uroot", "-N", "-S"]).arg(&self.socket);
        command
    }

    /// Runs statements in a database; returns the rows as text.
    pub fn run(&self, database: &str, statements: &str) -> String {
        super::output(self.client().args(["-e", statements, database]))
    }

    /// Creates a database from a file of statements, and a user `cacti` with that password who may change it.
    pub fn create(&self, database: &str, file: &Path) {
        for host in ["127.0.0.1", "localhost"] {
            let user = format!("cacti@'{host}'");
            self.run(
                "mysql",
                &format!(
                    "create database if not exists {database}; create user if not exists {user} identified by 'cacti'; \
                     grant all on {database}.* to {user}; grant select on mysql.time_zone_name to {user}"
                ),
            );
        }
        super::output(self.client().arg(database).stdin(File::open(file).unwrap()));
    }

    /// What the time is, in seconds since the epoch, for users who connect from now on.
    pub fn set_time(&self, now: i64) {
        self.run("mysql", &format!("set global init_connect = 'set timestamp = {now}'"));
    }
}
