//! Parameters as Prometheus takes them: of the URL and of a form, unknown ones ignored.

use axum::body::Bytes;
use axum::http::Uri;

use super::ApiError;
use crate::http::query::Query;

/// The parameters of a request.
pub struct Params(Query);

impl Params {
    /// Those of the URL and the body; what the body says counts.
    ///
    /// # Errors
    /// 400 when they are not percent-encoded, or too long.
    pub fn read(uri: &Uri, body: &Bytes) -> Result<Params, ApiError> {
        Query::of_request(uri, body).map(Params).map_err(ApiError::from)
    }

    /// A text; empty if it is not there.
    pub fn text(&mut self, key: &str) -> String {
        self.0.text(key).unwrap_or_default()
    }

    /// All texts of a key.
    pub fn texts(&mut self, key: &str) -> Vec<String> {
        self.0.take_all(key).iter().map(|value| String::from_utf8_lossy(value).into_owned()).collect()
    }

    /// A time in milliseconds since the epoch; `None` if it is not there.
    ///
    /// # Errors
    /// 400.
    pub fn time(&mut self, key: &str) -> Result<Option<i64>, ApiError> {
        let text = self.text(key);
        if text.is_empty() {
            return Ok(None);
        }
        let error = || {
            ApiError::bad(format!("invalid parameter {key:?}: cannot parse {text:?} to a valid timestamp"))
        };
        if let Ok(seconds) = text.parse::<f64>() {
            if !seconds.is_finite() || seconds.abs() > 9.2e15 {
                return Err(error());
            }
            return Ok(Some((seconds * 1000.0).round() as i64));
        }
        promql::calendar::parse(&text).map(Some).ok_or_else(error)
    }

    /// A time that must be there.
    ///
    /// # Errors
    /// 400.
    pub fn time_needed(&mut self, key: &str) -> Result<i64, ApiError> {
        let error =
            || ApiError::bad(format!("invalid parameter {key:?}: cannot parse \"\" to a valid timestamp"));
        self.time(key)?.ok_or_else(error)
    }

    /// A duration in milliseconds: seconds, or as PromQL writes it; `None` if it is not there.
    ///
    /// # Errors
    /// 400.
    pub fn duration(&mut self, key: &str) -> Result<Option<i64>, ApiError> {
        let text = self.text(key);
        if text.is_empty() {
            return Ok(None);
        }
        let error =
            || ApiError::bad(format!("invalid parameter {key:?}: cannot parse {text:?} to a valid duration"));
        let milliseconds = match text.parse::<f64>() {
            Ok(seconds) if seconds.is_finite() && seconds.abs() < 9.2e15 => (seconds * 1000.0).round() as i64,
            Ok(_) => return Err(error()),
            Err(_) => promql::number::parse_duration(&text).ok_or_else(error)?,
        };
        Ok(Some(milliseconds))
    }

    /// How many items at most; 0 or nothing: all of them.
    ///
    /// # Errors
    /// 400.
    pub fn limit(&mut self) -> Result<usize, ApiError> {
        let text = self.text("limit");
        if text.is_empty() {
            return Ok(usize::MAX);
        }
        match text.parse::<usize>() {
            Ok(0) => Ok(usize::MAX),
            Ok(limit) => Ok(limit),
            Err(_) => {
                Err(ApiError::bad(format!("invalid parameter \"limit\": {text:?} is no number of items")))
            }
        }
    }
}

/// A label's name in which `U__` says that odd characters are written as `_` with their number between underscores.
pub fn decode_label(name: &str) -> String {
    let Some(mut rest) = name.strip_prefix("U__") else { return name.to_owned() };
    let mut out = String::new();
    while let Some(at) = rest.find('_') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('_') {
            out.push('_');
            rest = after;
            continue;
        }
        let code = rest.find('_').and_then(|end| {
            let c = char::from_u32(u32::from_str_radix(&rest[..end], 16).ok()?)?;
            Some((c, end))
        });
        let Some((c, end)) = code else { return name.to_owned() };
        out.push(c);
        rest = &rest[end + 1..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_names_are_decoded() {
        for (text, want) in [
            ("plain", "plain"),
            ("U__a_2e_b", "a.b"),
            ("U__a__b", "a_b"),
            ("U__a_zz_b", "U__a_zz_b"),
            ("U___e9_t", "\u{e9}t"),
        ] {
            assert_eq!(decode_label(text), want);
        }
    }

    #[test]
    fn times_and_durations_have_several_spellings() {
        let uri: Uri = "/x?time=1.5&step=1m&unknown=1".parse().unwrap();
        let mut params =
            Params::read(&uri, &Bytes::from_static(b"end=1970-01-01T00:00:01Z&step=2&bad=x")).unwrap();
        assert_eq!(params.time("time").unwrap(), Some(1500));
        assert_eq!(params.time_needed("end").unwrap(), 1000);
        assert_eq!(params.duration("step").unwrap(), Some(2000));
        assert!(params.time("bad").is_err());
        assert!(params.time_needed("none").is_err());
    }
}
