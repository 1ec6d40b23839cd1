//! MRTG's configuration, unmodified: what it polls, which RRDs it feeds, and what it does at thresholds.
//!
//! [`config`] reads it by MRTG's own rules, [`plan`] says what is to be read and turns the answers of a round into readings.
//! SNMP terms ([`term::SnmpTerm`]) are data for who polls; programs are run by the caller, and [`program`] reads their output.
//! MRTG is GPL: what is here follows its manual and what Debian's mrtg does, which the tests compare.

pub mod agents;
pub mod collector;
pub mod config;
pub mod decimal;
pub mod display;
pub mod expression;
pub mod fault;
pub mod interval;
pub mod keywords;
pub mod lexer;
pub mod log;
pub mod operand;
pub mod options;
pub mod plan;
pub mod program;
pub mod rates;
pub mod report;
pub mod snmp_options;
pub mod spec;
pub mod target;
pub mod term;
pub mod threshold;
