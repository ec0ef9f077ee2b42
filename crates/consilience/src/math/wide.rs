//! Sums of products, exact: long numbers with a fixed point, and what is computed of them at the end.

/// Bits of a word that are filled; the rest of its 128 take up carries, of as many terms as there can be.
const BITS: u32 = 96;

/// Products of three doubles have no more digits of 32 bits.
const LONGEST: usize = 5;

/// A product of doubles without its rounding error: a whole number times a power of two.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Product {
    /// From the lowest on.
    digits: [u32; LONGEST],
    exponent: i32,
    negative: bool,
}

impl Product {
    /// The product of up to three finite doubles.
    pub fn of(factors: &[f64]) -> Product {
        debug_assert!(factors.len() <= 3 && factors.iter().all(|x| x.is_finite()));
        let mut product = Product { digits: [1, 0, 0, 0, 0], exponent: 0, negative: false };
        for x in factors {
            let (mantissa, exponent) = taken_apart(*x);
            product.exponent += exponent;
            product.negative ^= *x < 0.0;
            let mut out = [0u32; LONGEST];
            for (k, part) in [mantissa as u32, (mantissa >> 32) as u32].into_iter().enumerate() {
                let mut carry = 0u64;
                for (sum, digit) in out[k..].iter_mut().zip(product.digits) {
                    let all = u64::from(*sum) + u64::from(part) * u64::from(digit) + carry;
                    (*sum, carry) = (all as u32, all >> 32);
                }
            }
            product.digits = out;
        }
        product
    }

    /// Its highest bit stands for 2 to this power less 1; the least there is for 0.
    pub fn height(&self) -> i32 {
        match bits(&self.digits) {
            0 => i32::MIN,
            bits => self.exponent + bits as i32,
        }
    }

    /// Rounded to a multiple of 2 to this power, away from 0 where two are as near.
    pub fn rounded(mut self, step: i32) -> Product {
        let drop = step.saturating_sub(self.exponent);
        if drop <= 0 {
            return self;
        }
        let bit = |k: i32| {
            let digit = self.digits.get(k as usize / 32).copied().unwrap_or(0);
            u32::from(digit >> (k % 32) & 1 == 1)
        };
        let mut digits = [0; LONGEST];
        for k in 0..32 * LONGEST as i32 {
            let from = k.saturating_add(drop);
            if from < 32 * LONGEST as i32 {
                digits[k as usize / 32] |= bit(from) << (k % 32);
            }
        }
        let mut carry = drop - 1 < 32 * LONGEST as i32 && bit(drop - 1) == 1;
        for digit in &mut digits {
            (*digit, carry) = digit.overflowing_add(u32::from(carry));
        }
        (self.digits, self.exponent) = (digits, step);
        self
    }
}

/// A finite double as an odd number times a power of two; 0 as 0.
fn taken_apart(x: f64) -> (u64, i32) {
    let bits = x.to_bits();
    let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
    let (mantissa, exponent) = match exponent {
        0 => (fraction, -1074),
        _ => (fraction | 1 << 52, exponent - 1075),
    };
    let even = mantissa.trailing_zeros().min(63);
    (mantissa >> even, exponent + even as i32)
}

/// The lowest bit of a number that stands in so many words, as a power of two.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct WordPlace {
    /// The power.
    pub lowest: i32,
    /// The words.
    pub words: usize,
}

impl WordPlace {
    /// Adds a product that is a multiple of the lowest bit to the words; `None`, and nothing added, if it is not, or
    /// too large. Words of several numbers may be added up one by one.
    pub fn add(&self, words: &mut [i128], product: &Product) -> Option<()> {
        let used = bits(&product.digits);
        if used == 0 {
            return Some(());
        }
        let first = u32::try_from(product.exponent.checked_sub(self.lowest)?).ok()?;
        // One word is left for what sums grow by.
        if (first + used) as usize > (self.words - 1) * BITS as usize {
            return None;
        }
        for (k, digit) in product.digits.iter().enumerate().filter(|(_, digit)| **digit != 0) {
            let at = first + 32 * k as u32;
            let spread = u128::from(*digit) << (at % BITS);
            let word = (at / BITS) as usize;
            let (low, high) = ((spread & ((1 << BITS) - 1)) as i128, (spread >> BITS) as i128);
            let sign = if product.negative { -1 } else { 1 };
            words[word] += sign * low;
            if high != 0 {
                words[word + 1] += sign * high;
            }
        }
        Some(())
    }
}

/// A whole number: digits of 32 bits from the lowest on, the highest not 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Whole {
    digits: Vec<u32>,
    /// Whether it is below 0.
    pub negative: bool,
}

impl Whole {
    /// What words add up to, each with its place. Whatever they hold: carries that are lost at the end were no sum's.
    pub fn of_words(words: &[i128]) -> Whole {
        let carried = |sign: i128| {
            let (mut digits, mut carry) = (Vec::with_capacity(3 * words.len()), 0i128);
            for word in words {
                let all = word.wrapping_mul(sign).wrapping_add(carry);
                carry = all >> BITS;
                digits.extend((0..BITS / 32).map(|k| (all >> (32 * k)) as u32));
            }
            (digits, carry)
        };
        let (mut digits, carry) = carried(1);
        let negative = carry < 0;
        if negative {
            (digits, _) = carried(-1);
        }
        Whole::trimmed(digits, negative)
    }

    fn trimmed(mut digits: Vec<u32>, negative: bool) -> Whole {
        while digits.last() == Some(&0) {
            digits.pop();
        }
        Whole { negative: negative && !digits.is_empty(), digits }
    }

    /// Whether it is 0.
    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// The product.
    pub fn times(&self, other: &Whole) -> Whole {
        let mut out = vec![0u32; self.digits.len() + other.digits.len()];
        for (i, a) in self.digits.iter().enumerate().filter(|(_, a)| **a != 0) {
            let mut carry = 0u64;
            for (j, b) in other.digits.iter().enumerate() {
                let all = u64::from(out[i + j]) + u64::from(*a) * u64::from(*b) + carry;
                (out[i + j], carry) = (all as u32, all >> 32);
            }
            out[i + other.digits.len()] = carry as u32;
        }
        Whole::trimmed(out, self.negative != other.negative)
    }

    /// This less another, both without their signs; 0 where the other is more.
    pub fn less(mut self, other: &Whole) -> Whole {
        self.digits.resize(self.digits.len().max(other.digits.len()), 0);
        if !at_least(&self.digits, &other.digits) {
            return Whole::trimmed(Vec::new(), false);
        }
        take(&mut self.digits, &other.digits);
        Whole::trimmed(self.digits, false)
    }

    /// Whether it is at least 2 to this power times another, both without their signs.
    pub fn is_at_least(&self, power: u32, other: &Whole) -> bool {
        at_least(&self.digits, &shifted(&other.digits, power))
    }

    /// This over another, times 2 to this power, rounded once; 0 where the other is 0.
    pub fn over(&self, other: &Whole, power: i32) -> f64 {
        if self.is_zero() || other.is_zero() {
            return 0.0;
        }
        let (own, their) = (bits(&self.digits) as i32, bits(&other.digits) as i32);
        let mut rest = shifted(&self.digits, (their - own).max(0) as u32);
        let divisor = shifted(&other.digits, (own - their).max(0) as u32);
        rest.resize(rest.len().max(divisor.len()) + 1, 0);
        // Both have as many bits now, so that the quotient is between a half and 2: 65 bits or 66 of it.
        let mut quotient = 0u128;
        for _ in 0..66 {
            quotient <<= 1;
            if at_least(&rest, &divisor) {
                take(&mut rest, &divisor);
                quotient |= 1;
            }
            let mut carry = 0;
            for digit in &mut rest {
                (*digit, carry) = (*digit << 1 | carry, *digit >> 31);
            }
        }
        // What is left only says whether a half is more than a half.
        quotient |= u128::from(rest.iter().any(|digit| *digit != 0));
        let size = libm::ldexp(quotient as f64, own - their - 65 + power);
        if self.negative != other.negative { -size } else { size }
    }
}

/// How many bits a number has.
fn bits(digits: &[u32]) -> u32 {
    let top = digits.iter().rposition(|digit| *digit != 0);
    top.map_or(0, |k| 32 * k as u32 + 32 - digits[k].leading_zeros())
}

/// A number times a power of two.
fn shifted(digits: &[u32], by: u32) -> Vec<u32> {
    let mut out = vec![0; (by / 32) as usize];
    let mut carry = 0;
    for digit in digits {
        let wide = u64::from(*digit) << (by % 32) | carry;
        out.push(wide as u32);
        carry = wide >> 32;
    }
    if carry != 0 {
        out.push(carry as u32);
    }
    out
}

/// Whether a number is another or more.
fn at_least(one: &[u32], other: &[u32]) -> bool {
    let digit = |of: &[u32], k: usize| of.get(k).copied().unwrap_or(0);
    let longest = one.len().max(other.len());
    let differs = (0..longest).rev().find(|&k| digit(one, k) != digit(other, k));
    differs.is_none_or(|k| digit(one, k) > digit(other, k))
}

/// Takes a number away from one that is no less.
fn take(one: &mut [u32], other: &[u32]) {
    let mut borrowed = false;
    for (k, digit) in one.iter_mut().enumerate() {
        let (less, first) = digit.overflowing_sub(other.get(k).copied().unwrap_or(0));
        let (less, second) = less.overflowing_sub(u32::from(borrowed));
        (*digit, borrowed) = (less, first || second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::{ExactSum, stream};
    use rand::RngExt;

    const PLACE: WordPlace = WordPlace { lowest: -700, words: 14 };

    fn value(words: &[i128]) -> f64 {
        let one = Whole { digits: vec![1], negative: false };
        Whole::of_words(words).over(&one, PLACE.lowest)
    }

    /// Sums and quotients by long numbers, beside those of whole numbers of 128 bits and of the exact sum.
    #[test]
    fn sums_are_exact_and_quotients_are_rounded_once() {
        let mut rng = stream(1, 0, 0, "wide");
        for round in 0..300 {
            let (mut words, mut sum) = ([0i128; 14], ExactSum::default());
            for _ in 0..1 + round % 7 {
                let size = f64::from(rng.random_range(-60..60_i32));
                let x = rng.random_range(-1.0..1.0) * libm::exp2(size);
                PLACE.add(&mut words, &Product::of(&[x])).unwrap();
                sum.add(x);
            }
            assert_eq!(value(&words), sum.value());
            let (a, b) = (rng.random_range(1..u64::MAX), rng.random_range(1..u64::MAX));
            let (a, b) = (u128::from(a) * 977, u128::from(b >> (round % 50)));
            let whole =
                |x: u128| Whole::of_words(&[(x & ((1 << 96) - 1)) as i128, (x >> 96) as i128]);
            // a = qb + r, as the processor divides.
            let (q, r) = (a / b, a % b);
            let back = whole(q).times(&whole(b));
            assert_eq!(whole(a).less(&back), whole(r));
            assert!(whole(a).is_at_least(0, &back) && !back.is_at_least(1, &whole(a)));
            let near = whole(a).over(&whole(b), 0);
            assert!((near / (a as f64 / b as f64) - 1.0).abs() < 4e-16);
        }
        let whole = |x: i128| Whole::of_words(&[x]);
        assert_eq!(whole(1).over(&whole(3), 0), 1.0 / 3.0);
        assert_eq!(whole(-10).over(&whole(4), 1), -5.0);
        assert_eq!(whole(7).over(&whole(0), 0), 0.0);
        assert_eq!(whole((1 << 53) + 1).over(&whole(1), 0), 9_007_199_254_740_992.0);
    }

    #[test]
    fn products_have_no_rounding_error() {
        // (2⁵² + 1)³ has 157 bits.
        let x = 4_503_599_627_370_497.0;
        let cube = Product::of(&[x, -x, x]);
        assert_eq!((cube.height(), cube.negative), (157, true));
        let mut words = [0; 14];
        PLACE.add(&mut words, &cube).unwrap();
        // Less its three leading terms, it is −1: −(a³ + 3a² + 3a + 1).
        let a = x - 1.0;
        for terms in [[a, a, a], [3.0, a, a], [3.0, a, 1.0]] {
            PLACE.add(&mut words, &Product::of(&terms)).unwrap();
        }
        assert_eq!(value(&words), -1.0);
        assert_eq!(Product::of(&[0.75]).rounded(0), Product::of(&[1.0]).rounded(0));
        assert_eq!(Product::of(&[-2.5]).rounded(0), Product::of(&[-3.0]).rounded(0));
        assert_eq!(Product::of(&[0.3]).rounded(200).height(), i32::MIN);
        assert_eq!(Product::of(&[1.0, 0.0]).height(), i32::MIN);
    }

    #[test]
    fn what_has_no_place_is_not_added() {
        let mut words = [0; 14];
        for far in [1e300, 1e-300] {
            assert_eq!(PLACE.add(&mut words, &Product::of(&[far])), None);
        }
        assert_eq!(PLACE.add(&mut words, &Product::of(&[1e300]).rounded(0)), None);
        assert_eq!(words, [0; 14]);
        // Words that are no sum's, as false masks would leave them.
        let noise: Vec<i128> = (1..15).map(|k| i128::MAX / k * (1 - 2 * (k % 2))).collect();
        assert!(value(&noise).abs() > 0.0);
    }
}
