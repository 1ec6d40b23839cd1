//! `roundel export --to parquet:`: DuckDB and pyarrow read the rows that rrdtool fetches.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

use testkit::{Running, peer, wait_until};

use super::store::{START, Store, check_rows, finest, parse, roundel};

pub fn run(python: &Path, script: &str, directory: &Path) -> String {
    let output = Command::new(python).args(["-c", script]).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What DuckDB reads of a data set.
pub const DUCKDB: &str = "
import duckdb
rows = duckdb.sql(\"\"\"SELECT name, ds, cf, step::BIGINT, epoch(time)::BIGINT, value
    FROM read_parquet('out/**/*.parquet', hive_partitioning = true)
    WHERE strftime(time AT TIME ZONE 'UTC', '%Y-%m-%d') = day::VARCHAR
      AND (tree IS NULL OR starts_with(name, tree || '/')) AND (tree IS NULL) = (instr(name, '/') = 0)\"\"\").fetchall()
for row in rows: print('|'.join(map(str, row[:5])) + '|' + repr(row[5]))
";

/// What pyarrow reads, by its types.
const PYARROW: &str = "
import pyarrow.dataset as dataset
found = dataset.dataset('out', partitioning='hive').to_table()
types = {field.name: str(field.type) for field in found.schema}
assert types['name'] == 'string' and types['step'] == 'double' and types['value'] == 'double', types
assert types['time'] == 'timestamp[ms, tz=UTC]', types
for row in found.to_pylist():
    print('|'.join([row['name'], row['ds'], row['cf'], str(int(row['step'])), str(int(row['time'].timestamp())), repr(row['value'])]))
";

#[test]
fn duckdb_and_pyarrow_read_what_rrdtool_fetches() {
    let Some(python) = peer::duckdb() else { return };
    let mut store = Store::new();
    let directory = store.tool.directory().to_path_buf();
    let export = ["export", "--all", "--from", "store", "--to", "parquet:out", "--archives", "all"];
    let said = roundel(&directory, &export, &[]);
    assert!(said.starts_with("exported 4 RRDs, 0 failed: 6 partitions written"), "{said}");
    let want = store.rows();
    check_rows(&parse(&run(&python, DUCKDB, &directory)), &want);
    check_rows(&parse(&run(&python, PYARROW, &directory)), &want);
    // Nothing is new: nothing is written.
    let said = roundel(&directory, &export, &[]);
    assert!(said.contains("0 partitions written with 0 rows, 6 unchanged"), "{said}");
}

#[test]
fn a_later_export_adds_rows_and_keeps_those_that_the_rrd_has_lost() {
    let Some(python) = peer::duckdb() else { return };
    let mut store = Store::new();
    let directory = store.tool.directory().to_path_buf();
    let export = ["export", "hosts", "*.rrd", "ports/[w-y].rrd", "--from", "store", "--to", "parquet:out"];
    roundel(&directory, &export, &[]);
    let first = finest(&store.rows());
    check_rows(&parse(&run(&python, DUCKDB, &directory)), &first);
    // The finest archive has twenty rows: ten of the first export's are gone.
    for (seed, name) in store.names.clone().iter().enumerate() {
        store.update(name, seed as i64, 60..70);
    }
    store.import();
    let mut want = finest(&store.rows());
    assert!(first.keys().any(|place| !want.contains_key(place)));
    want.retain(|place, _| place.3 == 60 || !first.iter().any(|(kept, _)| covers(place, kept)));
    want.extend(first);
    roundel(&directory, &export, &[]);
    check_rows(&parse(&run(&python, DUCKDB, &directory)), &want);
}

/// Whether a kept fine row is within a coarse one.
fn covers(coarse: &super::store::Place, fine: &super::store::Place) -> bool {
    (&coarse.0, &coarse.1, &coarse.2) == (&fine.0, &fine.1, &fine.2)
        && fine.3 == 60
        && fine.4 <= coarse.4
        && fine.4 > coarse.4 - 300
}

#[test]
fn options_choose() {
    let Some(python) = peer::duckdb() else { return };
    let mut store = Store::new();
    let directory = store.tool.directory().to_path_buf();
    let (from, to) = (START + 1200, START + 2400);
    let (start, end) = (from.to_string(), to.to_string());
    let words = ["export", "hosts", "--from", "store", "--to", "parquet:out", "--by", "month", "--cf", "max"];
    roundel(&directory, &[&words[..], &["-s", &start, "-e", &end]].concat(), &[]);
    let got = parse(&run(&python, PYARROW, &directory));
    let mut want = store.rows();
    want.retain(|(name, _, cf, _, time), _| {
        name.starts_with("hosts") && cf == "MAX" && *time > from && *time <= to
    });
    assert!(!want.is_empty() && got.keys().eq(want.keys()), "{got:?} {want:?}");
    assert!(directory.join("out/month=2023-11/roundel.parquet").exists());
}

#[test]
fn a_daemon_is_asked_and_has_sinks() {
    let Some(python) = peer::duckdb() else { return };
    let mut store = Store::new();
    let directory = store.tool.directory().to_path_buf();
    let here = directory.display();
    let config = format!(
        "store = \"{here}/store\"\nplaceholders = false\nbase = \"{here}/base\"\n[[listen]]\naddress = \"unix:{here}/sock\"\n\
         [[sink]]\nto = \"parquet:{here}/sunk\"\nnames = [\"hosts/**\"]\ninterval = \"1s\"\n"
    );
    std::fs::create_dir(directory.join("base")).unwrap();
    let file = directory.join("roundel.toml");
    std::fs::write(&file, config).unwrap();
    let words = ["serve", "--config", file.to_str().unwrap()];
    let daemon = Running::program(&directory.join("log"), env!("CARGO_BIN_EXE_roundel"), &words);
    // The socket is in the tree a moment before the daemon listens.
    wait_until("the daemon to listen", || UnixStream::connect(directory.join("sock")).is_ok());
    let export = ["export", "--all", "--from", "unix:sock", "--to", "parquet:out", "--archives", "all"];
    roundel(&directory, &export, &[]);
    check_rows(&parse(&run(&python, DUCKDB, &directory)), &store.rows());
    let sunk = |store: &mut Store| {
        let mut want = finest(&store.rows());
        want.retain(|place, _| place.0.starts_with("hosts/") && (place.3 == 60 || place.2 == "MAX"));
        let script = PYARROW.replace("'out'", "'sunk'");
        wait_until("the sink to have all rows", || {
            let complete = directory.join("sunk/day=2023-11-15/tree=hosts/roundel.parquet").exists();
            complete
                && parse(&run(&python, &script, &directory))
                    .keys()
                    .filter(|place| want.contains_key(place))
                    .count()
                    == want.len()
        });
    };
    sunk(&mut store);
    // What comes later follows by itself.
    let name = store.names[1].clone();
    store.update(&name, 1, 60..65);
    let mut stream = UnixStream::connect(directory.join("sock")).unwrap();
    for update in 60..65i64 {
        let value = (update * update % 37 + 1) as f64 / 7.0;
        let other = if update % 11 == 3 { "U".to_string() } else { format!("{}", value * 1e6) };
        writeln!(stream, "UPDATE {name} {}:{value}:{other}", START + 60 * update).unwrap();
        let mut answer = String::new();
        BufReader::new(&stream).read_line(&mut answer).unwrap();
        assert!(answer.starts_with("0 "), "{answer}");
    }
    sunk(&mut store);
    daemon.terminate();
}
