//! Answers: `ExportMetricsServiceResponse`, and `google.rpc.Status` for errors, as protobuf or as JSON.

use std::fmt::Write as _;

use crate::fault::Fault;

/// What became of a request that could be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtlpAnswer {
    /// Data points that do not count.
    pub rejected: u64,
    /// The first of them: its metric, and why.
    pub first_fault: Option<(String, Fault)>,
    /// Histograms of which the buckets were left out.
    pub without_buckets: u64,
    /// What the one who stores adds.
    pub note: Option<String>,
}

impl OtlpAnswer {
    /// What is said of that; empty when everything counts.
    pub fn message(&self) -> String {
        let mut message = String::new();
        let mut say = |text: std::fmt::Arguments<'_>| {
            if !message.is_empty() {
                message.push_str("; ");
            }
            // Writing to a text cannot fail.
            let _ = message.write_fmt(text);
        };
        if let Some((metric, fault)) = &self.first_fault {
            say(format_args!(
                "{} data points are refused, first one of \"{metric}\": {fault}",
                self.rejected
            ));
        }
        if self.without_buckets > 0 {
            let count = self.without_buckets;
            say(format_args!("of {count} histograms count and sum are kept, and no buckets"));
        }
        if let Some(note) = &self.note {
            say(format_args!("{note}"));
        }
        message
    }

    /// As protobuf: empty when everything counts.
    pub fn to_protobuf(&self) -> Vec<u8> {
        let message = self.message();
        if message.is_empty() && self.rejected == 0 {
            return Vec::new();
        }
        let mut partial = Vec::new();
        if self.rejected > 0 {
            partial.push(1 << 3);
            push_varint(&mut partial, self.rejected);
        }
        push_text(&mut partial, 2, &message);
        let mut response = vec![1 << 3 | 2];
        push_varint(&mut response, partial.len() as u64);
        response.extend_from_slice(&partial);
        response
    }

    /// As JSON.
    pub fn to_json(&self) -> String {
        let message = self.message();
        if message.is_empty() && self.rejected == 0 {
            return "{}".to_string();
        }
        let partial =
            serde_json::json!({ "rejectedDataPoints": self.rejected.to_string(), "errorMessage": message });
        serde_json::json!({ "partialSuccess": partial }).to_string()
    }
}

/// A `Status` with a message, as protobuf.
pub fn error_protobuf(message: &str) -> Vec<u8> {
    let mut status = Vec::new();
    push_text(&mut status, 2, message);
    status
}

/// A `Status` with a message, as JSON.
pub fn error_json(message: &str) -> String {
    serde_json::json!({ "message": message }).to_string()
}

fn push_text(out: &mut Vec<u8>, field: u8, text: &str) {
    out.push(field << 3 | 2);
    push_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn push_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
