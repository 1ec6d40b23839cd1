//! Failures of HTTP requests: a status, and a text that says what to do about it.

use std::fmt;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use rrd::plan::PlanError;
use store::engine::StoreError;
use store::name::NameError;
use store::placeholder::PlaceholderError;

use super::api::names::similar;
use crate::budget::Share;
use crate::connection::refusal::Refusal;
use crate::service::Service;

/// A failed request. On the wire it is `{"error": "text"}`.
#[derive(Debug)]
pub struct Failure {
    status: StatusCode,
    text: String,
    /// Names of RRDs and directories that may have been meant.
    similar: Vec<Vec<u8>>,
}

impl Failure {
    /// A failure with `status` and `text`.
    pub fn new(status: StatusCode, text: impl fmt::Display) -> Failure {
        Failure { status, text: text.to_string(), similar: Vec::new() }
    }

    /// The same, with what may have been meant by `name` if that is what is missing.
    pub fn similar_to(self, service: &Service, name: &[u8]) -> Failure {
        let similar = if self.status == StatusCode::NOT_FOUND { similar(service, name) } else { Vec::new() };
        Failure { similar, ..self }
    }

    /// What may have been meant; names of directories end with a slash.
    pub fn similar(&self) -> &[Vec<u8>] {
        &self.similar
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// 400: the request is malformed.
    pub fn bad(text: impl fmt::Display) -> Failure {
        Failure::new(StatusCode::BAD_REQUEST, text)
    }

    /// 501: this build lacks the cargo feature that `subject` needs.
    pub fn missing(subject: &str, feature: &str) -> Failure {
        Failure::new(StatusCode::NOT_IMPLEMENTED, args::feature::missing(subject, feature))
    }

    /// 422: the request is well-formed but refused.
    pub fn refused(text: impl fmt::Display) -> Failure {
        Failure::new(StatusCode::UNPROCESSABLE_ENTITY, text)
    }

    /// 413: the request exceeds a limit.
    pub fn too_much(text: impl fmt::Display) -> Failure {
        Failure::new(StatusCode::PAYLOAD_TOO_LARGE, text)
    }

    /// There is no memory for `what`, an answer of so many bytes: 503 when it is only not free now, 413 when it never is.
    pub fn no_memory(what: &str, bytes: u64, share: &Share) -> Failure {
        let status = match share.may_ever_be(bytes) {
            false => StatusCode::PAYLOAD_TOO_LARGE,
            true => StatusCode::SERVICE_UNAVAILABLE,
        };
        let text = Refusal::no_memory(what, bytes, share).text;
        Failure::new(status, String::from_utf8_lossy(&text))
    }

    /// True when the request exceeds a limit or takes too long.
    pub fn is_limit(&self) -> bool {
        matches!(self.status, StatusCode::PAYLOAD_TOO_LARGE | StatusCode::SERVICE_UNAVAILABLE)
    }

    /// The store's error about the RRD called `name`.
    pub fn of_store(name: &[u8], error: &StoreError) -> Failure {
        let name = String::from_utf8_lossy(name);
        Failure::new(status(error), format!("{name}: {error}"))
    }
}

/// The status for an error of the store.
pub fn status(error: &StoreError) -> StatusCode {
    match error {
        StoreError::NoSuchRrd(_) => StatusCode::NOT_FOUND,
        StoreError::Exists(_) | StoreError::Changed(_) => StatusCode::CONFLICT,
        StoreError::Placeholder(error) => match &**error {
            PlaceholderError::Occupied { .. } | PlaceholderError::Foreign { .. } => StatusCode::CONFLICT,
            PlaceholderError::Version(_) | PlaceholderError::Damaged { .. } | PlaceholderError::Io { .. } => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        },
        StoreError::LeadsOut { .. } | StoreError::Name(NameError::Outside) | StoreError::Denied(_) => {
            StatusCode::FORBIDDEN
        }
        StoreError::TooFast(_) => StatusCode::TOO_MANY_REQUESTS,
        StoreError::Fetch(PlanError::TooMany { .. }) | StoreError::TooLarge(_) => {
            StatusCode::PAYLOAD_TOO_LARGE
        }
        StoreError::Update(_)
        | StoreError::Fetch(_)
        | StoreError::Tune(_)
        | StoreError::Name(_)
        | StoreError::Unfit { .. }
        | StoreError::Unsupported(_) => StatusCode::UNPROCESSABLE_ENTITY,
        // These pass by themselves.
        StoreError::Stopping
        | StoreError::Locked
        | StoreError::Backlog(_)
        | StoreError::NotPrimary(_)
        | StoreError::NotReplicated(_)
        | StoreError::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        StoreError::Short(_) => StatusCode::INSUFFICIENT_STORAGE,
        StoreError::Poisoned(_)
        | StoreError::Segment(_)
        | StoreError::Lost(_)
        | StoreError::Damaged { .. }
        | StoreError::Replica(_)
        | StoreError::Io { .. } => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut body = serde_json::json!({ "error": self.text });
        if !self.similar.is_empty() {
            let name = |name: &Vec<u8>| String::from_utf8_lossy(name).into_owned();
            body["similar"] = self.similar.iter().map(name).collect();
        }
        let body = body.to_string() + "\n";
        let mut response = (self.status, [(header::CONTENT_TYPE, "application/json")], body).into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use rrd::codec::file::FileError;
    use rrd::update::UpdateError;
    use store::name::RrdName;
    use store::placeholder::StoreIdentity;
    use store::testing::segment::SegmentError;

    use super::*;

    #[test]
    fn the_status_tells_whose_fault_it_is() {
        let name = RrdName::new(b"a.rrd").unwrap();
        let io = || std::io::Error::from_raw_os_error(5);
        let path = || "a.rrd".to_string();
        let id = StoreIdentity([1; 16]);
        for (error, want) in [
            (StoreError::NoSuchRrd(name.clone()), 404),
            (StoreError::Exists(name.clone()), 409),
            (StoreError::Denied(name.clone()), 403),
            (StoreError::TooFast(String::new()), 429),
            (StoreError::Update(UpdateError::NoTimestamp { argument: String::new() }), 422),
            (StoreError::Fetch(PlanError::NoSuchCf), 422),
            (StoreError::Fetch(PlanError::TooMany { rows: 9, ds_count: 9, values_max: 1 }), 413),
            (StoreError::Tune(rrd::tune::TuneError::DeltaTooSmall), 422),
            (StoreError::Name(NameError::Outside), 403),
            (StoreError::Name(NameError::TooLong), 422),
            (StoreError::LeadsOut { path: path() }, 403),
            (StoreError::Unfit { path: path(), error: FileError::NotRrd }, 422),
            (StoreError::TooLarge(String::new()), 413),
            (StoreError::Backlog(String::new()), 503),
            (StoreError::Unavailable(String::new()), 503),
            (StoreError::Short(store::disk::Shortage::Space), 507),
            (StoreError::Poisoned(String::new()), 500),
            (StoreError::from(SegmentError::Io { file: path(), offset: 0, error: io() }), 500),
            (StoreError::from(PlaceholderError::Foreign { name: name.clone(), store: id, here: id }), 409),
            (StoreError::from(PlaceholderError::Version(9)), 500),
            (StoreError::Damaged { path: path(), error: FileError::NotRrd }, 500),
            (StoreError::Locked, 503),
            (StoreError::io("", io()), 500),
            (StoreError::Unsupported(""), 422),
            (StoreError::Stopping, 503),
        ] {
            assert_eq!(status(&error).as_u16(), want, "{error:?}");
        }
    }
}
