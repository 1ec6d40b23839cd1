//! What collectors say in the log.

use collect::complaints::Notice;

/// Logs what has become wrong or right.
pub(super) fn log(collector: &'static str, notices: Vec<Notice>) {
    for Notice { subject, text, is_over } in notices {
        match is_over {
            true => tracing::info!(collector, subject, "over: {text}"),
            false => tracing::warn!(collector, subject, "{text}"),
        }
    }
}
