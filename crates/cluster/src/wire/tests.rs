use std::io;
use store::replication::Position;

use rrd::definition::Cf;
use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::live::HeadShape;
use rrd::plan::PlanError;
use rrd::time::Timestamp;
use rrd::tune::TuneError;
use rrd::update::UpdateError;
use rrd::updatev::{UpdateReport, WrittenRow};
use rrd::when::Step;
use store::disk::Shortage;
use store::name::NameError;

use super::*;
use crate::check::{CheckFound, Unreadable};
use crate::partition::{CopyFile, CopyFileKind};
use store::replication::BegunCheck;

fn definition() -> Definition {
    let options = CreateOptions {
        step: Step { units: 10, units_per_second: 1 },
        limits: Limits::FILE,
        file_name: b"x",
    };
    let args =
        ["DS:a:GAUGE:100:U:U", "DS:b:COUNTER:100:0:U", "RRA:AVERAGE:0.5:1:4", "RRA:HWPREDICT:20:0.1:0.003:5"];
    parse_create(&options, &args).unwrap()
}

fn rrd() -> Rrd {
    let definition = definition();
    let mut live =
        rrd::live::Live { words: vec![0; HeadShape::of(&definition).word_count()], seasons: Vec::new() };
    let mut archives = Vec::new();
    for (index, rra) in definition.rra.iter().enumerate() {
        let values = vec![1.5; rra.row_count as usize * definition.ds.len()];
        match rra.cf.cf() {
            Cf::Seasonal | Cf::DevSeasonal => {
                live.seasons.push(rrd::live::Season { rra: index, current_row: 1, values });
                archives.push(Vec::new());
            }
            _ => archives.push(values),
        }
    }
    Rrd { definition, live, archives }
}

fn named(text: &str) -> RrdName {
    RrdName::new(text.as_bytes()).unwrap()
}

fn requests() -> Vec<Request> {
    let mut batch = UpdateBatch::default();
    batch.push(b"a/b.rrd", b"1:2:3 4:5:6");
    batch.push_joined(b"c.rrd N:1", 5);
    let trashed = Trashed { name: named("a/b"), removed_ms: -5 };
    let create = CreateRequest { definition: definition(), start: 1_700_000_000, no_overwrite: true };
    vec![
        Request::Update(batch),
        Request::Updatev(named("a"), b"1:2".to_vec()),
        Request::Create(named("a").hidden("x"), create),
        Request::Import(named("a"), Arc::new(rrd()), false),
        Request::Tune(named("a"), vec!["--heartbeat".into(), "a:5".into()]),
        Request::Change(named("a"), u64::MAX, VersionChange::Update(b"1:2".to_vec())),
        Request::Change(named("a"), 7, VersionChange::Replace(Box::new(rrd()))),
        Request::Delete(named("a")),
        Request::Rename(named("a"), named("b")),
        Request::Copy(named("a"), named("b")),
        Request::Trash,
        Request::Restore(trashed.clone(), named("b")),
        Request::Erase(trashed),
        Request::Snapshot(named("a")),
        Request::Status(named("a")),
        Request::StatusForChange(named("a")),
        Request::Fetch(named("a"), FetchRequest::new(Cf::Max, -5, 1_700_000_000, 300)),
        Request::Read(named("a")),
        Request::Rows(named("a"), Arc::new(definition()), 1, -3..70),
        Request::List(b"dir".to_vec(), true),
        Request::HasDirectory(Vec::new()),
        Request::Flush(None),
        Request::Flush(Some(named("a"))),
        Request::Sync,
        Request::StreamPosition(b"agent".to_vec()),
        Request::SetStreamPosition(b"agent".to_vec(), StreamPosition { epoch: 1, sequence: 2 }),
        Request::Stats,
        Request::BeginCopy,
        Request::ReadCopy { copy: 1, file: 2, offset: 1 << 40, count: PART_BYTES_MAX },
        Request::Check(CheckRequest::Begin { number: u64::MAX, ids: 3..u32::MAX }),
        Request::Check(CheckRequest::Read {
            number: 7,
            at: Position { generation: 1, offset: 1 << 33 },
            names: true,
        }),
        Request::Check(CheckRequest::PutAside { copy: 5, why: "it differs".into() }),
    ]
}

/// Every kind of error that a store gives, and what it becomes on the other side if that is another one.
fn errors() -> Vec<StoreError> {
    let time = Timestamp::new(17, 999_999);
    let said = || "a text with 'quotes'".to_owned();
    vec![
        StoreError::NoSuchRrd(named("a/b")),
        StoreError::Exists(named("a/b")),
        StoreError::Changed(named("a/b")),
        StoreError::Denied(named("a/b")),
        StoreError::Update(UpdateError::NotLater { time, last_update: time, units_per_second: 1000 }),
        StoreError::Update(UpdateError::TooFewValues { expected: 2, got: 1, time: "5".into() }),
        StoreError::Fetch(PlanError::NoSuchCf),
        StoreError::Fetch(PlanError::NoSuchRra),
        StoreError::Fetch(PlanError::TimeTooFar { seconds: -9 }),
        StoreError::Fetch(PlanError::TooMany { rows: 9, ds_count: 8, values_max: 7 }),
        StoreError::Tune(TuneError::UnknownDs("x".into())),
        StoreError::Name(NameError::TooLongForFiles),
        StoreError::LeadsOut { path: said() },
        StoreError::TooFast(said()),
        StoreError::TooLarge(said()),
        StoreError::Backlog(said()),
        StoreError::Short(Shortage::Descriptors),
        StoreError::Poisoned(said()),
        StoreError::Lost(said()),
        StoreError::Locked,
        StoreError::io("opening 'x'", io::Error::from_raw_os_error(13)),
        StoreError::io("", io::Error::other("in words")),
        StoreError::NotPrimary("another one leads"),
        StoreError::NotReplicated("no follower has it"),
        StoreError::Replica(said()),
        StoreError::Unsupported("it keeps no trash"),
        StoreError::Unavailable(said()),
        StoreError::Stopping,
    ]
}

fn check_answers() -> [CheckAnswer; 5] {
    let place = Position { generation: 3, offset: 1 << 44 };
    [
        CheckAnswer::Begun(BegunCheck { count: 256, next_id: 1 << 20, end: place }),
        CheckAnswer::Waits(place),
        CheckAnswer::Lacks,
        CheckAnswer::PutAside,
        CheckAnswer::Found(CheckFound {
            copy: u64::MAX,
            hashes: vec![0, 1, u64::MAX],
            names: vec![Vec::new(), b"a/b.rrd".to_vec()],
            rows: 1 << 50,
            unreadable: vec![Unreadable { id: 2, why: "damaged".into(), is_damage: true }],
        }),
    ]
}

fn answers() -> Vec<Told> {
    let definition = Arc::new(definition());
    let whole = rrd();
    let report = UpdateReport {
        applied: 2,
        skipped: 1,
        rows: vec![WrittenRow { time: -3, rra: 1, values: vec![1.0, f64::NAN] }],
        definition: Some(Arc::clone(&definition)),
    };
    let failure = |error| UpdateFailure { line: 3, accepted: 1, error };
    let snapshot = Snapshot {
        definition: Arc::clone(&definition),
        live: whole.live.clone(),
        current_rows: vec![1; definition.rra.len()],
        identity: 9,
    };
    let status = RrdStatus { definition, last_update: Timestamp::new(5, 6), is_updated: true };
    let fetched = FetchRows {
        start: 1,
        end: 3,
        step: 1,
        units_per_second: 1,
        ds_names: vec!["a".into()],
        values: vec![1.0, -0.0],
    };
    let mut told: Vec<Told> = [
        Answer::Done,
        Answer::Failures(errors().into_iter().map(failure).collect()),
        Answer::Written(UpdatevOutcome { report, refused: Some(StoreError::Locked) }),
        Answer::Version(u64::MAX),
        Answer::Trashed(vec![Trashed { name: named("a"), removed_ms: 7 }]),
        Answer::Snapshot(Box::new(snapshot)),
        Answer::Status(status),
        Answer::Fetched(fetched),
        Answer::Whole(Box::new(whole)),
        Answer::Values(vec![f64::NEG_INFINITY]),
        Answer::Names(vec![b"a/".to_vec(), Vec::new()]),
        Answer::Is(true),
        Answer::Position(None),
        Answer::Position(Some(StreamPosition { epoch: 3, sequence: 4 })),
        Answer::Stats(Box::new(Stats { segment_count: 5, read_only: 1, ..Stats::default() })),
        Answer::Bytes(b"part".to_vec()),
        Answer::Copy(
            7,
            Box::new(CopyHead {
                identity: "i".into(),
                mark: "m".into(),
                manifest: "n".into(),
                end: Position { generation: 1, offset: 300 },
                files: vec![CopyFile { kind: CopyFileKind::Segment, number: 3, bytes: 1 << 40 }],
            }),
        ),
    ]
    .map(|answer| Told::Answer(answer, None))
    .into();
    told.extend(check_answers().map(|answer| Told::Answer(Answer::Check(answer), Some(Duration::ZERO))));
    told.push(Told::Answer(Answer::Done, Some(Duration::from_millis(70_512))));
    told.extend(errors().into_iter().map(Told::Refused));
    told.push(Told::NotLeader(None));
    told.push(Told::NotLeader(Some(("b".into(), "host:1".into()))));
    told.push(Told::Absent);
    told.push(Told::Unreadable("why".into()));
    told
}

/// What two values that are the same show; the ranges of a batch are its own affair.
fn shown(request: &Request) -> String {
    match request {
        Request::Update(batch) => {
            let lines = batch.lines.iter().map(|line| (batch.name(line), batch.values(line)));
            format!("{:?}", lines.collect::<Vec<_>>())
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn requests_arrive_as_they_were() {
    for request in requests() {
        let ask = Ask { partition: 300, leader_only: true, round: 400, request };
        let again = Ask::decode(&ask.encode()).unwrap();
        assert_eq!((again.partition, again.leader_only, again.round), (300, true, 400));
        assert_eq!(shown(&again.request), shown(&ask.request));
        if let Request::Update(batch) = &ask.request {
            assert_eq!(Ask::letter_of_update(300, 400, batch).bytes, ask.letter().bytes);
        }
    }
}

#[test]
fn answers_arrive_as_they_were() {
    for told in answers() {
        let again = Told::decode(&told.encode(VERSION_MAX), VERSION_MAX).unwrap();
        let words = |told: &Told| match told {
            Told::Refused(error) => format!("{:?} {error}", std::mem::discriminant(error)),
            Told::Answer(Answer::Failures(failures), _) => {
                let errors = failures.iter().map(|failure| failure.error.to_string());
                errors.collect::<Vec<_>>().join("\n")
            }
            other => format!("{other:?}"),
        };
        assert_eq!(words(&again), words(&told));
    }
    // The server prints its fields in another way than `Display`.
    let error = errors().swap_remove(4);
    let Ok(Told::Refused(again)) =
        Told::decode(&Told::Refused(error.clone()).encode(VERSION_MAX), VERSION_MAX)
    else {
        panic!()
    };
    assert_eq!(format!("{again:?}"), format!("{error:?}"));
}

#[test]
fn errors_that_are_only_shown_arrive_as_others_with_the_same_words_and_code() {
    let damaged = StoreError::Damaged { path: "x".into(), error: rrd::codec::file::FileError::NotRrd };
    let unfit = StoreError::Unfit { path: "x".into(), error: rrd::codec::file::FileError::NotRrd };
    for (error, want) in [(damaged, "Lost"), (unfit, "Unsupported")] {
        let told = Told::decode(&Told::Refused(error.clone()).encode(VERSION_MAX), VERSION_MAX).unwrap();
        let Told::Refused(again) = told else { panic!("{told:?}") };
        assert_eq!(again.to_string(), error.to_string());
        assert!(format!("{again:?}").starts_with(want), "{again:?}");
    }
}

#[test]
fn a_node_of_version_2_gets_what_it_knows_and_tells_no_age() {
    let age = Some(Duration::from_micros(1));
    let told = |version| Told::Answer(Answer::Is(true), age).encode(version);
    assert_eq!(told(2), [0, ANSWER, 12, 1]);
    assert_eq!(told(3), [0, ANSWER, 2, 12, 1]);
    let again = |version| Told::decode(&told(version), version);
    assert!(matches!(again(2), Ok(Told::Answer(Answer::Is(true), None))));
    let Ok(Told::Answer(Answer::Is(true), Some(millis))) = again(3) else { panic!() };
    assert_eq!(millis, Duration::from_millis(1));
    // Requests are the same in both.
    let ask = Ask { partition: 1, leader_only: true, round: 2, request: Request::Sync };
    assert_eq!((ask.letter().since, &ask.letter().bytes[..]), (2, &[0, 1, 1, 2, 23][..]));
}

#[test]
fn no_bytes_cause_a_panic() {
    let mut seeds: Vec<Vec<u8>> = requests()
        .into_iter()
        .map(|request| Ask { partition: 7, leader_only: false, round: 0, request }.encode())
        .collect();
    seeds.extend(answers().iter().map(|told| told.encode(VERSION_MAX)));
    let mut state = 88_172_645_463_325_252_u64;
    let mut roll = |sides: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % sides.max(1) as u64) as usize
    };
    for round in 0..60_000 {
        let mut bytes = seeds[round % seeds.len()].clone();
        for _ in 0..=roll(4) {
            let at = roll(bytes.len());
            match roll(4) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, roll(256) as u8),
                _ if at < bytes.len() => bytes[at] = roll(256) as u8,
                _ => bytes.push(0),
            }
        }
        fuzzing::fuzz(&bytes);
    }
}

#[test]
fn large_messages_are_packed_and_claims_of_size_are_not_believed() {
    let plain: Vec<u8> = (0..1 << 20).map(|number: u32| (number / 100) as u8).collect();
    let packed = pack(plain.clone());
    assert!(packed.len() < plain.len() / 2);
    assert!(unpack(&packed).unwrap() == plain);
    let mut claim = vec![1];
    varint::put(&mut claim, MESSAGE_BYTES_MAX as u64 + 1);
    assert!(unpack(&claim).is_err());
    let mut short = vec![1];
    varint::put(&mut short, 1 << 30);
    short.extend_from_slice(&packed[4..]);
    assert!(unpack(&short).is_err());
    assert!(unpack(b"").is_err() && unpack(b"\x07abc").is_err());
}
