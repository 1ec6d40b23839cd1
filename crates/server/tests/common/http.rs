//! An HTTP client: one request per connection.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use super::Roundel;

/// An answer of the daemon.
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Status line and headers, in lower case.
    pub head: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap_or_else(|_| "(no text)".to_string())
    }

    /// The text of a failure.
    pub fn error(&self) -> String {
        assert!(self.status >= 400, "{}: {}", self.status, String::from_utf8_lossy(&self.body));
        self.json()["error"].as_str().unwrap().to_string()
    }
}

/// Sends a request with a body.
pub fn request(roundel: &Roundel, method: &str, target: &str, body: &str) -> Answer {
    request_with(roundel, method, target, "", body)
}

/// Sends a request with extra headers, each with its line end, and a body.
pub fn request_with(roundel: &Roundel, method: &str, target: &str, headers: &str, body: &str) -> Answer {
    let headers = format!("Content-Type: application/x-www-form-urlencoded\r\n{headers}");
    send(roundel, method, target, &headers, body.as_bytes())
}

/// Sends a request with these headers, each with its line end, and a body of any bytes.
pub fn send(roundel: &Roundel, method: &str, target: &str, headers: &str, body: &[u8]) -> Answer {
    let address = std::fs::read_to_string(roundel.path("http")).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n"
    );
    let sent = stream.write_all(&[head.as_bytes(), body].concat());
    let mut bytes = Vec::new();
    let read = stream.read_to_end(&mut bytes);
    let middle = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    // A body that is refused by its head need not be read to its end.
    let middle = middle.unwrap_or_else(|| panic!("no answer: {sent:?}, {read:?}"));
    let head = String::from_utf8(bytes[..middle].to_vec()).unwrap().to_ascii_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head, body: bytes[middle + 4..].to_vec() }
}

/// Sends a request.
pub fn get(roundel: &Roundel, target: &str) -> Answer {
    request(roundel, "GET", target, "")
}
