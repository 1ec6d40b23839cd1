//! HTTP to another tool's server: GET, one request a connection, with bounds of time and memory.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use client::tls::TlsFiles;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

/// How long a connection or an answer may make no progress.
const PATIENCE: Duration = Duration::from_secs(120);
/// Bytes of an answer at most.
const BODY_BYTES_MAX: u64 = 512 << 20;
/// Bytes of an answer's head at most.
const HEAD_BYTES_MAX: u64 = 64 << 10;

/// A server, of which requests are made.
#[derive(Clone, Debug)]
pub struct Server {
    host: String,
    port: u16,
    /// What stands before the paths of requests.
    prefix: String,
    /// The header of a user and password.
    authorization: Option<String>,
    tls: Option<Arc<ClientConfig>>,
}

impl Server {
    /// The server of `http[s]://[USER:PASSWORD@]HOST[:PORT][/PREFIX]`.
    ///
    /// # Errors
    /// What is wrong with the URL, or with the files of TLS.
    pub fn parse(url: &str) -> Result<Self, String> {
        let bad = |why: &str| format!("cannot use the URL: {why}; give http://HOST:PORT, or https://");
        let (is_tls, rest) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return Err(bad("it is neither http nor https")),
        };
        let (authority, prefix) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (user, host_port) =
            authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
        let (host, port) = match host_port.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| bad("its port is no number"))?)
            }
            _ => (host_port, if is_tls { 443 } else { 80 }),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_string();
        if host.is_empty() || url.bytes().any(|byte| byte <= b' ') {
            return Err(bad("it has no host, or blanks"));
        }
        let tls = match is_tls {
            false => None,
            true => {
                let mut config = (*TlsFiles::from_environment()?.config()?).clone();
                config.alpn_protocols.clear();
                Some(Arc::new(config))
            }
        };
        let authorization = user.map(|user| format!("Basic {}", STANDARD.encode(user)));
        Ok(Server { host, port, prefix: prefix.trim_end_matches('/').to_string(), authorization, tls })
    }

    /// The body that a GET of this path answers with.
    ///
    /// # Errors
    /// When the server cannot be reached, answers with another status than 200, or with too much.
    pub fn get(&self, path: &str) -> Result<Vec<u8>, String> {
        let failed = |error: io::Error| format!("cannot ask {}:{}: {error}", self.host, self.port);
        let (status, body) = self.exchange(path).map_err(failed)?;
        match status {
            200 => Ok(body),
            status => {
                let said: String = String::from_utf8_lossy(&body).chars().take(200).collect();
                Err(format!(
                    "{}:{} answered {status} to {}{path}: {}",
                    self.host,
                    self.port,
                    self.prefix,
                    said.trim()
                ))
            }
        }
    }

    fn exchange(&self, path: &str) -> io::Result<(u16, Vec<u8>)> {
        let mut addresses = (self.host.as_str(), self.port).to_socket_addrs()?;
        let address = addresses.next().ok_or_else(|| io::Error::other("the host has no address"))?;
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut request =
            format!("GET {}{path} HTTP/1.1\r\nHost: {}:{}\r\n", self.prefix, self.host, self.port);
        if let Some(authorization) = &self.authorization {
            request.push_str(&format!("Authorization: {authorization}\r\n"));
        }
        request.push_str("User-Agent: roundel\r\nAccept: application/json\r\nConnection: close\r\n\r\n");
        match &self.tls {
            None => talk(stream, &request),
            Some(config) => {
                let name = ServerName::try_from(self.host.clone()).map_err(io::Error::other)?;
                let connection = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
                talk(StreamOwned::new(connection, stream), &request)
            }
        }
    }
}

fn talk(mut stream: impl Read + Write, request: &str) -> io::Result<(u16, Vec<u8>)> {
    stream.write_all(request.as_bytes())?;
    stream.flush()?;
    read_answer(BufReader::new(stream))
}

/// Status and body of an answer.
pub(super) fn read_answer(mut input: impl BufRead) -> io::Result<(u16, Vec<u8>)> {
    let mut head = input.by_ref().take(HEAD_BYTES_MAX);
    let first = line(&mut head)?;
    let status = first.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse().ok());
    let status = status.ok_or_else(|| io::Error::other("the answer is not HTTP"))?;
    let (mut length, mut is_chunked) = (None, false);
    loop {
        let header = line(&mut head)?;
        if header.is_empty() {
            break;
        }
        let Some((name, value)) = header.split_once(':') else { continue };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse::<u64>().ok();
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            is_chunked = value.to_ascii_lowercase().contains("chunked");
        }
    }
    let mut body = Vec::new();
    if is_chunked {
        read_chunks(&mut input, &mut body)?;
    } else {
        input.take(length.unwrap_or(BODY_BYTES_MAX + 1).min(BODY_BYTES_MAX + 1)).read_to_end(&mut body)?;
        if length.is_some_and(|length| length <= BODY_BYTES_MAX && (body.len() as u64) < length) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    match body.len() as u64 > BODY_BYTES_MAX {
        true => Err(too_large()),
        false => Ok((status, body)),
    }
}

fn too_large() -> io::Error {
    io::Error::other("the answer is larger than 512 MB; ask for fewer series or a shorter range")
}

fn read_chunks(input: &mut impl BufRead, body: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let size = line(&mut input.by_ref().take(HEAD_BYTES_MAX))?;
        let size = size.split(';').next().unwrap_or_default().trim();
        let size =
            u64::from_str_radix(size, 16).map_err(|_| io::Error::other("a chunk's size is no number"))?;
        if size == 0 {
            return Ok(());
        }
        if size.saturating_add(body.len() as u64) > BODY_BYTES_MAX {
            return Err(too_large());
        }
        if input.by_ref().take(size).read_to_end(body)? as u64 != size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        line(&mut input.by_ref().take(HEAD_BYTES_MAX))?;
    }
}

/// The next line without its end.
fn line(input: &mut impl BufRead) -> io::Result<String> {
    let mut bytes = Vec::new();
    input.read_until(b'\n', &mut bytes)?;
    if bytes.pop() != Some(b'\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(String::from_utf8_lossy(bytes.trim_ascii_end()).into_owned())
}

/// A value in a URL's query.
pub fn query_value(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_to_their_end() {
        let read = |text: &str| read_answer(text.as_bytes()).map_err(|error| error.to_string());
        let body = |text: &str| Ok((200, text.as_bytes().to_vec()));
        assert_eq!(read("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc"), body("ab"));
        assert_eq!(read("HTTP/1.0 200 OK\n\nabc"), body("abc"));
        assert_eq!(
            read("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2;x\r\nab\r\n1\r\nc\r\n0\r\n\r\n"),
            body("abc")
        );
        assert_eq!(read("HTTP/1.1 404 No\r\n\r\nx"), Ok((404, b"x".to_vec())));
        for bad in [
            "",
            "SSH-2.0\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nab",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn urls_are_servers() {
        let server = Server::parse("http://ann:pw@[::1]:8080/graphite/").expect("a URL");
        assert_eq!((server.host.as_str(), server.port, server.prefix.as_str()), ("::1", 8080, "/graphite"));
        assert_eq!(server.authorization.as_deref(), Some("Basic YW5uOnB3"));
        assert_eq!(Server::parse("http://db").expect("a URL").port, 80);
        for bad in ["db:80", "http://", "http://a:b/", "http://a b/"] {
            assert!(Server::parse(bad).is_err(), "{bad}");
        }
    }
}
