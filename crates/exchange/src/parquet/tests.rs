use super::*;

fn run(cf: Cf, step: i64, rows: &[(i64, f64)]) -> Run {
    let (times, values) = rows.iter().copied().unzip();
    Run { ds: "a".into(), cf, step, times, values, newest: 0 }
}

fn export(directory: &Path, archives: Archives, rrds: &[(&str, Vec<Run>)]) -> Written {
    let selection = Selection { archives, ..Selection::default() };
    let partitions = Partitions { by_month: false, by_tree: true };
    let mut dataset = Dataset::open(directory, partitions, &selection).expect("begun");
    for (name, runs) in rrds {
        dataset.add(name.as_bytes(), runs).expect("added");
    }
    dataset.finish(|| {}).expect("written")
}

/// All rows of a partition, as `name cf step time value`.
fn rows(directory: &Path, partition: &str) -> Vec<String> {
    let path = directory.join(partition).join(FILE_NAME);
    let groups = file::Reader::new(File::open(&path).expect("a file"), &path).expect("readable");
    let mut all = Vec::new();
    for group in groups {
        let group = group.expect("a group");
        for run in &group.runs {
            for (time, value) in run.times.iter().zip(&run.values) {
                all.push(format!("{} {} {} {time} {value}", group.name, group.cf.name(), run.step));
            }
        }
    }
    all
}

#[test]
fn a_day_is_written_once_and_keeps_what_it_had() {
    let directory = tempfile::tempdir().expect("a directory");
    let minute = 60_000;
    let day = DAY_MS;
    let first = vec![run(Cf::Average, minute, &[(day, 1.0), (day + minute, 2.0), (2 * day, 3.0)])];
    let written =
        export(directory.path(), Archives::Finest, &[("hosts/a", first.clone()), ("z", first.clone())]);
    assert_eq!(written, Written { written: 4, unchanged: 0, rows: 6 });
    let again = export(directory.path(), Archives::Finest, &[("hosts/a", first.clone()), ("z", first)]);
    assert_eq!((again.written, again.unchanged), (0, 4));
    let hosts = "day=1970-01-02/tree=hosts";
    assert_eq!(
        rows(directory.path(), hosts),
        ["hosts/a AVERAGE 60000 86400000 1", "hosts/a AVERAGE 60000 86460000 2"]
    );
    assert_eq!(
        rows(directory.path(), "day=1970-01-03/tree=__HIVE_DEFAULT_PARTITION__"),
        ["z AVERAGE 60000 172800000 3"]
    );

    // The minute's archive has lost its first row since; a coarser one has a row over both, and another over what was not there.
    let hour = 60 * minute;
    let later = vec![
        run(Cf::Average, minute, &[(day + 2 * minute, 4.0)]),
        run(Cf::Average, hour, &[(day, 9.0), (day + 5 * hour, 8.0)]),
    ];
    export(directory.path(), Archives::Finest, &[("hosts/a", later)]);
    assert_eq!(
        rows(directory.path(), hosts),
        [
            "hosts/a AVERAGE 60000 86400000 1",
            "hosts/a AVERAGE 60000 86460000 2",
            "hosts/a AVERAGE 60000 86520000 4",
            "hosts/a AVERAGE 3600000 104400000 8",
        ]
    );
    assert!(!directory.path().join(WAITING).exists());
}

#[test]
fn another_export_of_the_same_directory_waits() {
    let directory = tempfile::tempdir().expect("a directory");
    let partitions = Partitions { by_month: false, by_tree: true };
    let _first = Dataset::open(directory.path(), partitions, &Selection::default()).expect("begun");
    let second = Dataset::open(directory.path(), partitions, &Selection::default());
    assert!(matches!(second, Err(DatasetError::InUse(_))));
}

#[test]
fn what_is_no_file_of_ours_is_left_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().join("day=1970-01-01/tree=a");
    fs::create_dir_all(&place).expect("made");
    fs::write(place.join(FILE_NAME), b"PAR1 no").expect("written");
    let partitions = Partitions { by_month: false, by_tree: true };
    let mut dataset = Dataset::open(directory.path(), partitions, &Selection::default()).expect("begun");
    dataset.add(b"a/b", &[run(Cf::Max, 1000, &[(5000, 1.0)])]).expect("added");
    let error = dataset.finish(|| {}).expect_err("refused").to_string();
    assert!(error.contains("move it away"), "{error}");
    assert_eq!(fs::read(place.join(FILE_NAME)).expect("there"), b"PAR1 no");
}

#[test]
fn days_have_dates() {
    for (day, want) in
        [(0, (1970, 1, 1)), (-1, (1969, 12, 31)), (11_016, (2000, 2, 29)), (20_783, (2026, 11, 26))]
    {
        assert_eq!(civil(day), want, "{day}");
    }
    assert_eq!((days_in(2000, 2), days_in(1900, 2), days_in(2026, 11)), (29, 28, 30));
    assert_eq!(escaped("a b=c/é"), "a%20b%3Dc%2F%C3%A9");
}
