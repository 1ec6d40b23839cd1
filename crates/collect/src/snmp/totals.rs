//! What an engine counts.

use std::ops::AddAssign;

use super::answer::PassReport;
use crate::statistics::Statistic;

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams received.
    pub received: u64,
    /// Requests not answered in time.
    pub timeouts: u64,
    /// Those of them that were sent again.
    pub retries: u64,
    /// Answers that said tooBig.
    pub too_big: u64,
    /// Requests that a device refused because of their user.
    pub unauthorized: u64,
    /// Received and no message of SNMP.
    pub malformed: u64,
    /// Received and no answer to a request in flight: late, made up, or a second copy.
    pub unexpected: u64,
    /// Received from an address that was not asked.
    pub wrong_address: u64,
    /// Passes begun.
    pub passes: u64,
    /// Passes that began late or were not over in time.
    pub late: u64,
    /// What all passes together took, in microseconds.
    pub pass_micros: u64,
    /// Targets that moved.
    pub moved: u64,
    /// Restarts of devices.
    pub restarts: u64,
}

impl Totals {
    /// Counts a pass that is over.
    pub(crate) fn add_pass(&mut self, report: &PassReport) {
        self.late += u64::from(report.is_late);
        self.pass_micros += report.micros;
        self.too_big += u64::from(report.too_big);
        self.moved += u64::from(report.moved);
        self.restarts += u64::from(report.is_reset);
    }

    /// The numbers for `/metrics` and for an RRD.
    pub fn statistics(&self) -> Vec<Statistic> {
        vec![
            Statistic::count("passes", "Passes over devices begun", self.passes),
            Statistic::count("late_passes", "Passes that began late or were not over in time", self.late),
            Statistic::count("pass_micros", "Microseconds that all passes took together", self.pass_micros),
            Statistic::count("requests", "Requests sent to devices", self.sent),
            Statistic::count("answers", "Datagrams received", self.received),
            Statistic::count("timeouts", "Requests without an answer in time", self.timeouts),
            Statistic::count("retries", "Requests sent again after a timeout", self.retries),
            Statistic::count("too_big", "Answers that said tooBig", self.too_big),
            Statistic::count("unauthorized", "Requests refused because of their user", self.unauthorized),
            Statistic::count("malformed", "Datagrams that are no answers", self.malformed),
            Statistic::count("unexpected", "Answers to no request in flight", self.unexpected),
            Statistic::count("wrong_address", "Answers from another address", self.wrong_address),
            Statistic::count("moved", "Rows that were no longer where they had been", self.moved),
            Statistic::count("restarts", "Restarts of devices", self.restarts),
        ]
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, more: Self) {
        self.sent += more.sent;
        self.received += more.received;
        self.timeouts += more.timeouts;
        self.retries += more.retries;
        self.too_big += more.too_big;
        self.unauthorized += more.unauthorized;
        self.malformed += more.malformed;
        self.unexpected += more.unexpected;
        self.wrong_address += more.wrong_address;
        self.passes += more.passes;
        self.late += more.late;
        self.pass_micros += more.pass_micros;
        self.moved += more.moved;
        self.restarts += more.restarts;
    }
}
