//! What is asked of a shard, and what it answers: the only things that pass between the two.
//!
//! A kind of question is a type with one file of its own, which says all there is to say about it: what it
//! holds, what a shard answers, what is believed of neither, how answers of several shards become one, and
//! how both read in plain words. A new kind is a new file, and one more name in the list below.

mod augment;
mod checks;
pub(crate) mod cubic;
mod describe;
mod expand;
mod explore;
mod fit;
pub(crate) mod fixed;
mod locate;
mod moments;
mod points;
pub(crate) mod room;
mod statistics;
mod survey;
mod weigh;
mod wire;

pub use augment::Augment;
pub use checks::Fault;
pub use cubic::Cubic;
pub use describe::Describe;
pub use expand::Expand;
pub use explore::Explore;
pub use fit::{Fit, FitAnswer};
pub use fixed::Layout;
pub(crate) use locate::Climb;
pub use locate::Locate;
pub use points::Points;
pub use statistics::Statistics;
pub use survey::{Survey, SurveyAnswer};
pub use weigh::Weigh;

use crate::model::Model;
use crate::shard::Shard;
use crate::{Error, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::sync::Arc;

/// Something that passes between shards and the centre.
pub trait Message: Debug + Clone + PartialEq + Serialize + DeserializeOwned + Send + Sync {}

impl<T: Debug + Clone + PartialEq + Serialize + DeserializeOwned + Send + Sync> Message for T {}

/// A kind of question. It is the same for every shard and holds all that a shard needs beside its own rows.
pub trait Kind: Message {
    /// What it is called.
    const NAME: &'static str;

    /// What a shard answers.
    type Answer: Message;

    /// The models it is about.
    fn models(&self) -> Vec<&Arc<Model>>;

    /// Whether it can be put to rows at all, whoever made it. Reasons read on from the name of a file.
    fn check(&self) -> Fault;

    /// What a shard says to it.
    fn answer(&self, shard: &Shard) -> Result<Self::Answer>;

    /// Whether this can be an answer to it. No answer is taken on trust, wherever it is from.
    fn accept(&self, answer: &Self::Answer) -> Fault;

    /// The answers of several shards as one, where only that is needed of them.
    fn merge(&self, _answers: &[Self::Answer]) -> Option<Self::Answer> {
        None
    }

    /// How the numbers of its answers stand in line, where answers may be added up in fixed point: then a sum can be
    /// told without its terms. `None`: they may not.
    fn layout(&self) -> Option<Vec<Layout>> {
        None
    }

    /// An answer's numbers in that order, if it has one.
    fn numbers(_answer: &Self::Answer) -> Vec<f64> {
        Vec::new()
    }

    /// The answer that these numbers make, as many as the layout has.
    fn of_numbers(&self, _numbers: &[f64]) -> Option<Self::Answer> {
        None
    }

    /// What it wants to know, in plain words.
    fn explain(&self) -> String;

    /// What an answer tells, in plain words: whole lines.
    fn explain_answer(answer: &Self::Answer) -> String;

    /// The points that it asks about, if it does.
    fn points(&self) -> &[Points] {
        &[]
    }

    /// How many draws or points of one model it is about.
    fn draws(&self) -> u64 {
        0
    }

    /// At most how many bytes an answer takes beyond twice those of the question.
    fn largest_answer(&self) -> u64;

    /// The columns whose sums of products an answer holds.
    fn columns_told(_answer: &Self::Answer) -> usize {
        0
    }

    /// Takes out of a site's answer, which these rows gave, what it does not show, or refuses to answer where it cannot.
    fn hush(
        &self,
        _answer: &mut Self::Answer,
        _shard: &Shard,
        _site: &str,
        _min_rows: u64,
    ) -> Result<()> {
        Ok(())
    }

    /// Takes in another question of its kind, if one pass over the rows can serve both.
    fn join(&mut self, _other: &Self) -> bool {
        false
    }

    /// Takes that part out of an answer that belongs to the question of this number that it took in, itself
    /// counted.
    fn part(answer: &mut Self::Answer, _number: usize) -> Self::Answer {
        answer.clone()
    }
}

/// A kind in the list: it can be told from others.
pub trait Listed: Kind + Into<Question> {
    /// An answer of this kind; an error if it is of another.
    fn take(answer: Answer) -> Result<Self::Answer>;
}

macro_rules! kinds {
    ($($kind:ident: $about:literal),* $(,)?) => {
        /// A question of any kind.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum Question {
            $(#[doc = $about] $kind($kind)),*
        }

        /// A shard's answer to a question of the same name.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum Answer {
            $(#[doc = concat!("To ", stringify!($kind), ".")] $kind(Box<<$kind as Kind>::Answer>)),*
        }

        $(
            impl From<$kind> for Question {
                fn from(question: $kind) -> Question {
                    Question::$kind(question)
                }
            }

            impl Listed for $kind {
                fn take(answer: Answer) -> Result<<$kind as Kind>::Answer> {
                    match answer {
                        Answer::$kind(answer) => Ok(*answer),
                        _ => Err(Error::numeric(concat!("an answer is none to ", stringify!($kind)))),
                    }
                }
            }
        )*

        impl Question {
            /// What questions can be called.
            pub const KINDS: &'static [&'static str] = &[$($kind::NAME),*];

            /// What it is called: one of [`KINDS`](Self::KINDS).
            pub fn kind(&self) -> &'static str {
                match self { $(Question::$kind(_) => $kind::NAME),* }
            }

            /// The models it is about.
            pub fn models(&self) -> Vec<&Arc<Model>> {
                match self { $(Question::$kind(q) => q.models()),* }
            }

            /// Whether it can be put to rows at all, whoever made it.
            pub fn check(&self) -> Fault {
                match self { $(Question::$kind(q) => q.check()),* }
            }

            /// What a shard answers. Errors name the shard, and the model if there is but one.
            pub fn answer(&self, shard: &Shard) -> Result<Answer> {
                let answer = match self {
                    $(Question::$kind(q) => q.answer(shard).map(|a| Answer::$kind(Box::new(a)))),*
                };
                answer.map_err(|error| self.blame(error).for_shard(shard.index()))
            }

            /// Whether this can be an answer to it at all, or why not.
            pub fn accept(&self, answer: &Answer) -> Fault {
                match (self, answer) {
                    $((Question::$kind(q), Answer::$kind(a)) => q.accept(a),)*
                    _ => Err(format!("it answers `{}` with something else", self.kind())),
                }
            }

            /// The answers of all shards as one, where their sum is all that is needed.
            pub fn merge(&self, answers: Vec<Answer>) -> Result<Option<Answer>> {
                match self {
                    $(Question::$kind(q) => {
                        let answers: Result<Vec<_>> = answers.into_iter().map($kind::take).collect();
                        Ok(q.merge(&answers?).map(|sum| Answer::$kind(Box::new(sum))))
                    }),*
                }
            }

            /// How the numbers of its answers stand in line, where they may be added up in fixed point.
            pub fn layout(&self) -> Option<Vec<Layout>> {
                match self { $(Question::$kind(q) => q.layout()),* }
            }

            /// The answer that these numbers make, as many as its layout has.
            pub(crate) fn of_numbers(&self, numbers: &[f64]) -> Option<Answer> {
                match self {
                    $(Question::$kind(q) => {
                        q.of_numbers(numbers).map(|a| Answer::$kind(Box::new(a)))
                    }),*
                }
            }

            /// What it wants to know, in plain words.
            pub fn explain(&self) -> String {
                match self { $(Question::$kind(q) => q.explain()),* }
            }

            /// The points that it asks about, model by model, if it does.
            pub fn points(&self) -> &[Points] {
                match self { $(Question::$kind(q) => q.points()),* }
            }

            /// How many draws or points it is about.
            pub fn draws(&self) -> u64 {
                match self { $(Question::$kind(q) => q.draws()),* }
            }

            /// At most how many bytes an answer takes.
            pub fn largest_answer(&self) -> u64 {
                let size = postcard::experimental::serialized_size(self).unwrap_or(0) as u64;
                2 * size + match self { $(Question::$kind(q) => q.largest_answer()),* }
            }

            /// Takes out of a site's answer what it does not show, or refuses to answer where it cannot.
            pub fn hush(
                &self,
                answer: &mut Answer,
                shard: &Shard,
                site: &str,
                min_rows: u64,
            ) -> Result<()> {
                match (self, answer) {
                    $((Question::$kind(q), Answer::$kind(a)) => q.hush(a, shard, site, min_rows),)*
                    _ => Ok(()),
                }
            }

            /// Takes in another question, if one pass over the rows can serve both.
            pub(crate) fn join(&mut self, other: &Question) -> bool {
                match (self, other) {
                    $((Question::$kind(q), Question::$kind(other)) => q.join(other),)*
                    _ => false,
                }
            }
        }

        impl Answer {
            /// What it tells, in plain words: whole lines.
            pub fn explain(&self) -> String {
                match self { $(Answer::$kind(a) => $kind::explain_answer(a)),* }
            }

            /// Its numbers, in the order of its question's layout.
            pub(crate) fn numbers(&self) -> Vec<f64> {
                match self { $(Answer::$kind(a) => $kind::numbers(a)),* }
            }

            /// The columns whose sums of products it holds.
            pub fn columns_told(&self) -> usize {
                match self { $(Answer::$kind(a) => $kind::columns_told(a)),* }
            }

            /// Takes that part out of it that belongs to the question of this number that was taken in.
            fn part(&mut self, number: usize) -> Answer {
                match self {
                    $(Answer::$kind(a) => Answer::$kind(Box::new($kind::part(a, number)))),*
                }
            }
        }
    };
}

kinds! {
    Describe: "Facts about columns, from which all shards' common schema is made.",
    Statistics: "The sufficient statistics of Gaussian models.",
    Survey: "How a design looks on a shard.",
    Fit: "The shard's own evidence and moments.",
    Augment: "The same by Gibbs sampling, with conditionals of the parameters along the chain.",
    Locate: "Where the shard's own likelihoods are highest, and how they fall from there.",
    Cubic: "The log densities of models at a point, to third order.",
    Expand: "The log densities of models at a few points, to second order.",
    Weigh: "The log densities of models at many points.",
    Explore: "A space of models, explored by reversible jump.",
}

impl Question {
    /// An error that names the model, if the question is about one.
    fn blame(&self, error: Error) -> Error {
        match self.models()[..] {
            [model] => error.for_model(&model.name),
            _ => error,
        }
    }
}

impl Answer {
    /// An error unless this can be an answer to the question: the right kind and size, finite numbers,
    /// matrices that are what they must be.
    pub fn check(&self, question: &Question) -> Result<()> {
        question.accept(self).map_err(|reason| {
            let message = format!("the answer to `{}` is not sound: {reason}", question.kind());
            question.blame(Error::numeric(message))
        })
    }
}

/// What all shards say to a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Answers {
    /// One answer per shard, in their order.
    Each(Vec<Answer>),
    /// Their sum, from an engine that does not tell who said what.
    Sum(Answer),
}

/// A sum over shards, and what it is the sum of, where that is known.
pub type Summed<A> = (A, Option<Vec<A>>);

impl Answers {
    /// Every shard's answer of its own; an error where only their sum is known.
    pub fn each<K: Listed>(self) -> Result<Vec<K::Answer>> {
        match self {
            Answers::Each(answers) => answers.into_iter().map(K::take).collect(),
            Answers::Sum(_) => Err(Error::numeric(format!(
                "the answers of single shards to `{}` are needed, and only their sum is known here; use combine = \"exact\" without extras per shard",
                K::NAME
            ))),
        }
    }

    /// The sum over all shards, and the single answers where they are known.
    pub fn sum<K: Listed>(self, question: &K) -> Result<Summed<K::Answer>> {
        match self {
            Answers::Sum(sum) => Ok((K::take(sum)?, None)),
            Answers::Each(answers) => {
                let each: Vec<K::Answer> =
                    answers.into_iter().map(K::take).collect::<Result<_>>()?;
                let sum = question.merge(&each).ok_or_else(|| {
                    Error::numeric(format!("answers to `{}` cannot be added up", K::NAME))
                })?;
                Ok((sum, Some(each)))
            }
        }
    }

    /// Takes those parts out that belong to the question of this number that was taken in.
    pub(crate) fn part(&mut self, number: usize) -> Answers {
        match self {
            Answers::Each(all) => Answers::Each(all.iter_mut().map(|a| a.part(number)).collect()),
            Answers::Sum(sum) => Answers::Sum(sum.part(number)),
        }
    }
}
