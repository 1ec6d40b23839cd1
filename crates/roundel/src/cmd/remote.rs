//! Requests over HTTP to a daemon or another tool's server, with bounds of time and memory.

use std::io::Read;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use client::tls::TlsFiles;
use reqwest::blocking::{Client, RequestBuilder};
use reqwest::{StatusCode, Url, redirect};

use super::Result;

/// How long a connection or an answer may make no progress.
const PATIENCE: Duration = Duration::from_secs(120);
/// Bytes of an answer at most.
const BODY_BYTES_MAX: u64 = 512 << 20;
/// Characters shown of an answer that is an error.
const TOLD_MAX: usize = 200;

/// A server, of which requests are made.
pub struct Server {
    client: Client,
    /// Shown with each request.
    token: Option<String>,
    /// What stands before the paths of requests, with user and password if there are.
    base: Url,
}

impl Server {
    /// The server of `http[s]://[USER:PASSWORD@]HOST[:PORT][/PREFIX]`.
    ///
    /// # Errors
    /// What is wrong with the URL, or with the files of TLS.
    pub fn new(url: &str) -> Result<Self> {
        Server::with(url, &TlsFiles::from_environment()?)
    }

    fn with(url: &str, tls: &TlsFiles) -> Result<Self> {
        let bad = |why: &str| format!("cannot use the URL: {why}; give http://HOST:PORT, or https://");
        let base = Url::parse(url).map_err(|error| bad(&error.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(bad("it is neither http nor https"));
        }
        if base.query().is_some() || base.fragment().is_some() {
            return Err(bad("it has a query"));
        }
        let mut tls = (*tls.config()?).clone();
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        // Of a redirection is told, not followed: a password is for the server that is named.
        let client = Client::builder().timeout(PATIENCE).redirect(redirect::Policy::none()).no_proxy();
        let client = client.user_agent("roundel").tls_backend_preconfigured(tls).build();
        Ok(Server { client: client.map_err(told)?, token: None, base })
    }

    /// The daemon of a URL, to which the token of the environment is shown; `authority` is a file with whom to trust in place of that of
    /// the environment.
    ///
    /// # Errors
    /// As [`Server::new`]; a token that cannot be read, or would be read by others on the way.
    pub fn daemon(url: &str, authority: Option<&Path>) -> Result<Self> {
        let mut tls = TlsFiles::from_environment()?;
        tls.ca = authority.map(Path::to_path_buf).or(tls.ca);
        let server = Server::with(url, &tls)?;
        let token = client::token::from_environment()?;
        let host = server.base.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let is_here = host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
        let is_safe = server.base.scheme() == "https" || is_here || client::token::is_plain_allowed();
        if token.is_some() && !is_safe {
            let text = "a token (ROUNDEL_TOKEN, ROUNDEL_TOKEN_FILE) is not sent unencrypted to another machine: use https://, or set \
                        ROUNDEL_TOKEN_PLAIN=1 in a network that you trust";
            return Err(text.to_owned());
        }
        Ok(Server { token, ..server })
    }

    /// The body that a GET of this path, which begins with a slash, answers with.
    ///
    /// # Errors
    /// When the server cannot be reached, answers with another status than 200, or with too much.
    pub fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Vec<u8>> {
        let mut url = self.url(path);
        url.query_pairs_mut().extend_pairs(query);
        let (status, body) = self.send(&url, self.client.get(url.clone()))?;
        if status == StatusCode::OK {
            return Ok(body);
        }
        Err(refused(&url, status, &body))
    }

    /// The status and body that a POST of a form to this path is answered with.
    ///
    /// # Errors
    /// When the server cannot be reached, or answers with too much.
    pub fn post(&self, path: &str, form: &[(&str, String)]) -> Result<(u16, Vec<u8>)> {
        let url = self.url(path);
        let mut encoded = self.base.clone();
        encoded.query_pairs_mut().clear().extend_pairs(form);
        let body = encoded.query().unwrap_or_default().to_owned();
        let request = self.client.post(url.clone()).body(body);
        let request = request.header("Content-Type", "application/x-www-form-urlencoded");
        let (status, body) = self.send(&url, request)?;
        match status {
            // A client that is not let in learns what to do.
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(refused(&url, status, &body)),
            status => Ok((status.as_u16(), body)),
        }
    }

    fn url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path().trim_end_matches('/')));
        url
    }

    fn send(&self, url: &Url, request: RequestBuilder) -> Result<(StatusCode, Vec<u8>)> {
        let failed = |why: String| format!("cannot ask {}: {why}", place(url));
        let request = match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        let answer = request.header("Accept", "application/json").send();
        let answer = answer.map_err(|error| failed(told(error)))?;
        let status = answer.status();
        if let Some(location) = answer.headers().get("location").filter(|_| status.is_redirection()) {
            let location = String::from_utf8_lossy(location.as_bytes()).into_owned();
            return Err(failed(format!("it redirects to \"{}\"; give that URL", location.escape_debug())));
        }
        let mut body = Vec::new();
        answer.take(BODY_BYTES_MAX + 1).read_to_end(&mut body).map_err(|error| failed(error.to_string()))?;
        if body.len() as u64 > BODY_BYTES_MAX {
            return Err(failed(
                "the answer is larger than 512 MB; ask for fewer series or a shorter range".to_string(),
            ));
        }
        Ok((status, body))
    }
}

/// Host and path, without a password.
fn place(url: &Url) -> String {
    format!("{}{}", url.authority().rsplit('@').next().unwrap_or_default(), url.path())
}

fn refused(url: &Url, status: StatusCode, body: &[u8]) -> String {
    let said: String = String::from_utf8_lossy(body).chars().take(TOLD_MAX).collect();
    format!("{} answered {}: {}", place(url), status.as_u16(), said.trim())
}

/// The causes of an error: the library's own texts name the kind only, and the URL with its password.
fn told(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    /// What a server got that answers with these bytes, and what was made of them.
    fn asked(answer: &'static [u8]) -> (String, Result<Vec<u8>>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let served = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let lines = BufReader::new(&stream).lines().map_while(std::result::Result::ok);
            let head = lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
            // A client that has heard enough hangs up.
            let _hung_up = stream.write_all(answer);
            head
        });
        let server = Server::new(&format!("http://ann:p%40w@127.0.0.1:{port}/pre fix/")).expect("a URL");
        let body = server.get("/render", &[("target", "a{b} &c")]);
        (served.join().expect("served"), body)
    }

    #[test]
    fn a_request_is_for_the_prefix_and_its_answer_is_read_to_its_end() {
        let (head, body) =
            asked(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2;x\r\nab\r\n1\r\nc\r\n0\r\n\r\n");
        assert!(head.starts_with("GET /pre%20fix/render?target=a%7Bb%7D+%26c HTTP/1.1\n"), "{head}");
        assert!(head.to_lowercase().contains("authorization: basic yw5uonbadw=="), "{head}");
        assert_eq!(body.as_deref(), Ok(&b"abc"[..]));
    }

    #[test]
    fn what_is_no_good_answer_is_told_without_the_password() {
        for (answer, why) in [
            (
                &b"HTTP/1.1 404 No\r\nContent-Length: 5\r\n\r\nnone\n"[..],
                "/pre%20fix/render answered 404: none",
            ),
            (
                b"HTTP/1.1 302 No\r\nLocation: http://other/\r\nContent-Length: 0\r\n\r\n",
                "it redirects to \"http://other/\"",
            ),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", "cannot ask"),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nab", "cannot ask"),
            (b"SSH-2.0\r\n", "cannot ask"),
        ] {
            let (_, body) = asked(answer);
            let error = body.expect_err("an error");
            assert!(error.contains(why) && !error.contains("p%40w"), "{error}");
        }
        for bad in ["db:80", "http://", "ftp://a/", "http://a:b/", "http://a/?x=1"] {
            assert!(Server::new(bad).is_err(), "{bad}");
        }
    }
}
