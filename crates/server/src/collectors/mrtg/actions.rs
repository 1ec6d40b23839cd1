//! What thresholds do: programs and mails.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use collect::mrtg::threshold::Action;

use super::files::LoadedConfig;
use super::{MrtgSettings, programs};

/// How long a mail server may take for each answer.
const MAIL_PATIENCE: Duration = Duration::from_secs(10);

/// Does it on a thread of its own; what goes wrong is logged.
pub fn act(action: Action, loaded: &LoadedConfig, settings: &MrtgSettings, cancelled: &Arc<AtomicBool>) {
    let server = loaded.config.get("threshmailserver").map(str::to_string);
    let sender = loaded.config.get("threshmailsender").map(str::to_string);
    let (limit, may_run, cancelled) = (settings.program_timeout, settings.programs, Arc::clone(cancelled));
    tokio::task::spawn_blocking(move || {
        let done = match &action {
            Action::Run { .. } if !may_run => Err("programs are switched off (programs = false)".to_string()),
            Action::Run { program, arguments, environment } => {
                programs::run_action(program, arguments, environment, limit, &cancelled)
            }
            Action::Mail { to, subject, text } => match server.zip(sender) {
                None => Err("there is no ThreshMailServer with a ThreshMailSender".to_string()),
                Some((server, sender)) => {
                    let mail = Mail { from: &sender, to, subject, text };
                    mail.send(&server).map_err(|error| format!("{server}: {error}"))
                }
            },
        };
        if let Err(error) = done {
            tracing::warn!(?action, error, "a threshold's action failed");
        }
    });
}

struct Mail<'a> {
    from: &'a str,
    to: &'a str,
    subject: &'a str,
    text: &'a str,
}

impl Mail<'_> {
    /// Sends it by SMTP.
    fn send(&self, server: &str) -> std::io::Result<()> {
        let with_port = if server.contains(':') { server.to_string() } else { format!("{server}:25") };
        let address = with_port.to_socket_addrs()?.next();
        let address = address.ok_or_else(|| std::io::Error::other("has no address"))?;
        let stream = TcpStream::connect_timeout(&address, MAIL_PATIENCE)?;
        stream.set_read_timeout(Some(MAIL_PATIENCE))?;
        stream.set_write_timeout(Some(MAIL_PATIENCE))?;
        let mut answers = BufReader::new(stream.try_clone()?);
        let mut stream = stream;
        expect(&mut answers, b'2')?;
        for (command, class) in [
            ("HELO localhost".to_string(), b'2'),
            (format!("MAIL FROM:<{}>", one_line(self.from)), b'2'),
            (format!("RCPT TO:<{}>", one_line(self.to)), b'2'),
            ("DATA".to_string(), b'3'),
            (self.body(), b'2'),
            ("QUIT".to_string(), b'2'),
        ] {
            stream.write_all(command.as_bytes())?;
            stream.write_all(b"\r\n")?;
            expect(&mut answers, class)?;
        }
        Ok(())
    }

    /// Head and text up to the dot that ends them.
    fn body(&self) -> String {
        let head = format!(
            "From: {}\r\nTo: {}\r\nSubject: {}\r\n\r\n",
            one_line(self.from),
            one_line(self.to),
            one_line(self.subject)
        );
        let lines = self.text.lines().map(|line| {
            // A line that is a dot would end the mail.
            let dot = if line.starts_with('.') { "." } else { "" };
            format!("{dot}{line}\r\n")
        });
        head + &lines.collect::<String>() + "."
    }
}

fn one_line(text: &str) -> String {
    text.replace(['\r', '\n'], " ")
}

/// Reads an answer, which must be of this class.
fn expect(answers: &mut impl BufRead, class: u8) -> std::io::Result<()> {
    loop {
        let mut line = String::new();
        answers.read_line(&mut line)?;
        // "250-" goes on, "250 " does not.
        if line.as_bytes().get(3) == Some(&b'-') {
            continue;
        }
        return if line.as_bytes().first() == Some(&class) {
            Ok(())
        } else {
            Err(std::io::Error::other(format!("answered \"{}\"", line.trim_end())))
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_is_sent() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap().to_string();
        let receiving = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let mut stream = stream;
            stream.write_all(b"220-hello\r\n220 there\r\n").unwrap();
            let mut seen = Vec::new();
            let mut is_text = false;
            while let Some(Ok(line)) = lines.next() {
                is_text = is_text && line != ".";
                if !is_text {
                    is_text = line == "DATA";
                    stream.write_all(if is_text { b"354 go on\r\n" } else { b"250 good\r\n" }).unwrap();
                }
                seen.push(line);
            }
            seen
        });
        let mail = Mail { from: "a@b", to: "c@d", subject: "broken\nBcc: x", text: "one\n.\n" };
        mail.send(&server).unwrap();
        let seen = receiving.join().unwrap();
        assert!(seen.contains(&"RCPT TO:<c@d>".to_string()) && seen.contains(&"..".to_string()), "{seen:?}");
        assert!(seen.contains(&"Subject: broken Bcc: x".to_string()), "{seen:?}");
    }
}
