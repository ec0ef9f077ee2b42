//! What a site looks at before it answers under masks: who the others are, and what it has answered before.

use super::answer::Asked;
use super::policy::{Cost, LogEntry, Policy, refuse};
use crate::run::{Key, Masks, QuestionFile};
use crate::{Error, Place, Result};
use std::collections::{BTreeMap, BTreeSet};

/// The sites of a question file for sums only, as this site knows them.
#[derive(Debug)]
pub(super) struct Circle(Vec<(String, String)>);

impl Circle {
    /// The sites among which a question's answers are added up; `None` where single answers are told. An error unless
    /// they are those that this site knows, by names and keys: whoever asks could invent sites and play them, and
    /// would then know all terms of a sum but one.
    pub fn of(asked: &Asked, file: &QuestionFile) -> Result<Option<Circle>> {
        let wrong = |message: String| Error::input_at(Place::file(asked.question), message);
        let summed = file.questions().iter().any(|q| q.layout().is_some());
        let study = &file.header.study;
        let Some(context) = file.context().filter(|context| context.sums) else {
            if asked.policy.sums_only && summed {
                return refuse(
                    "sums_only = true, and this run wants the answers of single sites; ask with --sums"
                        .into(),
                );
            }
            let masked = |entry: &LogEntry| entry.study == *study && !entry.sites.is_empty();
            if summed && asked.log.iter().any(masked) {
                return Err(wrong(
                    "this study was answered before in a run for sums only, and this run wants the site's own answer: nothing is answered"
                        .into(),
                ));
            }
            return Ok(None);
        };
        let circle = context.circle().map_err(wrong)?;
        let Some(known) = asked.keys else {
            return Err(wrong(
                "it is of a run for sums only: name the other sites' public keys with --keys FILE, from a source other than this question"
                    .into(),
            ));
        };
        let Some(key) = asked.key else {
            return Err(wrong(
                "it is of a run for sums only, whose answers are masked with the site's key: --key FILE"
                    .into(),
            ));
        };
        for (name, stated) in &circle {
            match known.get(name) {
                None => {
                    return Err(wrong(format!(
                        "the site `{name}` is not in the file of keys, so its word would be that of whoever asks: nothing is answered"
                    )));
                }
                Some(own) if !own.eq_ignore_ascii_case(stated) => {
                    return Err(wrong(format!(
                        "it names another key of the site `{name}` than the file of keys does: nothing is answered"
                    )));
                }
                _ => {}
            }
        }
        if !circle.iter().any(|(name, stated)| name == asked.site && *stated == key.public()) {
            return Err(wrong(format!(
                "the key of the site `{}` in it is not that of the secret key which is given",
                asked.site
            )));
        }
        Ok(Some(Circle(circle)))
    }

    /// The sites' names.
    pub fn names(&self) -> Vec<String> {
        self.0.iter().map(|(name, _)| name.clone()).collect()
    }

    /// This site's masks.
    pub fn masks(&self, site: &str, key: &Key, file: &QuestionFile) -> Result<Masks> {
        let run = file.header.run.as_deref().unwrap_or_default();
        Masks::new(site, key, &self.0, run, file.digest())
    }

    /// An error if sums over these sites, with those that this study or its designs were answered for before, would tell
    /// what one site said: sums over lists that differ by one site differ by its answer.
    pub fn apart(
        &self,
        file: &QuestionFile,
        cost: &Cost,
        policy: &Policy,
        log: &[LogEntry],
    ) -> Result<()> {
        if policy.allow_dropout || !file.questions().iter().any(|q| q.layout().is_some()) {
            return Ok(());
        }
        let own = self.names();
        // A study is easily made another: the designs tell that it asks the same.
        let alike = |entry: &&LogEntry| {
            entry.study == file.header.study
                || entry.designs.iter().any(|design| cost.designs.contains(design))
        };
        let before = log.iter().filter(alike).filter(|entry| !entry.sites.is_empty());
        let mut lists: BTreeSet<Vec<String>> = before.map(|entry| entry.sites.clone()).collect();
        if lists.contains(&own) {
            return Ok(());
        }
        lists.insert(own);
        let Some(single) = told_alone(&lists.into_iter().collect::<Vec<_>>()) else {
            return Ok(());
        };
        refuse(format!(
            "this study, or a design of it, was answered before for sums over other sites, and with sums over these the answers of `{single}` alone could be computed; leave out two or more at once, or set allow_dropout = true"
        ))
    }
}

/// A site whose own answers follow from sums over these lists of sites: one that is a combination of them. By
/// elimination modulo a prime.
fn told_alone(lists: &[Vec<String>]) -> Option<String> {
    const PRIME: u64 = (1 << 61) - 1;
    let times = |a: u64, b: u64| (u128::from(a) * u128::from(b) % u128::from(PRIME)) as u64;
    let inverse = |a: u64| {
        let (mut result, mut power, mut exponent) = (1, a, PRIME - 2);
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = times(result, power);
            }
            (power, exponent) = (times(power, power), exponent >> 1);
        }
        result
    };
    let names: BTreeSet<&String> = lists.iter().flatten().collect();
    let place: BTreeMap<&String, usize> = names.iter().enumerate().map(|(k, n)| (*n, k)).collect();
    let mut rows: Vec<Vec<u64>> = Vec::new();
    for list in lists {
        let mut row = vec![0; names.len()];
        list.iter().for_each(|name| row[place[name]] = 1);
        rows.push(row);
    }
    // Until every row has a 1 in a column where all others have 0: then a single site is a combination of rows
    // only if it is one of them.
    let mut done = 0;
    for column in 0..names.len() {
        let Some(pivot) = (done..rows.len()).find(|&r| rows[r][column] != 0) else { continue };
        rows.swap(done, pivot);
        let scale = inverse(rows[done][column]);
        rows[done].iter_mut().for_each(|x| *x = times(*x, scale));
        let own = rows[done].clone();
        for (r, row) in rows.iter_mut().enumerate() {
            let factor = PRIME - row[column];
            if r != done && factor != PRIME {
                row.iter_mut().zip(&own).for_each(|(x, y)| *x = (*x + times(factor, *y)) % PRIME);
            }
        }
        done += 1;
    }
    let alone = |row: &Vec<u64>| {
        let mut held = row.iter().enumerate().filter(|(_, x)| **x != 0);
        held.next().filter(|_| held.next().is_none()).map(|(k, _)| k)
    };
    let k = rows.iter().find_map(alone)?;
    names.into_iter().nth(k).cloned()
}

/// An error if this very question was answered before in another way: two answers under the same masks would tell
/// their difference.
pub(super) fn not_twice(entry: &LogEntry, log: &[LogEntry]) -> Result<()> {
    let other = |before: &&LogEntry| {
        before.question == entry.question
            && !before.sites.is_empty()
            && before.sha256 != entry.sha256
    };
    match log.iter().find(other) {
        None => Ok(()),
        Some(before) => Err(Error::input(format!(
            "this question was answered before under the same masks, and not the same ({} rows then, {} now): both answers together would tell what changed; nothing is answered, let the coordinator begin a new run",
            before.rows, entry.rows
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(text: &[&str]) -> Vec<Vec<String>> {
        text.iter().map(|list| list.chars().map(String::from).collect()).collect()
    }

    #[test]
    fn lists_of_sites_whose_sums_tell_one_site_are_found() {
        for (text, single) in [
            (&["abcd"][..], None),
            (&["abcd", "abc"], Some("d")),
            (&["abcde", "abc"], None),
            (&["abc", "abd"], None),
            // D and E of the first two, and then A.
            (&["abcde", "abc", "ade"], Some("a")),
            (&["abc", "abd", "acd", "bcd"], Some("a")),
            (&["abcdef", "abc"], None),
            (&["abcdef", "abc", "bcdef"], Some("a")),
        ] {
            assert_eq!(told_alone(&lists(text)).as_deref(), single, "{text:?}");
        }
    }
}
