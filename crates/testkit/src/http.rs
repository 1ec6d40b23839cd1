//! A client of HTTP: one request per connection, to a port of this machine.

use std::io::{Read, Write};
use std::net::TcpStream;

/// The bytes of the answer to a request, with its head; `None` while nothing listens on the port. `headers` are lines with their ends
/// (`\r\n`), in addition to the lines about the length, the host and the end of the connection.
#[must_use]
pub fn http_bytes(port: u16, method: &str, target: &str, headers: &str, body: &[u8]) -> Option<Vec<u8>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let length = body.len();
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n"
    );
    // A body that is refused by its head need not be read to its end.
    let sent = stream.write_all(&[head.as_bytes(), body].concat());
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    (!answer.is_empty() || sent.and(read).is_ok()).then_some(answer)
}

/// As [`http_bytes`]; `None` also if the answer is no text.
#[must_use]
pub fn http_request(port: u16, method: &str, target: &str, headers: &str, body: &[u8]) -> Option<String> {
    String::from_utf8(http_bytes(port, method, target, headers, body)?).ok()
}

/// The answer to a GET on this machine, with its head; `None` while nothing listens on the port.
#[must_use]
pub fn http_get(port: u16, target: &str) -> Option<String> {
    http_request(port, "GET", target, "", b"")
}

/// The answer to a form that a page of this machine sends, with its head; `None` while nothing listens on the port. `origin` is the page's site.
#[must_use]
pub fn http_post_form(port: u16, target: &str, form: &str, origin: &str) -> Option<String> {
    let headers = format!("Origin: {origin}\r\nContent-Type: application/x-www-form-urlencoded\r\n");
    http_request(port, "POST", target, &headers, form.as_bytes())
}
