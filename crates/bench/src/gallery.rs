//! `bench gallery`: the same graphs by Debian's rrdtool and by ours, side by side in one page.
//!
//! Draws every example of `gallery/examples.txt` with both programs as separate processes, and reports sizes, bytes,
//! the time of a process and which of `graphv`'s keys differ. The data is the same in every run and made by Debian's
//! rrdtool, so that only the drawing is compared.

mod data;
mod examples;
mod page;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use clap::Args;

use crate::Outcome;
use examples::Example;

/// Runs of each program; the median counts.
const RUNS: usize = 5;

/// Options of `bench gallery`.
#[derive(Args)]
pub struct GalleryOptions {
    /// Our rrdtool.
    #[arg(long, default_value = "target/release/rrdtool")]
    ours: PathBuf,
    /// Debian's rrdtool.
    #[arg(long, default_value = "/usr/bin/rrdtool")]
    rrdtool: PathBuf,
    /// Where the page and the pictures go.
    #[arg(long, default_value = "target/gallery")]
    out: PathBuf,
    /// Only examples whose titles contain this.
    #[arg(long)]
    only: Option<String>,
}

/// One of the two programs.
struct Painter {
    /// Its part of file names.
    name: &'static str,
    program: PathBuf,
}

/// A program's result for an example.
struct Drawn {
    /// Name of the picture beside the page; the error where there is none.
    picture: Result<String, String>,
    bytes: u64,
    wall: Duration,
    /// The answer of `graphv`.
    keys: BTreeMap<String, String>,
}

/// An example and its results.
struct Pair {
    example: Example,
    debian: Option<Drawn>,
    ours: Drawn,
}

/// Draws everything and writes the page.
pub fn run(options: &GalleryOptions) -> Outcome<()> {
    let data = options.out.join("data");
    fs::create_dir_all(&data)?;
    data::make(&options.rrdtool, &data)?;
    let absolute =
        |program: &Path| fs::canonicalize(program).map_err(|error| format!("{}: {error}", program.display()));
    let debian = Painter { name: "debian", program: absolute(&options.rrdtool)? };
    let ours = Painter { name: "roundel", program: absolute(&options.ours)? };
    let mut pairs = Vec::new();
    for (number, example) in examples::all()?.into_iter().enumerate() {
        if options.only.as_ref().is_some_and(|only| !example.title.contains(only.as_str())) {
            continue;
        }
        let draw = |painter: &Painter| painter.draw(&example, number, &options.out, &data);
        let debian = if example.only_ours { None } else { Some(draw(&debian)?) };
        let ours = draw(&ours)?;
        println!("{:50} {}", example.title, page::verdict(debian.as_ref(), &ours));
        pairs.push(Pair { example, debian, ours });
    }
    let page = options.out.join("index.html");
    fs::write(&page, page::page(&pairs))?;
    println!("{}", page.display());
    Ok(())
}

impl Painter {
    /// Draws an example [`RUNS`] times, and asks for its numbers once.
    fn draw(&self, example: &Example, number: usize, out: &Path, data: &Path) -> Outcome<Drawn> {
        let picture = format!("{number:02}-{}.{}", self.name, example.format.to_lowercase());
        let file = fs::canonicalize(out)?.join(&picture);
        let mut walls = Vec::new();
        let mut error = None;
        for _ in 0..RUNS {
            let started = Instant::now();
            let output = self.command("graph", data).arg(&file).args(&example.arguments).output()?;
            walls.push(started.elapsed());
            if !output.status.success() {
                error = Some(String::from_utf8_lossy(&output.stderr).into_owned());
                break;
            }
        }
        walls.sort();
        let bytes = fs::metadata(&file).map_or(0, |metadata| metadata.len());
        let answer = self.command("graphv", data).arg("-").args(&example.arguments).output()?;
        let picture = error.map_or(Ok(picture), Err);
        Ok(Drawn { picture, bytes, wall: walls[walls.len() / 2], keys: keys(&answer.stdout) })
    }

    fn command(&self, verb: &str, data: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(verb).current_dir(data).env("TZ", "UTC").env("LC_ALL", "C.UTF-8");
        command.env_remove("RRDCACHED_ADDRESS");
        command
    }
}

/// The keys of graphv's answer, up to the picture itself.
fn keys(answer: &[u8]) -> BTreeMap<String, String> {
    let lines = answer.split(|&byte| byte == b'\n').map(String::from_utf8_lossy);
    lines
        .take_while(|line| !line.starts_with("image = "))
        .filter_map(|line| line.split_once(" = ").map(|(key, value)| (key.to_string(), value.to_string())))
        .collect()
}

/// Keys that differ: the key, Debian's value and ours.
fn differences<'a>(debian: &'a Drawn, ours: &'a Drawn) -> Vec<(&'a str, &'a str, &'a str)> {
    let mut all: Vec<&str> = debian.keys.keys().chain(ours.keys.keys()).map(String::as_str).collect();
    all.sort_unstable();
    all.dedup();
    let of = |drawn: &'a Drawn, key: &str| drawn.keys.get(key).map_or("nothing", String::as_str);
    all.into_iter()
        .map(|key| (key, of(debian, key), of(ours, key)))
        .filter(|(_, theirs, own)| theirs != own)
        .collect()
}
