//! Masks: numbers that two sites share and nobody else knows. One adds them to its answer, the other takes them
//! away, so that they are gone from the sum over all sites and from nothing less (Bonawitz and others, 2017, without
//! their shares of seeds: where rounds are files, a round among those who are left is cheap, and shares would let the
//! one who asks unmask a site that is only late).
//!
//! Every pair has a secret by X25519, of the keys that they sign with; for every question file it makes a stream of
//! its own. The site whose name is first in the alphabet adds: a number that the one who asks hands out would let
//! them turn a sign between two questions.

use super::exchange::Context;
use super::key::Key;
use super::message::{hex, sha256, unhex};
use crate::question::{Answer, Question, fixed};
use crate::{Error, Result};
use ed25519_dalek::VerifyingKey;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

/// Fewer sites than this hide nothing: of two, each knows the other's answer from the sum.
const FEWEST: usize = 3;

/// A number under its masks.
pub(crate) type Hidden = [u8; 16];

impl Context {
    /// The sites whose answers are added up, by name, each with its public key: in an order that nobody chooses.
    pub(crate) fn circle(&self) -> std::result::Result<Vec<(String, String)>, String> {
        let (sites, active) = (&self.sites, &self.active);
        if self.keys.len() != sites.len() {
            return Err("it does not name the key of every site".into());
        }
        let entry = |&s: &u32| {
            let s = s as usize;
            Some((sites.get(s)?.clone(), self.keys[s].to_ascii_lowercase()))
        };
        let circle: Option<Vec<_>> = active.iter().map(entry).collect();
        let mut circle = circle.ok_or("it names sites that it does not have")?;
        circle.sort();
        check(&circle)?;
        Ok(circle)
    }
}

/// Whether sums over these sites, sorted by name, hide what each of them says.
fn check(circle: &[(String, String)]) -> std::result::Result<(), String> {
    let (sites, most) = (circle.len(), fixed::MOST_SHARDS);
    if sites < FEWEST {
        return Err(format!(
            "sums over {sites} site(s) hide nothing, {FEWEST} or more are needed for sums only"
        ));
    }
    if sites > most {
        return Err(format!("there are {sites} sites, and sums only are for {most} at most"));
    }
    for (i, (name, key)) in circle.iter().enumerate() {
        public(name, key)?;
        if let Some((other, _)) = circle[..i].iter().find(|(n, k)| n == name || k == key) {
            return Err(format!(
                "the sites `{other}` and `{name}` have one name or one key; every site needs its own"
            ));
        }
    }
    Ok(())
}

/// Whether sums over these sites, each with its public key, hide what each of them says.
pub(super) fn check_sites<'a>(
    sites: impl Iterator<Item = (&'a str, Option<&'a str>)>,
) -> std::result::Result<(), String> {
    let mut circle = Vec::new();
    for (name, key) in sites {
        let key = key.ok_or_else(|| {
            format!(
                "the key of `{name}` is not known; sums only need the keys of all sites (--keys)"
            )
        })?;
        circle.push((name.to_string(), key.to_ascii_lowercase()));
    }
    circle.sort();
    check(&circle)
}

/// A site's public key, which must be one with which a secret can be shared.
fn public(name: &str, key: &str) -> std::result::Result<VerifyingKey, String> {
    let key = unhex::<32>(key).and_then(|key| VerifyingKey::from_bytes(&key).ok());
    key.filter(|key| !key.is_weak())
        .ok_or_else(|| format!("the key of the site `{name}` is no key to share a secret with"))
}

/// One site's masks for one question file.
pub(crate) struct Masks {
    /// Per other site, whether this one adds, and what.
    pairs: Vec<(bool, ChaCha20Rng)>,
    /// What takes the place of answers that a sum must not tell.
    noise: ChaCha20Rng,
}

impl Masks {
    /// The masks of a site among these, for the question with this digest.
    pub fn new(
        site: &str,
        key: &Key,
        circle: &[(String, String)],
        run: &str,
        digest: &[u8; 32],
    ) -> Result<Masks> {
        let names: String = circle.iter().map(|(name, _)| format!("{name}\n")).collect();
        let scalar = key.0.to_scalar_bytes();
        let mut pairs = Vec::new();
        for (other, public_key) in circle.iter().filter(|(other, _)| other != site) {
            let their = public(other, public_key).map_err(Error::input)?;
            let shared = their.to_montgomery().mul_clamped(scalar).to_bytes();
            if shared == [0; 32] {
                return Err(Error::input(format!(
                    "the key of the site `{other}` is no key to share a secret with"
                )));
            }
            // Names of sites have no line ends, and all else has one length or is the last.
            let seed = sha256(&[
                b"consilience masks 1\n",
                &shared,
                digest,
                &(run.len() as u64).to_le_bytes(),
                run.as_bytes(),
                names.as_bytes(),
            ]);
            pairs.push((site < other.as_str(), ChaCha20Rng::from_seed(seed)));
        }
        let noise = ChaCha20Rng::from_seed(key.secret_for("noise", &hex(digest)));
        Ok(Masks { pairs, noise })
    }

    /// An answer under its masks. Those of one file come one after the other from the same streams.
    pub fn hide(&mut self, question: &Question, answer: &Answer) -> Result<Vec<Hidden>> {
        let layout = question.layout().ok_or_else(|| {
            Error::input(format!("answers to `{}` cannot be added up", question.kind()))
        })?;
        let noise = &mut self.noise;
        let mut numbers = fixed::encode(&layout, &answer.numbers(), &mut || next(noise))?;
        for (adds, stream) in &mut self.pairs {
            for x in &mut numbers {
                let mask = next(stream);
                *x = if *adds { x.wrapping_add(mask) } else { x.wrapping_sub(mask) };
            }
        }
        Ok(numbers.into_iter().map(u128::to_le_bytes).collect())
    }
}

fn next(stream: &mut ChaCha20Rng) -> u128 {
    u128::from(stream.next_u64()) | u128::from(stream.next_u64()) << 64
}

/// The sum of all sites' answers, of which none is known.
pub(super) fn reveal(question: &Question, hidden: &[Vec<Hidden>]) -> Result<Answer> {
    let wrong = || {
        let message = format!("the masked answers to `{}` do not fit it", question.kind());
        Error::numeric(message)
    };
    let layout = question.layout().ok_or_else(wrong)?;
    let mut sums = vec![0_u128; fixed::count(&layout)];
    for site in hidden {
        let numbers = site.iter().map(|x| u128::from_le_bytes(*x));
        sums.iter_mut().zip(numbers).for_each(|(sum, x)| *sum = sum.wrapping_add(x));
    }
    question.of_numbers(&fixed::decode(&layout, &sums)).ok_or_else(wrong)
}

/// Whether a file with these questions can be asked where only sums are told: what is no sum is about columns.
pub(super) fn only_sums(questions: &[Question]) -> std::result::Result<(), String> {
    let kept = |q: &&Question| q.layout().is_none() && !matches!(q, Question::Describe(_));
    match questions.iter().find(kept) {
        None => Ok(()),
        Some(q) => Err(format!(
            "it asks `{}`, whose answers are not added up, and this run is for sums only",
            q.kind()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::{Reply, check as check_replies};
    use super::*;
    use crate::math::{Matrix, stream};
    use crate::model::{Model, Prior, Share};
    use crate::question::{Cubic, Expand, Locate, Points, Weigh};
    use rand::RngExt;
    use std::sync::Arc;

    fn circle(keys: &[(&str, &Key)]) -> Vec<(String, String)> {
        keys.iter().map(|(name, key)| (name.to_string(), key.public())).collect()
    }

    #[test]
    fn masks_cancel_over_all_and_over_nothing_less() {
        let keys: Vec<Key> = (1..=4).map(|k| Key::new([k; 32])).collect();
        let names = ["a", "b", "c", "d"];
        let circle = circle(&names.into_iter().zip(&keys).collect::<Vec<_>>());
        let digest = [7; 32];
        let mask = |s: usize, run: &str, digest: &[u8; 32], circle: &[(String, String)]| {
            let mut masks = Masks::new(names[s], &keys[s], circle, run, digest).unwrap();
            masks.pairs.iter_mut().fold(0_u128, |sum, (adds, stream)| match adds {
                true => sum.wrapping_add(next(stream)),
                false => sum.wrapping_sub(next(stream)),
            })
        };
        let each: Vec<u128> = (0..4).map(|s| mask(s, "r", &digest, &circle)).collect();
        let sum = |of: &[u128]| of.iter().fold(0_u128, |sum, x| sum.wrapping_add(*x));
        assert_eq!(sum(&each), 0);
        for subset in 1..15_usize {
            let part: Vec<u128> =
                (0..4).filter(|s| subset >> s & 1 == 1).map(|s| each[s]).collect();
            assert_ne!(sum(&part), 0);
        }
        // Another question, run or list of sites has other masks.
        assert_ne!(mask(0, "r", &[8; 32], &circle), each[0]);
        assert_ne!(mask(0, "s", &digest, &circle), each[0]);
        assert_ne!(mask(0, "r", &digest, &circle[..3]), each[0]);
    }

    #[test]
    fn circles_that_hide_nothing_are_refused() {
        let keys: Vec<Key> = (1..=3).map(|k| Key::new([k; 32])).collect();
        let good = circle(&[("a", &keys[0]), ("b", &keys[1]), ("c", &keys[2])]);
        assert_eq!(check(&good), Ok(()));
        assert!(check(&good[..2]).unwrap_err().contains("hide nothing"));
        let twice = circle(&[("a", &keys[0]), ("b", &keys[1]), ("c", &keys[1])]);
        assert!(check(&twice).unwrap_err().contains("`b` and `c` have one name or one key"));
        // Points of order 1 and 4, and no point at all.
        let identity = format!("01{}", "00".repeat(31));
        for weak in [identity, "00".repeat(32), "zz".repeat(32)] {
            let mut bad = good.clone();
            bad[1].1 = weak;
            assert!(check(&bad).unwrap_err().contains("the key of the site `b`"));
            assert!(Masks::new("a", &keys[0], &bad, "r", &[0; 32]).is_err());
        }
        let unknown = [("a", None), ("b", Some("x"))];
        assert!(check_sites(unknown.into_iter()).unwrap_err().contains("key of `a`"));
    }

    /// Answers under masks, added up, are the answers added up without: of every kind, and where some are −∞.
    #[test]
    fn masked_sums_have_the_bits_of_plain_ones() {
        let keys: Vec<Key> = (1..=5).map(|k| Key::new([k; 32])).collect();
        let names = ["a", "b", "c", "d", "e"];
        let circle = circle(&names.into_iter().zip(&keys).collect::<Vec<_>>());
        let prior = |sd| Prior::Normal { mean: 0.0, sd };
        let model = Model::foreign("own", &[("u", prior(1e-3)), ("v", prior(40.0))]);
        let points = |rows: usize| {
            vec![Points {
                model: Arc::new(model.clone()),
                share: Share::Equal { shards: 5 },
                thetas: Arc::new(Matrix::zeros(rows, 2)),
                rule: None,
            }]
        };
        let questions: [Question; 4] = [
            Weigh(points(50)).into(),
            Expand(points(7)).into(),
            Cubic(points(1)).into(),
            Locate(points(1)).into(),
        ];
        let mut rng = stream(1, 0, 0, "masks");
        for round in 0..40 {
            let digest = [round; 32];
            let mut masks: Vec<Masks> = (0..5)
                .map(|s| Masks::new(names[s], &keys[s], &circle, "r", &digest).unwrap())
                .collect();
            for question in &questions {
                let layout = question.layout().unwrap();
                let (mut plain, mut hidden) = (Vec::new(), Vec::new());
                for masks in &mut masks {
                    // On the grid of every unit here.
                    let one = |_| rng.random_range(-1_000_000..1_000_000_i64) as f64 / 1024.0;
                    let mut numbers: Vec<f64> = (0..fixed::count(&layout)).map(one).collect();
                    let is_weigh = matches!(question, Question::Weigh(_));
                    if round % 2 == 1 && !matches!(question, Question::Locate(_)) {
                        let at = if is_weigh { rng.random_range(0..50) } else { 0 };
                        numbers[at] = f64::NEG_INFINITY;
                    }
                    let answer = question.of_numbers(&numbers).unwrap();
                    assert_eq!(question.accept(&answer), Ok(()));
                    assert_eq!(answer.numbers(), numbers);
                    hidden.push(masks.hide(question, &answer).unwrap());
                    plain.push(answer);
                }
                let replies = |k: usize| [Reply::Masked(hidden[k].clone())];
                assert_eq!(
                    check_replies(&replies(0), std::slice::from_ref(question), true),
                    Ok(())
                );
                let refused = |reply: Reply, sums: bool| {
                    check_replies(&[reply], std::slice::from_ref(question), sums).unwrap_err()
                };
                assert!(refused(Reply::Answer(plain[0].clone()), true).contains("without masks"));
                assert!(refused(Reply::Masked(hidden[0].clone()), false).contains("which is none"));
                let short = hidden[0][1..].to_vec();
                assert!(refused(Reply::Masked(short), true).contains("masked numbers"));
                let sum = reveal(question, &hidden).unwrap();
                let merged = question.merge(plain).unwrap().unwrap();
                let bits = |a: &Answer| a.numbers().iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&sum), bits(&merged));
                // With one of them missing it is noise.
                let part = reveal(question, &hidden[1..]).unwrap().numbers();
                assert!(part.iter().all(|x| x.abs() > 1e6 || x.is_infinite() || *x == 0.0));
            }
        }
    }
}
