//! Answering a question file with rows that stay where they are.

use super::explain::too_many_columns;
use super::guard::{self, Inspected};
use super::masks::{Circle, not_twice};
use super::policy::{Cost, LogEntry, Policy};
use super::rows::RowsUsed;
use super::{OTHER, check_name};
use crate::data::read::find_files;
use crate::data::{Column, Table};
use crate::draft::file_hash;
use crate::engine::Silent;
use crate::model::observations;
use crate::plan::{Complete, Outline, Room, RowsOf, derive, doubt, read_complete};
use crate::question::Question;
use crate::run::{
    AnswerHeader, Key, QuestionFile, Reply, encode_answer, hex, sha256_hex, table_hash,
};
use crate::shard::Shard;
use crate::study::Study;
use crate::{Error, Level, Place, Result, Warning};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a site sends back.
#[derive(Debug)]
pub struct SiteAnswer {
    /// The answer file.
    pub bytes: Vec<u8>,
    /// What it says of itself.
    pub header: AnswerHeader,
    /// The line for the log; the time is still to be filled in.
    pub entry: LogEntry,
    /// What the site should know about its data.
    pub warnings: Vec<Warning>,
}

/// A question file, and the site that it came to.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The question file.
    pub question: &'a Path,
    /// The site's data: paths or patterns, seen from here.
    pub data: &'a [String],
    /// The site's name.
    pub site: &'a str,
    /// What it is willing to answer.
    pub policy: &'a Policy,
    /// What it has answered.
    pub log: &'a [LogEntry],
    /// The key that it signs with.
    pub key: Option<&'a Key>,
    /// The public keys of all sites by name, as this site knows them: for runs that tell only sums.
    pub keys: Option<&'a BTreeMap<String, String>>,
}

/// A question that a site may answer, and all that it needs for it.
#[derive(Debug)]
pub(super) struct Prepared {
    pub file: QuestionFile,
    pub outline: Outline,
    pub inspected: Vec<Inspected>,
    pub cost: Cost,
    /// The rows, rare levels merged.
    pub table: Table,
    /// The columns of which they were.
    pub merged: Vec<String>,
    /// The rows that lack a value.
    pub dropped: u64,
    index: usize,
    /// The sites with which it is added up, where only sums are told.
    circle: Option<Circle>,
    rows_used: RowsUsed,
    warnings: Vec<Warning>,
}

/// Reads a question and the site's rows, and refuses what is not the study's or what the policy forbids.
pub(super) fn prepare(asked: &Asked) -> Result<Prepared> {
    let Asked { question, data, site, policy, .. } = *asked;
    check_name(site)?;
    // A log is of one data set, whatever the site is called in a run: another name is no new budget.
    let log = asked.log;
    let file = QuestionFile::read(question)?;
    let wrong = |message: String| Error::input_at(Place::file(question), message);
    let Some(context) = file.context() else {
        return Err(wrong(
            "this question is for workers with the run directory: `consilience work DIR`".into(),
        ));
    };
    let study: Study = serde_json::from_str(&context.study)
        .map_err(|e| wrong(format!("the study in it is not sound: {e}")))?;
    if crate::run::study_hash(&study) != file.header.study {
        return Err(wrong("the study in it is not the one that its hash names".into()));
    }
    let Some(index) = context.sites.iter().position(|name| name == site) else {
        let known = crate::error::suggestion(site, context.sites.iter().map(String::as_str));
        return Err(wrong(format!("it is not for the site `{site}`{known}")));
    };
    if !context.active.contains(&(index as u32)) {
        return Err(wrong(format!("the site `{site}` is left out of it")));
    }
    let who = (file.header.run.as_deref().unwrap_or_default(), file.signer.as_deref());
    policy.allow(&file.header.study, who, file.questions(), context.sums, log)?;
    let circle = Circle::of(asked, &file)?;
    let outline = Outline::of_named_columns(study)?;
    let columns = outline.columns();
    if crate::run::schema_hash(columns.iter().map(String::as_str)) != file.header.schema {
        return Err(wrong("it does not ask about the columns of its study (schema)".into()));
    }
    let derived = derive(&outline, &context.learned, &context.scales, context.active.len());
    let derived = derived.map_err(|error| wrong(error.to_string()))?;
    derived.allows(file.questions()).map_err(|reason| {
        wrong(format!("{reason}: it was not made by this program from this study, or it was altered; nothing is answered"))
    })?;
    let files = find_files(Path::new(""), data)?;
    let Complete { data, dropped, warnings } =
        read_complete(&outline, &files, &Room::default(), RowsOf::Site, &Silent)?;
    let table = data.table()?;
    let rows = table.rows() as u64;
    if rows < policy.min_rows {
        return Err(at_data(
            &files,
            format!(
                "there are {rows} complete rows, and the policy's min_rows is {}; nothing is answered",
                policy.min_rows
            ),
        ));
    }
    let outcome: BTreeSet<String> =
        outline.formulas.iter().flat_map(|f| f.response_columns()).collect();
    let (table, merged) = merge_rare(&table, policy.min_rows, &outcome, &files)?;
    let effects = outline.terms.iter().filter_map(|terms| terms.effects.as_ref());
    for effects in effects {
        // Merged, several groups would be taken for one, and share an effect.
        if let Some(name) = effects.group.columns().iter().find(|name| merged.contains(*name)) {
            return Err(at_data(
                &files,
                format!(
                    "{effects}: groups of `{name}` have fewer rows than the policy's min_rows ({}); nothing is answered; take larger groups, or leave the random effects out",
                    policy.min_rows
                ),
            ));
        }
    }
    let hashes = files.iter().map(|path| file_hash(path)).collect::<Result<_>>()?;
    let counts = counts_of(&file, &table, outline.study.data.weights.as_deref())
        .map_err(|error| doubt(error, &outline.study))?;
    let counts = |row: usize| counts.as_ref().is_none_or(|counts| counts[row] > 0.0);
    let rows_used = RowsUsed::of(&table, counts, hashes);
    rows_used.apart(log, site, policy.min_rows)?;
    let mut cost = Cost::default();
    let mut inspected: Vec<Inspected> = Vec::new();
    for question in file.questions() {
        if let Question::Describe(describe) = question {
            guard::facts(&table, describe, policy)?;
        }
        for (family, recipe) in guard::designs(question) {
            let known = |seen: &Inspected| seen.family == family && seen.recipe == recipe;
            if !inspected.iter().any(known) {
                let found = guard::inspect(&table, family, &recipe, policy)
                    .map_err(|error| doubt(error, &outline.study))?;
                cost.designs.insert(guard::hash(&recipe));
                inspected.push(found);
            }
        }
        for points in question.points() {
            cost.points = cost.points.saturating_add(points.thetas.rows() as u64);
            let own = points.model.regression();
            let design = inspected.iter().find(|seen| {
                own.is_some_and(|r| r.family == seen.family && r.design == seen.recipe)
            });
            if let Some(design) = design {
                guard::within_reason(points, design, policy)?;
            }
        }
    }
    policy.afford((&file.header.question, site), &cost, log)?;
    if let Some(circle) = &circle {
        let own: Vec<LogEntry> = log.iter().filter(|entry| entry.site == site).cloned().collect();
        circle.apart(&file, &cost, policy, &own)?;
    }
    let dropped = dropped as u64;
    Ok(Prepared {
        file,
        outline,
        inspected,
        cost,
        table,
        merged,
        dropped,
        index,
        circle,
        rows_used,
        warnings,
    })
}

/// Answers a question file with the rows of a site.
///
/// The site derives what the study asks from the study itself, and refuses any other question; then it looks at the
/// finished design and at the points, and refuses what would show fewer rows than its policy has. Errors stay here.
pub fn answer(asked: &Asked) -> Result<SiteAnswer> {
    let Asked { site, policy, log, key, .. } = *asked;
    let Prepared {
        file,
        outline,
        cost,
        table,
        merged,
        dropped,
        index,
        circle,
        rows_used,
        mut warnings,
        ..
    } = prepare(asked)?;
    let rows = table.rows() as u64;
    let run = file.header.run.clone().unwrap_or_default();
    // Salted with what nobody else has: rows can be guessed, and a guess must not be confirmed.
    let commitment =
        key.map(|key| hex(&key.secret_for("rows", &format!("{run} {}", table_hash(&table)))[..16]));
    let shard = Shard::new(index, table);
    let masks = circle.as_ref().zip(key).map(|(circle, key)| circle.masks(site, key, &file));
    let mut masks = masks.transpose()?;
    let mut replies = Vec::new();
    for question in file.questions() {
        let mut answer = crate::run::answer_soundly(&shard, question)
            .map_err(|error| doubt(error, &outline.study))?;
        question.hush(&mut answer, &shard, site, policy.min_rows)?;
        if let Some(masks) = masks.as_mut().filter(|_| question.layout().is_some()) {
            let hidden = masks.hide(question, &answer);
            replies.push(Reply::Masked(hidden.map_err(|error| doubt(error, &outline.study))?));
            continue;
        }
        if let Some(columns) = too_many_columns(&answer, rows)
            && !warnings.iter().any(|w| w.code == "rows-given-away")
        {
            let message = format!(
                "{rows} rows answer with the sums of products of {columns} columns, which give the rows away up to a rotation"
            );
            let advice =
                "do not send it unless that is fine; max_columns in the policy guards against it";
            warnings.push(
                Warning::new(Level::Caution, "rows-given-away", message, advice).value(rows as f64),
            );
        }
        replies.push(Reply::Answer(answer));
    }
    // How many rows lack a value is told, but not that it is one or two.
    let told = if dropped == 0 { 0 } else { dropped.max(policy.min_rows) };
    let header = AnswerHeader {
        site: Some(site.to_string()),
        dropped: told,
        merged,
        commitment,
        ..AnswerHeader::to(&file.header, index, rows)
    };
    let masked = replies.iter().any(|reply| matches!(reply, Reply::Masked(_)));
    let bytes = encode_answer(&header, &replies, key.map(|key| &key.0));
    file.fits_into_an_answer(bytes.len())?;
    let entry = LogEntry {
        time: String::new(),
        site: site.to_string(),
        study: header.study.clone(),
        question: header.question.clone(),
        round: header.round,
        asks: header.asks.clone(),
        rows,
        run,
        coordinator: file.signer.clone().unwrap_or_default(),
        points: cost.points,
        designs: cost.designs.into_iter().collect(),
        rows_used: rows_used.shortened(log),
        sites: if masked { circle.map_or(Vec::new(), |circle| circle.names()) } else { Vec::new() },
        bytes: bytes.len() as u64,
        sha256: sha256_hex(&bytes),
    };
    if masked {
        not_twice(&entry, log)?;
    }
    Ok(SiteAnswer { bytes, header, entry, warnings })
}

/// How many observations each row is, by which it has a part in the answers; each is one if there is nothing. Facts about
/// columns go by the weights. Designs leave rows without trials out too, all alike: a study's models have one outcome.
fn counts_of(
    file: &QuestionFile,
    table: &Table,
    weights: Option<&str>,
) -> Result<Option<Vec<f64>>> {
    let design = file.questions().iter().find_map(|question| guard::designs(question).pop());
    if let Some((family, recipe)) = design {
        let outcome = recipe.part(&[]).design(table)?;
        return Ok(observations(family, &outcome).map(Cow::into_owned));
    }
    let weights = weights.map(|name| table.column(name)).transpose()?;
    Ok(weights.and_then(Column::numbers).map(Cow::into_owned))
}

fn at_data(files: &[PathBuf], message: String) -> Error {
    Error::input_at(files.first().map(Place::file).unwrap_or_default(), message)
}

/// Gives levels that fewer rows than this have a common name, in columns of words that are no
/// outcome. Also returns which columns those are.
fn merge_rare(
    table: &Table,
    min_rows: u64,
    outcome: &BTreeSet<String>,
    files: &[PathBuf],
) -> Result<(Table, Vec<String>)> {
    let (mut columns, mut merged) = (Vec::new(), Vec::new());
    for name in table.names() {
        let column = table.column(name)?;
        let Column::Text { codes, levels } = column else {
            columns.push((name.clone(), column.clone()));
            continue;
        };
        let mut rows = vec![0u64; levels.len()];
        codes.iter().for_each(|&code| rows[code as usize] += 1);
        let rare = rare_levels(levels, &rows, min_rows);
        if rare.is_empty() {
            columns.push((name.clone(), column.clone()));
            continue;
        }
        if outcome.contains(name) {
            return Err(at_data(
                files,
                format!(
                    "a class of the outcome `{name}` has fewer rows than the policy's min_rows ({min_rows}); nothing is answered"
                ),
            ));
        }
        let mut names: Vec<String> = levels.to_vec();
        names.push(OTHER.into());
        // Where a level has that name already, the rare ones join it.
        let other = names.iter().position(|n| n == OTHER).unwrap_or(levels.len()) as u32;
        if (other as usize) < levels.len() {
            names.pop();
        }
        let code = |&c: &u32| if rare.contains(&(c as usize)) { other } else { c };
        let codes = codes.iter().map(code).collect();
        columns.push((name.clone(), Column::Text { codes, levels: Arc::new(names) }));
        merged.push(name.clone());
    }
    Ok((Table::new(columns, table.origin().clone()), merged))
}

/// The levels that are merged: those with few rows, and the next rarest until all of them together
/// have enough.
fn rare_levels(levels: &[String], rows: &[u64], min_rows: u64) -> BTreeSet<usize> {
    let mut order: Vec<usize> = (0..levels.len()).filter(|&l| rows[l] > 0).collect();
    order.sort_by(|&a, &b| rows[a].cmp(&rows[b]).then_with(|| levels[a].cmp(&levels[b])));
    let other = levels.iter().position(|l| l == OTHER);
    let (mut rare, mut together) = (BTreeSet::new(), 0);
    for level in order {
        let joined = if rare.is_empty() || other.is_some_and(|o| rare.contains(&o)) {
            0
        } else {
            other.map_or(0, |o| rows[o])
        };
        if rows[level] >= min_rows && (rare.is_empty() || together + joined >= min_rows) {
            break;
        }
        rare.insert(level);
        together += rows[level];
    }
    rare
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_levels_are_merged_until_they_are_not_rare() {
        let names = |n: &[&str]| n.iter().map(|s| s.to_string()).collect::<Vec<_>>();
        let abc = names(&["a", "b", "c", "d"]);
        let rare = |rows: &[u64]| rare_levels(&abc, rows, 5).into_iter().collect::<Vec<_>>();
        assert_eq!(rare(&[5, 9, 7, 6]), [0usize; 0]);
        assert_eq!(rare(&[2, 9, 3, 6]), [0, 2]);
        // Two rows alone would still show who they are: the next rarest joins them.
        assert_eq!(rare(&[2, 9, 7, 6]), [0, 3]);
        assert_eq!(rare(&[0, 9, 7, 6]), [0usize; 0]);
        assert_eq!(rare(&[1, 1, 1, 1]), [0, 1, 2, 3]);
        let with = names(&["a", "other", "c"]);
        assert_eq!(rare_levels(&with, &[2, 9, 7], 5).into_iter().collect::<Vec<_>>(), [0]);
        assert_eq!(rare_levels(&with, &[2, 2, 7], 5).into_iter().collect::<Vec<_>>(), [0, 1, 2]);
    }
}
