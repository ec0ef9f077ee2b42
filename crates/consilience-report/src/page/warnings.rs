//! Warnings, the worst first; those that say the same of many shards in one entry.

use crate::Document;
use crate::document::{Level, Warning};
use crate::text::{counted, escape};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Warnings beyond this many entries are only counted.
const MOST: usize = 100;

/// Warnings that say the same: of one model, with one code, about shards.
type Group<'a> = Vec<(Option<&'a str>, &'a Warning)>;

fn grouped<'a>(all: &[(Option<&'a str>, &'a Warning)]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group> = Vec::new();
    let mut places: BTreeMap<(Level, Option<&str>, &str), usize> = BTreeMap::new();
    for &(model, warning) in all {
        let place = warning
            .shard
            .map(|_| *places.entry((warning.level, model, &warning.code)).or_insert(groups.len()));
        match place.and_then(|p| groups.get_mut(p)) {
            Some(group) => group.push((model, warning)),
            None => groups.push(vec![(model, warning)]),
        }
    }
    groups.sort_by_key(|g| g[0].1.level);
    groups
}

pub(super) fn html(document: &Document, all: &[(Option<&str>, &Warning)]) -> String {
    if all.is_empty() {
        return "<p class=\"fine\"><span class=\"level\">None.</span> Nothing was seen that speaks against these numbers.</p>\n".into();
    }
    let groups = grouped(all);
    let mut out = String::from("<ul class=\"warnings\">\n");
    for group in groups.iter().take(MOST) {
        let (model, first) = group[0];
        let (class, level) = match first.level {
            Level::Unreliable => ("unreliable", "Unreliable"),
            Level::Caution => ("caution", "Caution"),
            Level::Note => ("note", "Note"),
        };
        let _ = write!(out, "<li class=\"{class}\"><span class=\"level\">{level}</span> ");
        let subject = subject(document, model, group);
        let _ = writeln!(
            out,
            "{}{}. <em>{}.</em> <code class=\"small\">{}</code></li>",
            escape(&subject),
            escape(&super::html::shortened(first.message.trim_end_matches('.'))),
            escape(&super::html::shortened(&upper_first(first.advice.trim_end_matches('.')))),
            escape(&super::html::shortened(&first.code))
        );
    }
    out += "</ul>\n";
    if groups.len() > MOST {
        let _ = writeln!(
            out,
            "<p>And {} more.</p>",
            counted(groups.len() - MOST, "entry").replace("entrys", "entries")
        );
    }
    out
}

fn subject(document: &Document, model: Option<&str>, group: &Group) -> String {
    let mut subject = model.map(|m| format!("Model “{m}”")).unwrap_or_default();
    let name =
        |w: &Warning| w.shard.map(|s| document.shard(usize::try_from(s).unwrap_or(usize::MAX)));
    if let Some(shard) = name(group[0].1) {
        if !subject.is_empty() {
            subject += ", ";
        }
        if group.len() == 1 {
            subject += &shard;
        } else {
            let short = |w: &Warning| name(w).map(|n| n.trim_start_matches("shard ").to_string());
            let some: Vec<String> = group.iter().take(8).filter_map(|(_, w)| short(w)).collect();
            let more = if group.len() > 8 { ", …" } else { "" };
            let _ = write!(
                subject,
                "{} ({}{more}), the first",
                counted(group.len(), "shard"),
                some.join(", ")
            );
        }
    }
    if !subject.is_empty() {
        subject += ": ";
    }
    subject
}

/// The text with its first letter in upper case.
fn upper_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |c| c.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_come_first_and_the_same_of_many_shards_is_one() {
        let warning = |level, code: &str, shard| Warning {
            code: code.into(),
            level,
            shard,
            message: "m".into(),
            advice: "a".into(),
        };
        let mut warnings: Vec<Warning> =
            (0..12).map(|s| warning(Level::Note, "n", Some(s))).collect();
        warnings.push(warning(Level::Unreliable, "u", None));
        warnings.push(warning(Level::Caution, "c", None));
        warnings.push(warning(Level::Caution, "c", None));
        let all: Vec<_> = warnings.iter().map(|w| (Some("x"), w)).collect();
        let groups = grouped(&all);
        let codes: Vec<(&str, usize)> =
            groups.iter().map(|g| (g[0].1.code.as_str(), g.len())).collect();
        assert_eq!(codes, [("u", 1), ("c", 1), ("c", 1), ("n", 12)]);
    }
}
