//! Every keyword of mrtg.cfg: where it may stand, what becomes of it here, and the values that MRTG takes.

/// What becomes of a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Treatment {
    /// It has its effect.
    Honoured,
    /// It says how graphs look: it is kept with the RRD.
    Shown,
    /// It has no effect here; why, for the operator.
    NotHonoured(&'static str),
}

/// Where a keyword may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// `Keyword: value`
    Global,
    /// `Keyword[target]: value`
    Target,
}

/// The values that MRTG takes for a keyword.
#[derive(Clone, Copy, Debug)]
enum Rule {
    Any,
    YesNo,
    /// Digits, more than nought; what MRTG says otherwise, after the value.
    Positive(&'static str),
    /// Digits.
    Whole(&'static str),
    /// `5` or `5.5`
    Decimal,
    /// Perl's integer of it is at least `.0` and at most `.1`; what MRTG says otherwise, and whether it repeats the value.
    Between(i64, i64, &'static str, bool),
    /// One of these letters is in it.
    Letters(&'static str, &'static str),
    /// It is one of these words, in any case.
    Words(&'static [&'static str], &'static str),
    Interval,
    LogFormat,
    OneCharacter,
    Pairs,
    Colour,
    Colours,
    Address,
    Environment,
    HoltWinters,
    Graphite,
}

/// A keyword.
#[derive(Debug)]
pub struct Keyword {
    /// In lower case.
    pub name: &'static str,
    /// Where it may stand.
    pub scope: Scope,
    /// What becomes of it.
    pub treatment: Treatment,
    rule: Rule,
}

const GRAPHS: &str = "Must be a string of [n]one, [d]ay, [w]eek, [m]onth, [y]ear";
const BIGGER: &str = " must be a Number bigger than 0";
const PAGES: &str = "MRTG's pages and pictures are not made; roundel draws";
const POSITIONS: &[&str] = &["no", "lu", "ru", "ll", "rl"];

const fn global(name: &'static str, treatment: Treatment, rule: Rule) -> Keyword {
    Keyword { name, scope: Scope::Global, treatment, rule }
}

const fn target(name: &'static str, treatment: Treatment, rule: Rule) -> Keyword {
    Keyword { name, scope: Scope::Target, treatment, rule }
}

use Rule::*;
use Treatment::{Honoured, NotHonoured, Shown};

/// All keywords.
pub const KEYWORDS: &[Keyword] = &[
    global("workdir", Honoured, Any),
    global("logdir", Honoured, Any),
    global("htmldir", NotHonoured(PAGES), Any),
    global("imagedir", NotHonoured(PAGES), Any),
    global("icondir", NotHonoured(PAGES), Any),
    global("refresh", NotHonoured(PAGES), Between(300, i64::MAX, " should be 300 seconds or more", true)),
    global("writeexpires", NotHonoured(PAGES), Any),
    global("language", NotHonoured(PAGES), Any),
    global("logformat", Honoured, LogFormat),
    global("interval", Honoured, Interval),
    global("runasdaemon", NotHonoured("roundel serve is the daemon"), YesNo),
    global("nodetach", NotHonoured("roundel serve is the daemon"), YesNo),
    global(
        "forks",
        NotHonoured("all targets are polled at once"),
        Between(1, i64::MAX, "Less than 1 fork or not running on Unix/Linux", false),
    ),
    global("rrdcached", NotHonoured("readings go into roundel's own store"), Any),
    global("snmpoptions", Honoured, Pairs),
    global("enablesnmpv3", NotHonoured("SNMP v3 is always there"), YesNo),
    global("enableipv6", Honoured, YesNo),
    global("nomib2", Honoured, Any),
    global("singlerequest", Honoured, Any),
    global("loadmibs", Honoured, Any),
    global("maxage", Honoured, Positive(BIGGER)),
    global("threshdir", Honoured, Any),
    global("threshhyst", Honoured, Decimal),
    global("hwthreshhyst", Honoured, Decimal),
    global("threshmailserver", Honoured, Any),
    global("threshmailsender", Honoured, Address),
    global("sendtographite", NotHonoured("readings go into roundel's own store only"), Graphite),
    global(
        "conversioncode",
        NotHonoured("there is no Perl in roundel: targets that end in |name are unknown"),
        Any,
    ),
    global("libadd", NotHonoured("there is no Perl in roundel"), Any),
    global("pathadd", NotHonoured("rrdtool and rateup are not called"), Any),
    global("nospacechar", Honoured, OneCharacter),
    target("target", Honoured, Any),
    target("snmpoptions", Honoured, Pairs),
    target("nohc", Honoured, YesNo),
    target("ipv4only", Honoured, YesNo),
    target("maxbytes", Honoured, Positive(BIGGER)),
    target("maxbytes1", Honoured, Positive(" must be numerical and larger than 0")),
    target("maxbytes2", Honoured, Positive(" must a number bigger than 0")),
    target("absmax", Honoured, Whole(" must be a Number")),
    target("directory", Honoured, Any),
    target("options", Honoured, Any),
    target("rrdrowcount", Honoured, Any),
    target("rrdrowcount30m", Honoured, Any),
    target("rrdrowcount2h", Honoured, Any),
    target("rrdrowcount1d", Honoured, Any),
    target("rrdhwrras", Honoured, HoltWinters),
    target("routeruptime", NotHonoured(PAGES), Any),
    target("routername", NotHonoured(PAGES), Any),
    target("setenv", Honoured, Environment),
    target("threshmini", Honoured, Any),
    target("threshmaxi", Honoured, Any),
    target("threshmino", Honoured, Any),
    target("threshmaxo", Honoured, Any),
    target("threshdesc", Honoured, Any),
    target("threshprogi", Honoured, Any),
    target("threshprogo", Honoured, Any),
    target("threshprogoki", Honoured, Any),
    target("threshprogoko", Honoured, Any),
    target("threshmailaddress", Honoured, Address),
    target("hwthreshmini", Honoured, Any),
    target("hwthreshmaxi", Honoured, Any),
    target("hwthreshmino", Honoured, Any),
    target("hwthreshmaxo", Honoured, Any),
    target("hwthreshdesc", Honoured, Any),
    target("hwthreshprogi", Honoured, Any),
    target("hwthreshprogo", Honoured, Any),
    target("hwthreshprogoki", Honoured, Any),
    target("hwthreshprogoko", Honoured, Any),
    target("hwthreshmailaddress", Honoured, Address),
    target("title", Shown, Any),
    target("pagetop", Shown, Any),
    target("pagefoot", Shown, Any),
    target("addhead", NotHonoured(PAGES), Any),
    target("bodytag", NotHonoured(PAGES), Any),
    target("extension", NotHonoured(PAGES), Any),
    target("unscaled", Shown, Letters("dwmyn", GRAPHS)),
    target("withpeak", Shown, Letters("dwmyn", GRAPHS)),
    target("suppress", Shown, Letters("dwmyn", GRAPHS)),
    target("weekformat", Shown, Words(&["w", "v", "u"], "Must be either W, V, or U")),
    target("xsize", Shown, Between(30, 600, " must be between 30 and 600 pixels", true)),
    target("ysize", Shown, Between(30, i64::MAX, "Must be >= 30 pixels", false)),
    target("xzoom", Shown, Decimal),
    target("yzoom", Shown, Decimal),
    target("xscale", Shown, Decimal),
    target("yscale", Shown, Decimal),
    target("ytics", Shown, Between(1, i64::MAX, "Must be >= 1", false)),
    target("yticsfactor", Shown, Letters("0123456789+-.e", "Should be a numerical value")),
    target("factor", Shown, Letters("0123456789+-.e", "Should be a numerical value")),
    target("step", Shown, Between(0, i64::MAX, " must be > 0", true)),
    target("timezone", Shown, Any),
    target("colours", Shown, Colours),
    target("background", NotHonoured(PAGES), Colour),
    target("textcolor", NotHonoured(PAGES), Colour),
    target("kilo", Shown, Whole(" must be a Integer Number")),
    target("kmg", Shown, Any),
    target("pngtitle", Shown, Any),
    target("ylegend", Shown, Any),
    target("shortlegend", Shown, Any),
    target("legend1", Shown, Any),
    target("legend2", Shown, Any),
    target("legend3", Shown, Any),
    target("legend4", Shown, Any),
    target("legend5", Shown, Any),
    target("legendi", Shown, Any),
    target("legendo", Shown, Any),
    target("timestrpos", Shown, Words(POSITIONS, "Must be a string of NO, LU, RU, LL, RL")),
    target("timestrfmt", Shown, Any),
    target("clonedirectory", NotHonoured(PAGES), Any),
];

/// The keyword of that name and place.
pub fn find(name: &str, scope: Scope) -> Option<&'static Keyword> {
    KEYWORDS.iter().find(|keyword| keyword.name == name && keyword.scope == scope)
}

impl Keyword {
    /// Holds a value to the keyword's rule.
    ///
    /// # Errors
    /// What MRTG says of the value.
    pub fn check(&self, value: &str) -> Result<(), String> {
        let unless = |holds: bool, text: String| if holds { Ok(()) } else { Err(text) };
        let is_whole = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match self.rule {
            Any => Ok(()),
            YesNo => unless(
                ["yes", "no"].contains(&value.to_lowercase().as_str()),
                format!("{value} must be yes or no"),
            ),
            Positive(text) => {
                unless(is_whole(value) && value.bytes().any(|digit| digit != b'0'), format!("{value}{text}"))
            }
            Whole(text) => unless(is_whole(value), format!("{value}{text}")),
            Decimal => {
                let (whole, fraction) = value.split_once('.').unwrap_or((value, "0"));
                unless(is_whole(whole) && is_whole(fraction), format!("{value} must be a Number xxx.xxx"))
            }
            Between(least, most, text, with_value) => {
                let text = if with_value { format!("{value}{text}") } else { text.to_string() };
                unless((least..=most).contains(&perl_integer(value)), text)
            }
            Letters(letters, text) => {
                let value = value.to_ascii_lowercase();
                unless(value.contains(|letter| letters.contains(letter)), text.to_string())
            }
            Words(words, text) => unless(words.contains(&value.to_lowercase().as_str()), text.to_string()),
            Interval => {
                let text = "should be at least 1 Second (0:01) and no more than 60 Minutes (60)";
                unless(super::interval::Interval::parse(value).is_some(), format!("{value} {text}"))
            }
            LogFormat => {
                let known = ["rateup", "rrdtool"].contains(&value.to_lowercase().as_str());
                unless(known, format!("Invalid Logformat '{value}'"))
            }
            OneCharacter => unless(value.chars().count() == 1, format!("{value} must be one character long")),
            Pairs => {
                let text = "Must have the format \"OptA => Number, OptB => 'String', ... \"";
                unless(super::snmp_options::parse(value).is_some(), text.to_string())
            }
            // `Options` of a check of their own, with warnings for each.
            Colour | Colours => Ok(()),
            Address => unless(
                value.is_empty() && self.scope == Scope::Target || value.contains('@'),
                format!("ThreshMailAddress {value} does not look like an email address at all"),
            ),
            Environment => {
                let text = " must be XY=\"dddd\" AASD=\"kjlkj\" ...";
                unless(super::threshold::environment(value).is_some(), format!("{value}{text}"))
            }
            HoltWinters => {
                let text = "This does not look like rrdtool HW RRAs. Check the rrdcreate manual page for inspiration.";
                let words = value.split_whitespace().all(|word| word.starts_with("RRA:"));
                unless(words && !value.is_empty(), format!("{text} ({value})"))
            }
            Graphite => {
                let is_address = value.split_once(',').is_some_and(|(_, port)| is_whole(port));
                unless(is_address, format!("Invalid Graphite Destination '{value}'"))
            }
        }
    }

    /// What MRTG's second check says of a value, as a warning that ends in "Please fix the error(s)".
    pub fn check_colour(&self, target: &str, value: &str) -> Option<String> {
        let name = self.name;
        match self.rule {
            Colour if !is_colour(value) => Some(format!(
                "\"{name}[{target}]: {value}\" for colour definition\n       use the format: #rrggbb"
            )),
            Colours
                if !value.split(',').all(|part| part.find('#').is_some_and(|at| is_colour(&part[at..]))) =>
            {
                Some(format!(
                    "\"{name}[{target}]\" for colour definition\n       \
                     use the format: Name#hexcolour, Name#Hexcolour,..."
                ))
            }
            _ => None,
        }
    }
}

fn is_colour(text: &str) -> bool {
    let digits = text.trim().strip_prefix('#');
    digits.is_some_and(|digits| digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The integer that Perl makes of a text: of the number at its beginning, else 0.
pub fn perl_integer(text: &str) -> i64 {
    let text = text.trim_start();
    let digits = text
        .bytes()
        .enumerate()
        .take_while(|(at, byte)| byte.is_ascii_digit() || *at == 0 && matches!(byte, b'-' | b'+'));
    text[..digits.count()].parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Debian's mrtg takes and refuses.
    #[test]
    fn values_are_held_to_mrtg_s_rules() {
        let check = |name: &str, scope: Scope, good: &[&str], bad: &[&str]| {
            let keyword = find(name, scope).unwrap();
            good.iter().for_each(|value| assert_eq!(keyword.check(value), Ok(()), "{name}: {value}"));
            bad.iter().for_each(|value| assert!(keyword.check(value).is_err(), "{name}: {value}"));
        };
        let target = Scope::Target;
        check("maxbytes", target, &["1", "0010"], &["", "0", "10k", "10.5", "-1"]);
        check("absmax", target, &["0", "5"], &["", "-1", "1.5"]);
        check("unscaled", target, &["dwmy", "N", "x y"], &["", "q", "0"]);
        check("factor", target, &["1.5", "-1", "yes"], &["", "x y", "dw"]);
        check("ytics", target, &["1.5", "10%"], &["", "0", "x"]);
        check("xsize", target, &["30", "600"], &["29", "601", ""]);
        check("kilo", target, &["0", "1024"], &["1.5", ""]);
        check("nohc", target, &["yes", "NO"], &["", "1"]);
        check("setenv", target, &["A=\"b\" C=\"d e\""], &["", "A=b"]);
        check("interval", Scope::Global, &["5", "0:10", "5.5", "60", "-1"], &["0", "0.5", "61", "x"]);
        check("refresh", Scope::Global, &["300"], &["299", "yes"]);
        check("snmpoptions", Scope::Global, &["a => 1, b => 'x'"], &["x y", "yes"]);
        let said = find("maxbytes2", target).unwrap().check("0").unwrap_err();
        assert_eq!(said, "0 must a number bigger than 0");
    }
}
