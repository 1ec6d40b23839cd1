//! The age of what a request has read, in its answer: a node of a cluster may answer by a replica that is late.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;

use axum::http::{HeaderValue, header};
use axum::response::Response;
use store::read_age::{Age, ReadAge};

/// How old what is answered may be, in seconds, or `unknown`. A server that is no node of a cluster does not send it.
const AGE: &str = "x-roundel-age";

/// Answers a request, and says how old what it has read may be.
pub(super) async fn aged(answer: impl Future<Output = Result<Response, Infallible>>) -> Response {
    let age = ReadAge::default();
    let mut answer = pin!(answer);
    let Ok(mut response) = poll_fn(|context| age.during(|| answer.as_mut().poll(context))).await;
    if let Some(greatest) = age.greatest() {
        say(greatest, &mut response);
    }
    response
}

fn say(age: Age, response: &mut Response) {
    let text = match age {
        Age::AtMost(age) => {
            // Rounded up: only what is from the leader is of this moment.
            let millis = age.as_micros().div_ceil(1000);
            format!("{}.{:03}", millis / 1000, millis % 1000)
        }
        Age::Unknown => "unknown".to_owned(),
    };
    let headers = response.headers_mut();
    if let Ok(text) = HeaderValue::from_str(&text) {
        headers.insert(AGE, text);
    }
    let is_kept = headers
        .get(header::CACHE_CONTROL)
        .is_some_and(|control| control.to_str().is_ok_and(|control| control.contains("max-age")));
    if is_kept && age != Age::AtMost(std::time::Duration::ZERO) {
        // A cache would show it as new when the leader answers again.
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::response::IntoResponse;
    use store::read_age;

    use super::*;

    /// What an answer says that has read something of these ages.
    async fn answered(ages: &'static [Age]) -> (Option<String>, String) {
        let caching = [(header::CACHE_CONTROL, "private, max-age=60")];
        let answer = async move {
            for age in ages {
                tokio::task::yield_now().await;
                read_age::note(*age);
            }
            Ok((caching, "rows").into_response())
        };
        let response = aged(answer).await;
        let text = |name: &str| response.headers().get(name).map(|it| it.to_str().unwrap().to_owned());
        (text(AGE), text("cache-control").unwrap())
    }

    #[tokio::test]
    async fn the_greatest_age_is_said_and_caches_keep_what_is_new_only() {
        const NOW: Age = Age::AtMost(Duration::ZERO);
        const LATE: Age = Age::AtMost(Duration::from_micros(70_511_001));
        let said = |age: &str| Some(age.to_owned());
        let kept = || "private, max-age=60".to_owned();
        assert_eq!(answered(&[]).await, (None, kept()));
        assert_eq!(answered(&[NOW]).await, (said("0.000"), kept()));
        assert_eq!(answered(&[NOW, LATE, NOW]).await, (said("70.512"), "no-cache".into()));
        assert_eq!(answered(&[LATE, Age::Unknown]).await, (said("unknown"), "no-cache".into()));
    }
}
