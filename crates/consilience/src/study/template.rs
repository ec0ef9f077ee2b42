//! A study to begin with, for data that have none.

mod columns;

use super::prior::Role;
use super::{Data, EvidenceOptions};
use crate::Result;
use crate::data::Table;
use crate::data::sentinel::Sentinels;
use crate::error::clip;
use crate::model::Family;
use columns::{OutcomeColumn, Profile, guess};
use std::fmt::Write;

/// Rows that make a shard of a size worth its while.
const ROWS_PER_SHARD: usize = 2000;

/// More shards than this are not set up unasked.
const MOST_SHARDS: usize = 50;

/// More coefficients than this are not put into a model unasked; fewer if there are few rows, since
/// the posterior of a model with more parameters than rows is hard to find one's way about in.
const MOST_COEFFICIENTS: usize = 50;

/// Rows that there should be for every coefficient.
const ROWS_PER_COEFFICIENT: usize = 3;

/// How wide the text is.
const WIDTH: usize = 98;

/// A study with comments that runs as it is: a model of all columns that can be predictors, and
/// one of none.
///
/// `path_text` is what the study says under `data.path`, and `outcome` the column on the left
/// side; it is guessed, and the study says so, if there is none.
///
/// ```
/// use consilience::data::{Column, Origin, Table};
/// use consilience::study::{Study, template};
///
/// let origin = Origin { rows: vec![(0, 2), (0, 3), (0, 4)], ..Origin::default() };
/// let columns = [("x", vec![0.5, 2.5, 0.5]), ("y", vec![0.0, 1.0, 0.0])];
/// let columns = columns.map(|(name, values)| (name.to_string(), Column::Number(values)));
/// let text = template(&Table::new(columns.into(), origin), "trial.csv", None)?;
///
/// let study = Study::from_toml(&text)?;
/// assert_eq!(study.models[0].formula, "y ~ scale(x)");
/// assert_eq!(study.models[1].formula, "y ~ 1");
/// # Ok::<(), consilience::Error>(())
/// ```
pub fn template(table: &Table, path_text: &str, outcome: Option<&str>) -> Result<String> {
    let data = Data { path: vec![path_text.to_string()], ..Data::default() };
    template_of(table, &data, outcome)
}

/// The same for data that are read in this way.
pub fn template_of(table: &Table, data: &Data, outcome: Option<&str>) -> Result<String> {
    let names: Vec<&str> = table.names().iter().map(String::as_str).collect();
    let (name, why) = match outcome {
        Some(name) => (name.to_string(), None),
        None => {
            let columns = names.iter().zip(table.columns());
            let profiles: Vec<_> = columns.map(|(&name, c)| (name, Profile::of(c))).collect();
            let (name, why) = guess(&profiles)?;
            (name, Some(why))
        }
    };
    let left = OutcomeColumn::of(&name, table.column(&name)?)?;
    let right = RightSide::choose(table, &name)?;

    let mut text = TemplateText::default();
    text.comment("A study for consilience: which of the models below do the data support, and how sure is that? It runs as it is. What stands behind a # is a comment, and every key but `path`, `formula` and `family` may be left out: the values here are the defaults unless a comment says otherwise.");
    text.data(data, table, right.rows);
    text.split(right.rows, table.origin().files.len());
    text.prior(left.family, right.terms.first().map(String::as_str));
    text.models(&name, why, &left, &right);
    text.evidence();
    Ok(text.0)
}

/// The right side of the larger model.
struct RightSide {
    terms: Vec<String>,
    /// The columns that are not in it, each with the reason.
    left_out: Vec<(String, String)>,
    /// The rows in which nothing that the models use is missing.
    rows: usize,
}

impl RightSide {
    /// All columns that can be predictors, on rows enough: a column that is missing in many rows
    /// costs more than it is worth, since models are compared on complete rows.
    fn choose(table: &Table, outcome: &str) -> Result<RightSide> {
        let left = table.column(outcome)?;
        let known: Vec<usize> = (0..table.rows()).filter(|&row| !left.is_missing(row)).collect();
        let mut right = RightSide { terms: Vec::new(), left_out: Vec::new(), rows: known.len() };
        let mut kept = Vec::new();
        let most = (known.len() / ROWS_PER_COEFFICIENT).clamp(3, MOST_COEFFICIENTS);
        let mut coefficients = 0;
        let columns = table.names().iter().zip(table.columns());
        for (name, column) in columns.filter(|(name, _)| *name != outcome) {
            match Profile::of(&column.select(&known)).term(name) {
                Err(reason) => right.leave_out(name, reason),
                Ok((_, more)) if coefficients + more > most => {
                    right.leave_out(
                        name,
                        format!(
                            "with it there are more than {most} coefficients, many for {} rows",
                            known.len()
                        ),
                    );
                }
                Ok((_, more)) => {
                    coefficients += more;
                    let missing = known.iter().filter(|&&row| column.is_missing(row)).count();
                    kept.push((name, column, missing));
                }
            }
        }
        // Every turn but the last leaves a column out, so this ends.
        loop {
            let is_complete = |row: &usize| !kept.iter().any(|(_, c, _)| c.is_missing(*row));
            let rows: Vec<usize> = known.iter().copied().filter(is_complete).collect();
            let varies = Profile::of(&left.select(&rows)).distinct() > 1;
            if 2 * rows.len() < known.len() || !varies {
                // There is one: without any column all known rows are complete.
                let most = (0..kept.len()).max_by_key(|&i| kept[i].2).unwrap_or(0);
                let (name, _, missing) = kept.remove(most);
                right.leave_out(name, format!("it is missing in {missing} rows"));
                continue;
            }
            right.rows = rows.len();
            right.terms.clear();
            let before = kept.len();
            kept.retain(|(name, column, _)| {
                // A column may be left with one value on the complete rows.
                match Profile::of(&column.select(&rows)).term(name) {
                    Ok((term, _)) => right.terms.push(term),
                    Err(reason) => {
                        right.leave_out(name, format!("{reason} (of those that are complete)"));
                        return false;
                    }
                }
                true
            });
            if kept.len() == before {
                return Ok(right);
            }
        }
    }

    fn leave_out(&mut self, name: &str, reason: String) {
        self.left_out.push((name.to_string(), reason));
    }
}

/// The study as it is written.
#[derive(Default)]
struct TemplateText(String);

impl TemplateText {
    fn line(&mut self, line: &str) {
        self.0 += line;
        self.0.push('\n');
    }

    fn head(&mut self, head: &str) {
        self.line("");
        self.line(head);
    }

    /// A comment, wrapped at spaces.
    fn comment(&mut self, text: &str) {
        self.hanging(text, "# ");
    }

    /// A comment all lines of which but the first begin with this.
    fn hanging(&mut self, text: &str, indent: &str) {
        let mut line = String::from("#");
        for word in text.split(' ') {
            if line.chars().count() + 1 + word.chars().count() > WIDTH && line.len() > 1 {
                self.line(&line);
                line = indent.trim_end_matches(' ').to_string();
                line += &" ".repeat(indent.len() - line.len() - 1);
            }
            line.push(' ');
            line += word;
        }
        self.line(&line);
    }

    fn data(&mut self, data: &Data, table: &Table, complete: usize) {
        let rows = table.rows();
        let path = data.path.first().map_or("", String::as_str);
        self.head("[data]");
        self.comment("Files of the endings .csv, .tsv, .txt (also with .gz), .parquet or .pq. Several of them: a pattern such as \"parts/*.csv\", or a list [\"a.csv\", \"b.csv\"]. Relative paths start from this file's folder.");
        self.line(&format!("path = {}", quoted(path)));
        let dropped = match rows - complete {
            0 => "Here that is none.".to_string(),
            some => format!("Here that is {some} of {rows}."),
        };
        self.comment(&format!(
            "Rows in which a value that a model uses is missing are left out (\"drop\") or refused with their place (\"error\"). {dropped}"
        ));
        self.line("missing = \"drop\"");
        self.line("# weights = \"count\"  # the column that says how often each row counts");
        self.line("# delimiter = \";\"    # where it should not be found out; \"tab\" for a tab, \"blanks\" for blanks");
        self.line("# comment = \"#\"      # lines that begin so are passed over; \"\" for none");
        let na: Vec<String> = data.na.iter().map(|word| quoted(word)).collect();
        match na.is_empty() {
            true => self.line(
                "# na = [\"-999\"]     # what stands for a missing value, beside NA and nothing",
            ),
            false => {
                self.comment(
                    "What stands for a missing value, beside NA and nothing: found among numbers.",
                );
                self.line(&format!("na = [{}]", na.join(", ")));
            }
        }
        self.maybe_missing(table, na);
        match data.decimal {
            ',' => {
                self.comment("Numbers have a comma before their decimals.");
                self.line("decimal = \",\"");
            }
            _ => {
                self.line("# decimal = \",\"      # what stands before decimals, if it is no point")
            }
        }
    }

    /// Numbers that may stand for missing values: only who knows the data knows.
    fn maybe_missing(&mut self, table: &Table, mut na: Vec<String>) {
        let known = na.len();
        for (name, column) in table.names().iter().zip(table.columns()) {
            let mut seen = Sentinels::default();
            seen.take(column);
            for (code, count) in seen.found() {
                let rows = if count == 1 { "row" } else { "rows" };
                self.comment(&format!(
                    "CHECK: `{}` is {code} in {count} {rows}, far from all of its other values.",
                    clip(name)
                ));
                let code = quoted(&code.to_string());
                if !na.contains(&code) {
                    na.push(code);
                }
            }
        }
        if na.len() > known {
            let instead = if known > 0 { " in the place of the one above" } else { "" };
            self.comment(&format!(
                "If that stands for missing values, take the # away from this line{instead}:"
            ));
            self.line(&format!("# na = [{}]", na.join(", ")));
        }
    }

    fn split(&mut self, rows: usize, files: usize) {
        let shards = (rows / ROWS_PER_SHARD).clamp(1, MOST_SHARDS);
        self.head("[split]");
        self.comment(&format!(
            "How many shards the rows are dealt out to. The models are the same however the rows are split, and so are their evidences with combine = \"exact\". Here it is a shard per {ROWS_PER_SHARD} rows, but no more than {MOST_SHARDS}; the default is 1."
        ));
        self.line(&format!("shards = {shards}"));
        let several = if files > 1 { " (there are several here)" } else { "" };
        self.comment(&format!(
            "What decides on a row's shard: \"random\"; \"outcome\" (by chance, but all shards get the same mix of outcomes); \"cluster\" (likewise, of outcomes and predictors); \"file\" (a shard per data file{several}); \"column:NAME\" (a shard per value of that column, a hospital for example). With the last two leave `shards` out."
        ));
        self.line("by = \"random\"");
        self.comment(
            "How the shards share the prior: \"equal\", or \"rows\" (by their numbers of rows).",
        );
        self.line("share = \"equal\"");
        self.comment("Another seed deals the rows out differently.");
        self.line("seed = 1");
    }

    fn prior(&mut self, family: Family, term: Option<&str>) {
        self.head("[prior]");
        self.comment(
            "Evidences depend on priors: choose them before the results are seen. They can be",
        );
        self.line(
            "#   \"normal(mean, sd)\", \"laplace(mean, scale)\", \"student_t(df, mean, scale)\",",
        );
        self.line(
            "#   \"cauchy(mean, scale)\", or \"fixed(value)\", which holds a parameter at a value.",
        );
        self.comment("Behind it, `per sd` makes the unit of a column its standard deviation, and that of a gaussian outcome likewise, so that it does not matter whether lengths are in metres or feet. These are the defaults; `consilience check` shows what they come to.");
        let default = Role::default_prior;
        self.line(&format!("coefficients = \"{}\"", default(Role::Coefficient)));
        self.line(&format!("intercept = \"{}\"", default(Role::Intercept)));
        for (owner, key, role, what) in [
            (
                Family::Gaussian,
                "log_sd",
                Role::LogSd,
                "log of the standard deviation in gaussian models",
            ),
            (
                Family::NegativeBinomial,
                "log_dispersion",
                Role::LogDispersion,
                "log of r in negative-binomial models (variance m + m^2/r)",
            ),
        ] {
            let mark = if owner == family { "" } else { "# " };
            self.line(&format!("{mark}{key} = \"{}\"  # {what}", default(role)));
        }
        self.comment("Others for the coefficients are \"jzs(medium)\" and \"g-prior(n)\", which bring flat priors of intercept and log_sd with them (gaussian, logistic, probit and poisson models), and \"normal(0, 0.5) * sigma per sd\", of effects in units of the residual sd (gaussian models): see docs/priors.md.");
        self.comment("For single parameters, or all those of a term; names as `consilience check` shows them:");
        self.line("# [prior.parameters]");
        let name = term.filter(|term| !term.contains(char::is_control)).unwrap_or("scale(x)");
        self.line(&format!("# {} = \"normal(0, 0.5) per sd\"", quoted(name)));
    }

    fn models(&mut self, name: &str, why: Option<&str>, left: &OutcomeColumn, right: &RightSide) {
        let name = clip(name);
        self.line("");
        match why {
            None => self.comment(&format!("The outcome is `{name}`. {}", left.remarks)),
            Some(why) => self.comment(&format!(
                "The outcome `{name}` was GUESSED {why}: check it, and if it is another, run `consilience init` with --outcome NAME. {}",
                left.remarks
            )),
        }
        self.line("#");
        self.comment("Formulas are R's: a + b, a:b, a * b, (a + b)^2, 0 for no intercept, . for all columns, I(x^2), log(x), poly(x, 2), factor(x), scale(x), offset(log(time)), `names with blanks`. All models must have the same left side.");
        if !right.left_out.is_empty() {
            self.line("#");
            self.comment("Columns that were left out, and why:");
            for (name, reason) in &right.left_out {
                self.hanging(&format!("  `{}`: {reason}.", clip(name)), "#     ");
            }
        }
        if right.terms.is_empty() {
            self.comment("No column is left as a predictor, so there is one model only.");
        } else {
            self.model("all predictors", &left.left, &right.terms, left.family);
            self.line(
                "# probability = 0.5  # prior probability; for all models or for none (then equal)",
            );
            self.line("# [model.prior]      # this model's own priors: keys as in [prior]");
        }
        self.model("intercept only", &left.left, &["1".to_string()], left.family);
    }

    fn model(&mut self, name: &str, left: &str, terms: &[String], family: Family) {
        self.head("[[model]]");
        self.line(&format!("name = {}", quoted(name)));
        let short = format!("{left} ~ {}", terms.join(" + "));
        let line = format!("formula = {}", quoted(&short));
        if line.chars().count() <= WIDTH {
            self.line(&line);
        } else {
            self.line("formula = \"\"\"");
            self.wrapped_formula(left, terms);
        }
        self.line(&format!("family = {}", quoted(family.name())));
    }

    /// A formula over several lines, its quotes closed.
    fn wrapped_formula(&mut self, left: &str, terms: &[String]) {
        let mut line = format!("{} ~", escaped(left));
        for (i, term) in terms.iter().enumerate() {
            let more = format!("{}{}", escaped(term), if i + 1 < terms.len() { " +" } else { "" });
            if line.chars().count() + 1 + more.chars().count() > WIDTH {
                self.line(&line);
                line = "   ".to_string();
            }
            line.push(' ');
            line += &more;
        }
        self.line(&format!("{line}\"\"\""));
    }

    fn evidence(&mut self) {
        let EvidenceOptions { local, combine, draws, se_target, rounds, seed, .. } =
            EvidenceOptions::default();
        self.head("[evidence]");
        self.comment("How the shards are combined: \"exact\" (a few rounds of questions to them) or \"normal\" (one round, which takes every shard's posterior as normal: right for large shards only).");
        self.line(&format!("combine = \"{combine}\""));
        self.comment("How a shard's own evidence is computed: \"importance\", \"nuts+warp3\", \"laplace\", \"none\", …, or \"auto\": not at all for \"exact\", which does not need it, and for \"normal\" by \"importance\" or, where that fails, \"nuts+warp3\".");
        self.line(&format!("local = \"{local}\""));
        self.comment("Draws are added until the standard error of a log evidence is this small, or there are so many draws, or so many rounds.");
        self.line(&format!("se_target = {se_target}"));
        self.line(&format!("draws = {draws}"));
        self.line(&format!("rounds = {rounds}"));
        self.comment("The same seed gives the same draws.");
        self.line(&format!("seed = {seed}"));
    }
}

/// A TOML string.
fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}

/// What stands in a TOML string between the quotes, of one line or of several.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}
