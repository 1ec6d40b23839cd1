//! What becomes of each line of a configuration, and the RRDs it would make: `roundel mrtg --check`.

use serde::Serialize;

use super::agents::obstacle;
use super::config::{Config, Mention};
use super::keywords::{self, Scope, Treatment};
use super::plan::MrtgPlan;
use super::term::Term;

/// What becomes of a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Lines that have their effect.
    pub honoured: Vec<ReportLine>,
    /// Lines that say how graphs look.
    pub shown: Vec<ReportLine>,
    /// Lines without effect, each with why.
    pub not_honoured: Vec<ReportLine>,
    /// The RRDs it would make.
    pub rrds: Vec<ReportRrd>,
}

/// A line of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReportLine {
    /// The file as it was named.
    pub file: String,
    /// From 1.
    pub line: u32,
    /// `keyword` or `keyword[target]`.
    pub keyword: String,
    /// Why it has no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// An RRD that a configuration would make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReportRrd {
    /// Its name in the store.
    pub name: String,
    /// The target that feeds it.
    pub target: String,
    /// The arguments of `rrdcreate(1)` after the file name.
    pub create: Vec<String>,
}

impl Report {
    /// What becomes of `config`, whose plan is `plan`.
    pub fn new(config: &Config, plan: &MrtgPlan) -> Self {
        let mut report = Report::default();
        for mention in &config.mentions {
            report.add(mention);
        }
        if config.get("logformat").is_none_or(|format| !format.eq_ignore_ascii_case("rrdtool")) {
            let place = config.globals.get("logformat").map(|setting| &setting.place);
            let first = || config.mentions.first().map(|mention| &mention.place);
            if let Some(place) = place.or_else(first) {
                let why = "RRDs are made as with \"LogFormat: rrdtool\"; no .log files, pages and pictures";
                report.not_honoured.push(ReportLine {
                    file: place.file.to_string(),
                    line: place.line,
                    keyword: "logformat rateup".to_string(),
                    why: Some(why.to_string()),
                });
            }
        }
        for target in &plan.targets {
            let mut causes: Vec<String> = target.expression.as_ref().err().cloned().into_iter().collect();
            causes.extend(target.terms.iter().filter_map(|term| match &plan.terms[*term] {
                (text, Term::Unreadable(cause)) => Some(format!("{text}: {cause}")),
                (text, Term::Snmp(term)) => obstacle(term).map(|cause| format!("{text}: {cause}")),
                _ => None,
            }));
            if !causes.is_empty() {
                report.not_honoured.push(ReportLine {
                    file: target.place.file.to_string(),
                    line: target.place.line,
                    keyword: format!("target[{}]", target.name),
                    why: Some(format!("its values are unknown: {}", causes.join("; "))),
                });
            }
            let spec = plan.inventory.spec(target.rrd);
            let options = ["--step".to_string(), spec.step.to_string()];
            report.rrds.push(ReportRrd {
                name: String::from_utf8_lossy(plan.inventory.name(target.rrd)).into_owned(),
                target: target.name.clone(),
                create: options.into_iter().chain(spec.create_args()).collect(),
            });
        }
        report
    }

    fn add(&mut self, mention: &Mention) {
        let scope = if mention.target.is_some() { Scope::Target } else { Scope::Global };
        let treatment = match keywords::find(&mention.keyword, scope) {
            Some(keyword) => keyword.treatment,
            None => Treatment::NotHonoured("a front end's own keyword"),
        };
        let line = |why: Option<&str>| ReportLine {
            file: mention.place.file.to_string(),
            line: mention.place.line,
            keyword: match &mention.target {
                Some(target) => format!("{}[{target}]", mention.keyword),
                None => mention.keyword.to_string(),
            },
            why: why.map(str::to_string),
        };
        match treatment {
            Treatment::Honoured => self.honoured.push(line(None)),
            Treatment::Shown => self.shown.push(line(None)),
            Treatment::NotHonoured(why) => self.not_honoured.push(line(Some(why))),
        }
    }
}

/// For people.
impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lists =
            [("Honoured", &self.honoured), ("Only shown", &self.shown), ("Not honoured", &self.not_honoured)];
        for (heading, lines) in lists {
            writeln!(f, "{heading}: {}", if lines.is_empty() { "nothing" } else { "" }.trim_end())?;
            for ReportLine { file, line, keyword, why } in lines {
                let why = why.as_ref().map_or(String::new(), |why| format!(": {why}"));
                writeln!(f, "  {file}:{line}: {keyword}{why}")?;
            }
        }
        writeln!(f, "RRDs: {}", self.rrds.len())?;
        for ReportRrd { name, create, .. } in &self.rrds {
            writeln!(f, "  {name} {}", create.join(" "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mrtg::config;
    use crate::mrtg::plan::PlanContext;

    /// As cfgmaker writes it, with what is not honoured, too.
    #[test]
    fn each_line_is_in_one_list() {
        let text = "WorkDir: /w\nLanguage: danish\nTarget[r_2]: #eth0:public@r:::::2\nSnmpOptions[r_2]: timeout => 3\n\
                    MaxBytes[r_2]: 1250000\nTitle[r_2]: eth0 -- r\nPageTop[r_2]: <h1>eth0</h1>\n  <div>x</div>\n\
                    routers.cgi*Icon[r_2]: x\nTarget[x]: 1.3.6.1&1.3.6.2:p@h|Conv\nTitle[x]: x\nMaxBytes[x]: 1\n";
        let mut none = |_: &str| Err(String::new());
        let config = config::parse("x.cfg", text.as_bytes(), &mut none).unwrap();
        let report = Report::new(&config, &MrtgPlan::new(&config, &PlanContext::default()).unwrap());
        let keywords = |lines: &[ReportLine]| {
            lines.iter().map(|line| format!("{} {}", line.line, line.keyword)).collect::<Vec<_>>()
        };
        assert_eq!(
            keywords(&report.honoured),
            [
                "1 workdir",
                "3 target[r_2]",
                "4 snmpoptions[r_2]",
                "5 maxbytes[r_2]",
                "10 target[x]",
                "12 maxbytes[x]"
            ]
        );
        assert_eq!(keywords(&report.shown), ["6 title[r_2]", "7 pagetop[r_2]", "11 title[x]"]);
        assert_eq!(
            keywords(&report.not_honoured),
            ["2 language", "9 routers.cgi*icon[r_2]", "1 logformat rateup", "10 target[x]"]
        );
        assert_eq!(report.rrds[0].create[..3], ["--step", "300", "DS:ds0:COUNTER:600:0:1250000"]);
        let text = report.to_string();
        assert!(text.contains("  x.cfg:10: target[x]: its values are unknown:"), "{text}");
    }
}
