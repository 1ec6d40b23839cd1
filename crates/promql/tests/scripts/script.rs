//! Scripts as commands.

/// A command.
#[derive(Debug)]
pub enum Command {
    Clear,
    /// The step in milliseconds, series with their places, and whether buckets make native histograms, too.
    Load(i64, Vec<(String, String)>, bool),
    Eval(Box<Eval>),
}

/// What is evaluated, and what is expected of it.
#[derive(Debug, Default)]
pub struct Eval {
    pub line: usize,
    pub query: String,
    /// Start, end and step in milliseconds; without step a single time.
    pub start: i64,
    pub end: i64,
    pub step: Option<i64>,
    pub fails: bool,
    pub fail_text: Option<Text>,
    pub ordered: bool,
    /// Whether notes must be there, must not, or do not matter; and their texts.
    pub warns: Notes,
    pub informs: Notes,
    pub string: Option<String>,
    /// Times of a range vector that is expected.
    pub range: Option<(i64, i64, i64)>,
    pub series: Vec<(String, String)>,
}

#[derive(Debug, Default)]
pub struct Notes {
    pub some: bool,
    pub none: bool,
    pub texts: Vec<Text>,
}

#[derive(Debug)]
pub enum Text {
    Exact(String),
    Regex(String),
}

/// A duration or number of seconds in milliseconds.
pub fn time(text: &str) -> i64 {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let time = roundel_promql::number::parse_duration(text)
        .unwrap_or_else(|| (text.parse::<f64>().unwrap_or_else(|_| panic!("{text:?}")) * 1000.0) as i64);
    if negative { -time } else { time }
}

/// The commands of a script.
pub fn read(text: &str) -> Vec<Command> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut at, mut commands) = (0, Vec::new());
    while at < lines.len() {
        let line = lines[at].trim();
        let number = at + 1;
        at += 1;
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut block = Vec::new();
        let is_command = |line: &str| {
            let word = line.split_whitespace().next().unwrap_or("");
            matches!(word, "clear" | "load" | "load_with_nhcb") || word.starts_with("eval")
        };
        // A block ends with an empty line, or with the next command.
        while at < lines.len() && !lines[at].trim().is_empty() && !is_command(lines[at].trim()) {
            let inner = lines[at].trim();
            if !inner.starts_with('#') {
                block.push(inner);
            }
            at += 1;
        }
        let word = line.split_whitespace().next().unwrap();
        match word {
            "clear" => commands.push(Command::Clear),
            "load" | "load_with_nhcb" => {
                let step = time(line.split_whitespace().nth(1).unwrap());
                commands.push(Command::Load(
                    step,
                    block.iter().map(|line| series(line)).collect(),
                    word != "load",
                ));
            }
            _ => commands.push(Command::Eval(Box::new(eval(number, line, &block)))),
        }
    }
    commands
}

/// A series and its places.
fn series(line: &str) -> (String, String) {
    let mut quote = None;
    let mut depth = 0;
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open && !line[..at].ends_with('\\') => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'' | '`') => quote = Some(c),
            (None, '{') => depth += 1,
            (None, '}') => depth -= 1,
            (None, c) if c.is_whitespace() && depth == 0 => {
                return (line[..at].into(), line[at..].trim().into());
            }
            _ => {}
        }
    }
    (line.into(), String::new())
}

fn eval(line: usize, head: &str, block: &[&str]) -> Eval {
    let mut eval = Eval { line, ..Eval::default() };
    let (word, rest) = head.split_once(' ').unwrap();
    let words: Vec<&str> = rest.split_whitespace().collect();
    let skip = |count: usize| {
        let mut rest = rest.trim_start();
        for _ in 0..count {
            rest = rest[rest.find(char::is_whitespace).unwrap()..].trim_start();
        }
        rest.to_owned()
    };
    if words[0] == "instant" {
        (eval.start, eval.query) = (time(words[2]), skip(3));
        eval.end = eval.start;
    } else {
        (eval.start, eval.end, eval.step) = (time(words[2]), time(words[4]), Some(time(words[6])));
        eval.query = skip(7);
    }
    match word {
        "eval_fail" => eval.fails = true,
        "eval_warn" => eval.warns.some = true,
        "eval_info" => eval.informs.some = true,
        "eval_ordered" => eval.ordered = true,
        _ => {}
    }
    for line in block {
        match line.strip_prefix("expect ") {
            Some(rest) => expect(&mut eval, rest.trim()),
            None if line.starts_with("expected_fail") => {}
            None => eval.series.push(series(line)),
        }
    }
    eval
}

fn expect(eval: &mut Eval, rest: &str) {
    let (kind, text) = rest.split_once(' ').unwrap_or((rest, ""));
    let text = text.trim();
    let unquoted = |text: &str| {
        let text = text.trim();
        text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text).to_owned()
    };
    let text_of = || match (text.strip_prefix("msg:"), text.strip_prefix("regex:")) {
        (Some(text), _) => Some(Text::Exact(unquoted(text))),
        (_, Some(text)) => Some(Text::Regex(unquoted(text))),
        _ => None,
    };
    match kind {
        "fail" => (eval.fails, eval.fail_text) = (true, text_of()),
        "warn" => {
            eval.warns.some = true;
            eval.warns.texts.extend(text_of());
        }
        "info" => {
            eval.informs.some = true;
            eval.informs.texts.extend(text_of());
        }
        "no_warn" => eval.warns.none = true,
        "no_info" => eval.informs.none = true,
        "ordered" => eval.ordered = true,
        "string" => eval.string = Some(text.trim_matches(['"', '`']).to_owned()),
        "range" => {
            let words: Vec<&str> = text.split_whitespace().collect();
            eval.range = Some((time(words[2]), time(words[4]), time(words[6])));
        }
        other => panic!("line {}: expect {other}", eval.line),
    }
}
