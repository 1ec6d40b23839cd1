//! gosnmp as a peer of the poller: a pass over the counters of all interfaces, by GETBULK and by packed GETs, nothing stored.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::farm::{ALL_INTERFACES, Farm, INTERFACES, index};
use crate::Outcome;
use crate::figures::Runs;

/// The program's source, which `go build` compiles.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/gosnmp");
/// Passes that are not counted.
const WARM_UP: usize = 2;
/// Seconds between passes: as our poller, which rests between its rounds, too.
const PAUSE: usize = 5;

/// How it asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// GETBULK over both columns, 25 rows at once.
    Bulk,
    /// GETs of 50 objects.
    Get,
}

/// The program, built.
pub struct Gosnmp(PathBuf);

/// What its passes gave.
#[derive(Default)]
pub struct Passes {
    /// Interfaces a second.
    pub rate: Runs,
    /// CPU time of its process per interface, in seconds.
    pub cpu: Runs,
}

impl Gosnmp {
    /// Builds it into `place`; needs Go, and its module proxy or cache.
    pub fn build(place: &Path) -> Outcome<Self> {
        let program = place.join("gosnmp");
        let mut command = Command::new("go");
        command.args(["build", "-o"]).arg(&program).arg(".").current_dir(SOURCE);
        let output =
            command.stdin(Stdio::null()).output().map_err(|error| format!("cannot start go: {error}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        Ok(Gosnmp(program))
    }

    /// So many passes over all agents, and a few before that are not counted.
    pub fn measure(&self, farm: &Farm, request: Request, count: usize) -> Outcome<Passes> {
        let verb = match request {
            Request::Bulk => "bulk",
            Request::Get => "get",
        };
        let numbers =
            [index(0) as usize, INTERFACES, WARM_UP + count, PAUSE].map(|number| number.to_string());
        let ports = farm.ports().map(|port| port.to_string());
        let output = Command::new(&self.0).arg(verb).args(numbers).args(ports).output()?;
        if !output.status.success() {
            return Err(format!("gosnmp: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        let mut passes = Passes::default();
        for line in std::str::from_utf8(&output.stdout)?.lines().skip(WARM_UP) {
            let numbers: Vec<f64> = line.split(' ').map(str::parse).collect::<Result<_, _>>()?;
            let [took, busy, answered] = numbers[..] else { return Err(line.into()) };
            if answered as usize != ALL_INTERFACES {
                return Err(format!("gosnmp got {answered} interfaces of {ALL_INTERFACES}").into());
            }
            passes.rate.push(answered / took);
            passes.cpu.push(busy / answered);
        }
        Ok(passes)
    }
}
