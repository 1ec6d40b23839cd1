//! Files used in place, one call at a time: the peer of `crates/bench/src/direct.c`, which takes the same
//! words and uses librrd. Usage:
//! `direct create DIRECTORY FILES START STEP WORD...`,
//! `direct update DIRECTORY FILES ROUNDS FIRST_TIME STEP`,
//! `direct fetch DIRECTORY FILES ROUNDS START END`; prints wall and CPU seconds.

use std::path::PathBuf;
use std::time::Instant;

use roundel_rrd_file::{Error, Existing, Locking, ReadFile, UpdateOptions, create, update};
use rrd::definition::Cf;
use rrd::definition::text::{CreateOptions, Limits, parse_create};
use rrd::fetch::FetchRequest;
use rrd::when::Step;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<i64> = words.iter().skip(2).map_while(|word| word.parse().ok()).collect();
    let (begun, cpu) = (Instant::now(), cpu_seconds());
    let done = match (words.first().map(String::as_str), &numbers[..]) {
        (Some("create"), &[files, start, step]) => create_all(&words[1], files, start, step, &words[5..]),
        (Some("update"), &[files, rounds, first, step]) => update_all(&words[1], files, rounds, first, step),
        (Some("fetch"), &[files, rounds, start, end]) => fetch_all(&words[1], files, rounds, start, end),
        _ => {
            eprintln!("usage: direct create|update|fetch DIRECTORY FILES NUMBER NUMBER ...");
            std::process::exit(2);
        }
    };
    if let Err(error) = done {
        eprintln!("{error}");
        std::process::exit(1);
    }
    println!("{:.6} {:.6}", begun.elapsed().as_secs_f64(), cpu_seconds() - cpu);
}

fn path(directory: &str, file: i64) -> PathBuf {
    PathBuf::from(format!("{directory}/{file}.rrd"))
}

/// Parses the arguments again each time, as librrd does.
fn create_all(directory: &str, files: i64, start: i64, step: i64, words: &[String]) -> Result<(), Error> {
    for file in 0..files {
        let path = path(directory, file);
        let step = Step { units: step as u64, units_per_second: 1 };
        let file_name = path.as_os_str().as_encoded_bytes();
        let options = CreateOptions { step, limits: Limits::FILE, file_name };
        let definition = parse_create(&options, words).expect("sound words");
        create(&path, &definition, start, Existing::Replace)?;
    }
    Ok(())
}

fn update_all(directory: &str, files: i64, rounds: i64, first: i64, step: i64) -> Result<(), Error> {
    let options = UpdateOptions::default();
    for round in 0..rounds {
        for file in 0..files {
            let (time, fraction) = (first + round * step, (round * 37 + file) % 100);
            update(&path(directory, file), &[format!("{time}:{}.{fraction:02}", file % 1000)], &options)?;
        }
    }
    Ok(())
}

fn fetch_all(directory: &str, files: i64, rounds: i64, start: i64, end: i64) -> Result<(), Error> {
    for _ in 0..rounds {
        for file in 0..files {
            let open = ReadFile::open(&path(directory, file), Locking::Try)?;
            let last = open.last_update().whole;
            let plan =
                rrd::plan::plan(open.definition(), last, &FetchRequest::new(Cf::Average, start, end, 1))
                    .expect("an archive");
            std::hint::black_box(open.fetch(&plan)?);
        }
    }
    Ok(())
}

/// User and system time of this process.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
