//! The page: one HTML file, pictures beside it, no script.

use std::fmt::Write;
use std::time::Duration;

use super::{Drawn, Pair, differences};

const STYLE: &str = "\
:root{color-scheme:light dark}body{font:14px/1.4 system-ui,sans-serif;margin:2em auto;max-width:1400px;padding:0 1em}
h2{margin-top:2em}section{border-top:1px solid #8884;padding:1em 0}.pair{display:flex;flex-wrap:wrap;gap:1em}
figure{margin:0;min-width:0}figcaption{color:#888;font-variant-numeric:tabular-nums}img{max-width:100%;height:auto}
.differs{color:#c33}.same{color:#393}details{margin-top:.5em}pre{overflow:auto;background:#8882;padding:.7em}
table{border-collapse:collapse}td{padding:0 .8em 0 0}.error{color:#c33;white-space:pre-wrap}";

/// The whole page.
pub fn page(pairs: &[Pair]) -> String {
    let mut out =
        String::from("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Gallery</title>");
    out.push_str("<meta name=\"viewport\" content=\"width=device-width\"><style>");
    out.push_str(STYLE);
    out.push_str("</style><h1>rrdtool 1.7.2 and Roundel</h1>");
    summary(&mut out, pairs);
    let mut chapter = "";
    for pair in pairs {
        if pair.example.chapter != chapter {
            chapter = &pair.example.chapter;
            let _ = write!(out, "<h2>{}</h2>", escaped(chapter));
        }
        section(&mut out, pair);
    }
    out.push_str("</html>\n");
    out
}

/// What differs, in a few words.
pub fn verdict(debian: Option<&Drawn>, ours: &Drawn) -> String {
    let Some(debian) = debian else {
        return ours
            .picture
            .as_ref()
            .map_or_else(|error| format!("error: {error}"), |_| "ours alone".to_string());
    };
    match (&debian.picture, &ours.picture) {
        (Err(theirs), Err(own)) if theirs == own => "the same error".to_string(),
        (_, Err(error)) => format!("error: {}", error.trim_end()),
        (Err(_), Ok(_)) => "only ours draws".to_string(),
        (Ok(_), Ok(_)) => match differences(debian, ours).len() {
            0 => "the same numbers".to_string(),
            count => format!("{count} numbers differ"),
        },
    }
}

fn summary(out: &mut String, pairs: &[Pair]) {
    let both = || pairs.iter().filter_map(|pair| Some((pair.debian.as_ref()?, &pair.ours)));
    let seconds = |wall: Duration| wall.as_secs_f64();
    let (theirs, own) =
        both().fold((0.0, 0.0), |sum, (a, b)| (sum.0 + seconds(a.wall), sum.1 + seconds(b.wall)));
    let (many, few) = both().fold((0, 0), |sum, (a, b)| (sum.0 + a.bytes, sum.1 + b.bytes));
    let same = both().filter(|(debian, ours)| differences(debian, ours).is_empty()).count();
    let _ = write!(
        out,
        "<p>{} pictures by both: {same} with the same numbers of <code>graphv</code>. A process each: {:.0} ms and \
         {:.0} ms in all; {many} and {few} bytes.</p>",
        both().count(),
        theirs * 1e3,
        own * 1e3
    );
}

fn section(out: &mut String, pair: &Pair) {
    let example = &pair.example;
    let _ = write!(out, "<section><h3>{}</h3>", escaped(&example.title));
    if !example.note.is_empty() {
        let _ = write!(out, "<p>{}</p>", escaped(&example.note));
    }
    out.push_str("<div class=\"pair\">");
    if let Some(debian) = &pair.debian {
        figure(out, "rrdtool", debian);
    }
    figure(out, "Roundel", &pair.ours);
    out.push_str("</div>");
    if let Some(debian) = &pair.debian {
        let different = differences(debian, &pair.ours);
        if different.is_empty() {
            out.push_str("<p class=\"same\">the same numbers</p>");
        } else {
            out.push_str("<table class=\"differs\">");
            for (key, theirs, own) in different {
                let cells = [key, theirs, own].map(|cell| format!("<td>{}</td>", escaped(cell)));
                let _ = write!(out, "<tr>{}</tr>", cells.concat());
            }
            out.push_str("</table>");
        }
    }
    let arguments: Vec<String> = example.arguments.iter().map(|argument| escaped(argument)).collect();
    let _ = write!(
        out,
        "<details><summary>arguments</summary><pre>{}</pre></details></section>",
        arguments.join("\n")
    );
}

fn figure(out: &mut String, name: &str, drawn: &Drawn) {
    match &drawn.picture {
        Ok(file) => {
            let size = |key: &str| drawn.keys.get(key).map_or("?", String::as_str);
            let _ = write!(
                out,
                "<figure><img src=\"{}\" alt=\"\"><figcaption>{name}: {} x {}, {} bytes, {:.1} ms</figcaption></figure>",
                escaped(file),
                size("image_width"),
                size("image_height"),
                drawn.bytes,
                drawn.wall.as_secs_f64() * 1e3
            );
        }
        Err(error) => {
            let _ = write!(
                out,
                "<figure><figcaption>{name}</figcaption><p class=\"error\">{}</p></figure>",
                escaped(error)
            );
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}
