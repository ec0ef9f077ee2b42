//! Facts about columns, from which all shards' common schema is made.

use super::Kind;
use super::checks::{Fault, ensure, finite, intervals_are_sound, numbers};
use crate::data::{Fact, Levels, Moments, Request, describe};
use crate::error::clip;
use crate::model::Model;
use crate::shard::Shard;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fmt::Write;
use std::sync::Arc;

/// Asks for facts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Describe {
    /// What is wanted.
    pub requests: Vec<Request>,
    /// The column of row weights.
    pub weights: Option<String>,
}

impl Kind for Describe {
    const NAME: &'static str = "describe";

    /// One fact per request.
    type Answer = Vec<Fact>;

    fn models(&self) -> Vec<&Arc<Model>> {
        Vec::new()
    }

    fn check(&self) -> Fault {
        let deep = |r: &Request| matches!(r, Request::Gram { degree, .. } if *degree > 1000);
        ensure(!self.requests.iter().any(deep), "it asks for polynomials of no sensible degree")?;
        let torn = |r: &Request| match r {
            Request::Column(_) => false,
            Request::Levels(expr) | Request::Moments(expr) | Request::Gram { expr, .. } => {
                !intervals_are_sound(expr)
            }
        };
        ensure(!self.requests.iter().any(torn), "it asks about intervals that are none")?;
        let mut known = HashSet::new();
        let text = |r: &Request| postcard::to_stdvec(r).unwrap_or_default();
        let twice = self.requests.iter().any(|r| !known.insert(text(r)));
        ensure(!twice, "it asks the same about a column twice")
    }

    fn answer(&self, shard: &Shard) -> Result<Vec<Fact>> {
        describe(shard.data(), self.weights.as_deref(), &self.requests)
    }

    fn accept(&self, answer: &Vec<Fact>) -> Fault {
        let (found, wanted) = (answer.len(), self.requests.len());
        if found != wanted {
            return Err(format!("it has {found} facts about {wanted} requests"));
        }
        self.requests.iter().zip(answer).try_for_each(|(request, found)| fact(request, found))
    }

    fn merge(&self, answers: &[Vec<Fact>]) -> Option<Vec<Fact>> {
        let (first, others) = answers.split_first()?;
        let one = |k: usize| {
            let mut rest = others.iter().map(|facts| facts[k].clone());
            rest.try_fold(first[k].clone(), Fact::merge).ok()
        };
        (0..self.requests.len()).map(one).collect()
    }

    fn explain(&self) -> String {
        let each = self.requests.iter().map(|request| format!("\n  {}", requested(request)));
        "describe: facts about columns".to_string() + &each.collect::<String>()
    }

    fn explain_answer(answer: &Vec<Fact>) -> String {
        answer.iter().map(told).collect()
    }

    fn largest_answer(&self) -> u64 {
        // A column of as many levels as there may be.
        const LEAST: u64 = 512 << 10;
        const LARGEST: u64 = 16 << 20;
        (LEAST * (1 + self.requests.len() as u64)).min(LARGEST)
    }

    /// File names stay at the site, and levels of numbers that too few rows have.
    fn hush(
        &self,
        answer: &mut Vec<Fact>,
        _shard: &Shard,
        site: &str,
        min_rows: u64,
    ) -> Result<()> {
        for (request, fact) in self.requests.iter().zip(answer) {
            match fact {
                Fact::Column(column) => {
                    if let Some(word) = &mut column.first_word {
                        word.place = format!("site {site}");
                    }
                    if min_rows > 1 {
                        blur(&mut column.numbers);
                    }
                    if column.levels.list.iter().any(|level| level.rows < min_rows) {
                        let subject = request.subject();
                        return Err(Error::input(format!(
                            "a value of `{subject}` has fewer rows than the policy's min_rows ({min_rows}); nothing is answered"
                        )));
                    }
                }
                Fact::Moments(moments) if min_rows > 1 => blur(moments),
                Fact::Gram(gram) if min_rows > 1 && !gram.enough => {
                    let subject = request.subject();
                    return Err(Error::input(format!(
                        "`{subject}` has no more distinct values here than its polynomials have degrees, and to say so would show them; nothing is answered"
                    )));
                }
                Fact::Levels(levels) if levels.list.iter().any(|level| level.rows < min_rows) => {
                    let Request::Levels(expr) = request else { continue };
                    return Err(Error::input(format!(
                        "a value of `{expr}` has fewer rows than the policy's min_rows ({min_rows}); nothing is answered; make the column one of words, whose rare values are merged; for a spline the study must name the knots, as in ns({expr}, knots = c(…))"
                    )));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Moves the least and the greatest value, which are somebody's, outward to round numbers.
fn blur(moments: &mut Moments) {
    let sd = moments.sd();
    if moments.min == moments.max || !(sd.is_finite() && sd > 0.0) {
        return;
    }
    let step = libm::pow(10.0, libm::floor(libm::log10(sd)));
    let (min, max) =
        (libm::floor(moments.min / step) * step, libm::ceil(moments.max / step) * step);
    if min.is_finite() && max.is_finite() {
        (moments.min, moments.max) = (min.min(moments.min), max.max(moments.max));
    }
}

fn fact(request: &Request, fact: &Fact) -> Fault {
    match (request, fact) {
        (Request::Column(_), Fact::Column(column)) => {
            moments(&column.numbers)?;
            levels(&column.levels)
        }
        (Request::Levels(_), Fact::Levels(found)) => levels(found),
        (Request::Moments(_), Fact::Moments(found)) => moments(found),
        (Request::Gram { degree, min, max, .. }, Fact::Gram(gram)) => {
            ensure(
                gram.sums.len() == 2 * *degree as usize + 1,
                "its sums of polynomials are too many or too few",
            )?;
            // Between numbers that far apart there are no polynomials, which the schema says better.
            ensure(
                finite(&gram.sums) && finite(&gram.distinct) || !(max - min).is_finite(),
                "its sums of polynomials are not finite",
            )
        }
        _ => Err("it states a fact of another kind than was asked for".into()),
    }
}

fn moments(found: &Moments) -> Fault {
    let Moments { weight, mean, m2, min, max, .. } = *found;
    // Sums of numbers as large as can be are infinite or none, and squares sooner. They need not be of
    // use, and what uses them says so with the column's name.
    let reach = min.abs().max(max.abs());
    let overflows = |sum: f64| !(8.0 * sum).is_finite();
    let finite = [weight, min, max].iter().all(|v| v.is_finite())
        && (mean.is_finite() || overflows(weight * reach))
        && (m2.is_finite() || overflows(weight * reach * reach));
    ensure(finite, "its column sums are not finite")?;
    let negative = weight < 0.0 || m2 < 0.0;
    ensure(!negative && min <= max, "its column sums contradict each other")
}

fn levels(found: &Levels) -> Fault {
    for pair in found.list.windows(2) {
        ensure(pair[0].name != pair[1].name, "it lists a level twice")?;
    }
    let fine = found.list.iter().all(|l| l.weight.is_finite() && l.weight >= 0.0);
    ensure(fine, "it counts a level's rows with a negative or infinite number")?;
    let mut numbers = found.list.iter().filter_map(|l| l.number);
    ensure(numbers.all(f64::is_finite), "one of its levels is a number that is not finite")
}

fn requested(request: &Request) -> String {
    match request {
        Request::Column(name) => format!(
            "column `{}`: how many rows are numbers and words, sums of the numbers, the distinct words with their rows, the first word",
            clip(name)
        ),
        Request::Levels(expr) => {
            format!("the distinct values of `{}` with their rows", clip(&expr.to_string()))
        }
        Request::Moments(expr) => format!(
            "`{}`: rows, mean, squared deviations, least and greatest value",
            clip(&expr.to_string())
        ),
        Request::Gram { expr, degree, .. } => {
            let expr = clip(&expr.to_string());
            format!("`{expr}`: sums of its polynomials up to degree {}", 2 * degree)
        }
    }
}

fn told(fact: &Fact) -> String {
    match fact {
        Fact::Column(column) => {
            let mut out = format!(
                "  a column: {} rows of words ({} of true or false), {} rows of numbers\n",
                column.words, column.logical, column.numbers.rows
            );
            if column.numbers.rows > 0 {
                out += &spread(&column.numbers);
            }
            out += &listed(&column.levels);
            if let Some(word) = &column.first_word {
                let (value, place) = (clip(&word.value), clip(&word.place));
                let _ = writeln!(out, "    its first word: `{value}` ({place})");
            }
            out
        }
        Fact::Levels(levels) => format!("  distinct values:\n{}", listed(levels)),
        Fact::Moments(moments) => format!("  a column's sums:\n{}", spread(moments)),
        Fact::Gram(gram) => format!(
            "  sums of polynomials: {}\n    single values, where there are few: {}\n",
            numbers(&gram.sums),
            numbers(&gram.distinct)
        ),
    }
}

fn spread(m: &Moments) -> String {
    format!(
        "    rows {}, weights {}, mean {}, squared deviations {}, least value {}, greatest value {}\n",
        m.rows, m.weight, m.mean, m.m2, m.min, m.max
    )
}

fn listed(levels: &Levels) -> String {
    let one = |level: &crate::data::LevelCount| {
        format!(
            "    level `{}`: {} rows, weights {}\n",
            clip(&level.name),
            level.rows,
            level.weight
        )
    };
    levels.list.iter().map(one).collect()
}
