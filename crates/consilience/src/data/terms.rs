//! R's algebra of terms: from a formula to the list of its terms, in R's order.

use super::effects::Effects;
use super::expr::{Binary, Expr, Pairing};
use super::formula::{Formula, Right};
use crate::error::suggestion;
use crate::{Error, Result};
use std::collections::{HashMap, HashSet};

/// The most terms that a formula may have.
pub const MAX_TERMS: usize = 10_000;

/// The most products of two terms that are formed on the way there.
const MAX_PRODUCTS: usize = 5_000_000;

/// The terms of a formula.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    /// The left side.
    pub response: Expr,
    /// The variables that occur in terms, in order of appearance.
    pub variables: Vec<Expr>,
    /// The terms without the intercept: main effects first, then interactions of two, and so on.
    pub terms: Vec<Term>,
    /// Whether there is an intercept.
    pub intercept: bool,
    /// What stands inside `offset()`; all of them add up.
    pub offsets: Vec<Expr>,
    /// What varies between groups.
    pub effects: Option<Effects>,
}

/// A term: a variable or an interaction of several.
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    /// The numbers of its variables, ascending.
    pub variables: Vec<usize>,
    /// The variables' names joined by colons.
    pub label: String,
}

impl Terms {
    /// The columns that are needed, each once: the response's, the variables', the offsets'.
    pub fn columns(&self) -> Vec<String> {
        let mut found = self.response.columns();
        for expr in self.variables.iter().chain(&self.offsets) {
            expr.collect_columns(&mut found);
        }
        if let Some(effects) = &self.effects {
            effects.slope.iter().for_each(|slope| slope.collect_columns(&mut found));
            effects.group.collect_columns(&mut found);
        }
        found
    }

    /// Whether a variable of a term, if it is a factor, is coded by full dummies and not by
    /// contrasts: R's rule for a model with intercept. Contrasts do where the term without the
    /// variable is empty or is contained in a term before.
    pub(crate) fn full_dummies(&self, term: usize, variable: usize) -> bool {
        let rest: Vec<usize> =
            self.terms[term].variables.iter().copied().filter(|&v| v != variable).collect();
        let contained =
            |earlier: &Term| rest.iter().all(|v| earlier.variables.binary_search(v).is_ok());
        !rest.is_empty() && !self.terms[..term].iter().any(contained)
    }
}

impl Formula {
    /// The formula's terms. `.` stands for all of these columns but the response's and the
    /// excluded ones. Columns that the formula names must be among them all.
    pub fn terms(&self, all_columns: &[String], exclude: &[String]) -> Result<Terms> {
        let known: HashSet<&String> = all_columns.iter().collect();
        for column in self.columns_used().0 {
            if !known.contains(&column) {
                let known = suggestion(&column, all_columns.iter().map(String::as_str));
                let message = format!("there is no column `{column}`{known}");
                return Err(self.column_error(&column, message));
            }
        }
        let own = self.response_columns();
        let dot = all_columns.iter().filter(|c| !exclude.contains(c) && !own.contains(c));
        let mut encoder = Encoder {
            dot: dot.cloned().collect(),
            variables: Vec::new(),
            numbers: HashMap::new(),
            offsets: Vec::new(),
            effects: None,
            intercept: true,
            removing: false,
            products: 0,
        };
        let mut found = encoder.encode(self.right())?.into_sorted();
        // R's order: by the number of variables, else as they came (the sort is stable).
        found.sort_by_key(|term| term.len());

        let names: Vec<String> = encoder.variables.iter().map(Expr::to_string).collect();
        // Variables that are only taken away, as in `. - x`, need not be looked at.
        let mut used = vec![false; names.len()];
        found.iter().flatten().for_each(|&v| used[v as usize] = true);
        let mut renumbered = vec![0; names.len()];
        let mut next = 0;
        for (number, &used) in renumbered.iter_mut().zip(&used) {
            *number = next;
            next += usize::from(used);
        }
        let terms: Vec<Term> = found
            .iter()
            .map(|term| Term {
                variables: term.iter().map(|&v| renumbered[v as usize]).collect(),
                label: term
                    .iter()
                    .map(|&v| names[v as usize].as_str())
                    .collect::<Vec<_>>()
                    .join(":"),
            })
            .collect();
        let variables: Vec<Expr> = std::mem::take(&mut encoder.variables)
            .into_iter()
            .zip(used)
            .filter(|(_, used)| *used)
            .map(|(v, _)| v)
            .collect();
        let Encoder { offsets, effects, intercept, .. } = encoder;
        let terms = Terms {
            response: self.response().clone(),
            variables,
            terms,
            intercept,
            offsets,
            effects,
        };
        match terms.explains_itself() {
            None => Ok(terms),
            Some((column, part)) => Err(Error::input(format!(
                "in the formula {self}: the outcome {} also stands on the right side, as `{column}` in {part}, and would explain itself; remove it there",
                terms.response
            ))),
        }
    }
}

impl Terms {
    /// A column of the outcome on the right side, and the part in which it stands, if the outcome would explain itself
    /// by it. The number of trials is given and no outcome, and so is what a difference or a quotient is taken from: of
    /// `I(after - before)` either column may stand on the right side, but not both. Each number of an outcome of several
    /// is one by itself: of `Surv(end - start, died)` the start is given, and whether somebody died is not.
    fn explains_itself(&self) -> Option<(String, String)> {
        let slopes = self.effects.iter().flat_map(|effects| &effects.slope);
        let groups = self.effects.iter().map(|effects| &effects.group);
        let parts = self.variables.iter().chain(&self.offsets).chain(slopes).chain(groups);
        let mut used: Vec<(String, String)> = Vec::new();
        for part in parts {
            for column in part.columns() {
                if !used.iter().any(|(known, _)| *known == column) {
                    used.push((column, part.to_string()));
                }
            }
        }
        let is_used = |column: &String| used.iter().any(|(known, _)| known == column);
        let told = outcomes(&self.response);
        let told = told.into_iter().find(|own| !own.is_empty() && own.iter().all(is_used))?;
        used.into_iter().find(|(column, _)| told.contains(column))
    }
}

/// The columns of each number of an outcome that says something of it.
fn outcomes(response: &Expr) -> Vec<Vec<String>> {
    let Expr::Pairing(joint, first, second) = response else { return vec![response.columns()] };
    let mut all = match joint {
        Pairing::Trials => outcomes(first),
        _ => [outcomes(first), outcomes(second)].concat(),
    };
    if *joint == Pairing::Counts {
        // `cbind(dead, total - dead)`: that column says the total, which is the number of trials.
        for (rest, other) in [(first, second), (second, first)] {
            if let Expr::Binary(Binary::Subtract, total, taken) = rest.bare()
                && taken.bare() == other.bare()
            {
                let (total, other) = (total.columns(), other.columns());
                let given = |column: &String| total.contains(column) && !other.contains(column);
                all.iter_mut().for_each(|own| own.retain(|column| !given(column)));
            }
        }
    }
    all
}

/// A term on the way: its variables' numbers, ascending.
type Set = Vec<u32>;

/// A list of distinct terms in order of appearance.
#[derive(Default)]
struct List {
    terms: Vec<Option<Set>>,
    index: HashMap<Set, usize>,
}

impl List {
    fn add(&mut self, term: Set) -> Result<()> {
        if !self.index.contains_key(&term) {
            if self.index.len() >= MAX_TERMS {
                return Err(too_many());
            }
            self.index.insert(term.clone(), self.terms.len());
            self.terms.push(Some(term));
        }
        Ok(())
    }

    fn remove(&mut self, term: &Set) {
        if let Some(i) = self.index.remove(term) {
            self.terms[i] = None;
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Set> {
        self.terms.iter().flatten()
    }

    fn into_sorted(self) -> Vec<Set> {
        self.terms.into_iter().flatten().collect()
    }
}

fn too_many() -> Error {
    Error::input(format!(
        "the formula has more than {MAX_TERMS} terms; take a smaller power or name fewer columns"
    ))
}

struct Encoder {
    /// What `.` stands for.
    dot: Vec<String>,
    variables: Vec<Expr>,
    /// The variables' numbers; the key is their exact spelling.
    numbers: HashMap<String, u32>,
    offsets: Vec<Expr>,
    effects: Option<Effects>,
    intercept: bool,
    /// Inside something that is taken away, where `1` takes the intercept away.
    removing: bool,
    products: usize,
}

impl Encoder {
    fn variable(&mut self, expr: &Expr) -> Set {
        let next = self.variables.len() as u32;
        let number = *self.numbers.entry(format!("{expr:?}")).or_insert(next);
        if number == next {
            self.variables.push(expr.clone());
        }
        vec![number]
    }

    fn encode(&mut self, right: &Right) -> Result<List> {
        let mut list = List::default();
        match right {
            Right::One => self.intercept = !self.removing,
            Right::Zero => self.intercept = self.removing,
            Right::Dot => {
                for name in self.dot.clone() {
                    list.add(self.variable(&Expr::Column(name)))?;
                }
            }
            Right::Variable(expr) => list.add(self.variable(expr))?,
            Right::Offset(expr) => self.offsets.push(expr.clone()),
            Right::Effects(effects) => {
                if let Some(other) = &self.effects {
                    return Err(Error::input(format!(
                        "the formula has {other} and {effects}, and a model can have one random term only; leave one out, or take its group as a factor"
                    )));
                }
                self.effects = Some(effects.clone());
            }
            Right::Paren(inner) | Right::Signed(false, inner) => return self.encode(inner),
            Right::Signed(true, inner) => {
                self.remove(&mut list, inner)?;
            }
            Right::Sum(first, rest) => {
                list = self.encode(first)?;
                for (plus, summand) in rest {
                    if *plus {
                        for term in self.encode(summand)?.into_sorted() {
                            list.add(term)?;
                        }
                    } else {
                        self.remove(&mut list, summand)?;
                    }
                }
            }
            Right::Interact(left, right) => {
                let (left, right) = (self.encode(left)?, self.encode(right)?);
                self.multiply(&left, &right, &mut list)?;
            }
            Right::Cross(left, right) => {
                let (left, right) = (self.encode(left)?, self.encode(right)?);
                for term in left.iter().chain(right.iter()) {
                    list.add(term.clone())?;
                }
                self.multiply(&left, &right, &mut list)?;
            }
            Right::Power(inner, power) => {
                let base = self.encode(inner)?;
                list.terms.clone_from(&base.terms);
                list.index.clone_from(&base.index);
                for _ in 1..*power {
                    let mut raised = List::default();
                    self.multiply(&base, &list, &mut raised)?;
                    // Once nothing changes any more, higher powers change nothing either.
                    let settled = raised.iter().eq(list.iter());
                    list = raised;
                    if settled {
                        break;
                    }
                }
            }
        }
        Ok(list)
    }

    fn remove(&mut self, list: &mut List, right: &Right) -> Result<()> {
        self.removing = !self.removing;
        let removed = self.encode(right)?;
        self.removing = !self.removing;
        removed.iter().for_each(|term| list.remove(term));
        Ok(())
    }

    /// Every term of one list with every term of another.
    fn multiply(&mut self, left: &List, right: &List, product: &mut List) -> Result<()> {
        self.products += left.index.len() * right.index.len();
        if self.products > MAX_PRODUCTS {
            return Err(too_many());
        }
        for a in left.iter() {
            for b in right.iter() {
                let mut both = [a.as_slice(), b.as_slice()].concat();
                both.sort_unstable();
                both.dedup();
                product.add(both)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Terms {
        let all: Vec<String> = ["y", "a", "b", "c", "d", "w"].map(String::from).into();
        Formula::parse(text).unwrap().terms(&all, &["w".into()]).unwrap()
    }

    fn labels(text: &str) -> String {
        let terms = terms(text);
        let mut labels = vec![if terms.intercept { "1" } else { "0" }];
        labels.extend(terms.terms.iter().map(|t| t.label.as_str()));
        labels.join(" ")
    }

    #[test]
    fn the_algebra_is_r_s() {
        // As attr(terms(...), "term.labels") of R gives them.
        for (text, expected) in [
            ("y ~ a + b + a", "1 a b"),
            ("y ~ b:a + a", "1 a b:a"),
            ("y ~ a * b * c - a:b:c", "1 a b c a:b a:c b:c"),
            ("y ~ (a + b + c)^2 - a:b", "1 a b c a:c b:c"),
            ("y ~ (a + b + c)^50", "1 a b c a:b a:c b:c a:b:c"),
            ("y ~ 0 + a", "0 a"),
            ("y ~ a - 1", "0 a"),
            ("y ~ a - 1 + 1", "1 a"),
            ("y ~ 0 + a - 0", "1 a"),
            ("y ~ a - (b + 1)", "0 a"),
            ("y ~ -1 + a:b", "0 a:b"),
            ("y ~ .", "1 a b c d"),
            ("y ~ . - b", "1 a c d"),
            ("log(y) ~ a:.", "1 a a:b a:c a:d"),
            ("y ~ a + b - a + a", "1 b a"),
            ("y ~ a - b + b:a", "1 a a:b"),
            ("y ~ 1", "1"),
            ("y ~ 0", "0"),
        ] {
            assert_eq!(labels(text), expected, "{text}");
        }
    }

    #[test]
    fn variables_that_are_taken_away_are_not_needed() {
        let terms = terms("y ~ a + c - a + offset(log(d)) + offset(b)");
        assert_eq!(terms.variables, [Expr::Column("c".into())]);
        assert_eq!(terms.terms[0].variables, [0]);
        assert_eq!(terms.columns(), ["y", "c", "d", "b"]);
        assert_eq!(terms.offsets.len(), 2);
    }

    #[test]
    fn absurd_formulas_are_refused() {
        let all: Vec<String> = (0..200).map(|i| format!("x{i}")).chain(["y".into()]).collect();
        let error =
            |text: &str| Formula::parse(text).unwrap().terms(&all, &[]).unwrap_err().to_string();
        assert!(error("y ~ .^2").contains("more than 10000 terms"));
        assert!(error("y ~ .^50").contains("more than 10000 terms"));
        let thirteen = (0..13).map(|i| format!("x{i}")).collect::<Vec<_>>().join("*");
        assert!(error(&format!("y ~ ({thirteen})^2")).contains("more than 10000 terms"));
        let message = error("y ~ x1 + xx3");
        assert!(
            message.contains("at character 10") && message.contains("did you mean"),
            "{message}"
        );
    }

    #[test]
    fn outcomes_do_not_explain_themselves() {
        let all: Vec<String> = ["y", "s", "n", "x", "g", "t"].map(String::from).into();
        let terms = |text: &str| Formula::parse(text).unwrap().terms(&all, &[]);
        for (text, part) in [
            ("y ~ x + y", "`y` in y"),
            ("y ~ I(y^2)", "`y` in I(y^2)"),
            ("y ~ poly(y, 2)", "`y` in poly(y, 2)"),
            ("log(y) ~ x:y", "`y` in y"),
            ("g ~ I(g == \"yes\")", "`g` in I(g == \"yes\")"),
            ("factor(g) ~ g", "`g` in g"),
            ("ordered(g) ~ g", "`g` in g"),
            ("y ~ x + offset(log(y))", "`y` in log(y)"),
            ("y ~ x + (1 | y)", "`y` in y"),
            ("y ~ x + (y | g)", "`y` in y"),
            ("Surv(y, s) ~ y", "`y` in y"),
            ("Surv(y, s) ~ x + s", "`s` in s"),
            ("Surv(y, s, type = 'interval2') ~ s", "`s` in s"),
            ("cbind(s, n) ~ s", "`s` in s"),
            ("cbind(s, n) ~ n", "`n` in n"),
            ("s/trials(n) ~ n + s", "`s` in s"),
            ("I(s - n) ~ s + n", "`s` in s"),
            ("Surv(y - t, s) ~ t + y", "`t` in t"),
            ("Surv(y - t, s) ~ t + s", "`s` in s"),
            ("Surv(t, y - t, type = 'interval2') ~ t", "`t` in t"),
            ("Surv(y - t, n - t, s, type = 'interval') ~ x + t + s", "`s` in s"),
            ("cbind(s, n - s) ~ s", "`s` in s"),
            ("cbind(n - s, s) ~ n + s", "`s` in s"),
            ("cbind(I(n - s), s) ~ offset(log(n)) + s", "`s` in s"),
            ("cbind(s * n, (1 - s) * n) ~ n + s", "`n` in n"),
            ("I(n - s)/trials(n) ~ n + s", "`n` in n"),
        ] {
            let error = terms(text).map(|_| ()).unwrap_err().to_string();
            let right = format!("also stands on the right side, as {part}, and would");
            assert!(error.contains(&right), "{text}: {error}");
        }
        // What is given: trials, and what the outcome is a change from or a share of. And what is taken away again.
        for text in [
            "s/trials(n) ~ n",
            "I(n - s)/trials(n) ~ n",
            "I(s - n) ~ n",
            "I(s/n) ~ log(n)",
            "y ~ x + y - y",
            "y ~ .",
            "Surv(y - t, s) ~ t",
            "Surv(y - t, s == 2) ~ scale(y) + x",
            "Surv(y - t, n - t, type = 'interval2') ~ t",
            "Surv(y - t, n - t, s, type = 'interval') ~ t",
            "cbind(s, n - s) ~ log(n)",
            "cbind((n - s), s) ~ x + n",
            "cbind(s * n, (1 - s) * n) ~ n",
            "cbind(s + t, n - (s + t)) ~ n",
        ] {
            assert!(terms(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_formula_of_thousands_of_terms_is_fine() {
        let all: Vec<String> = (0..9000).map(|i| format!("x{i}")).chain(["y".into()]).collect();
        let text = format!("y ~ {}", all[..9000].join(" + "));
        assert_eq!(Formula::parse(&text).unwrap().terms(&all, &[]).unwrap().terms.len(), 9000);
    }
}
