//! Vectors of SSE2, which every x86-64 CPU has, of AVX2 with FMA, and of AVX-512.
//!
//! Why the `unsafe` here is sound: an intrinsic may run only where the CPU has its instructions. SSE2's every x86-64 CPU
//! has, so that anybody may make the token [`Sse2`]. The others ([`Avx2`], [`Avx512`]) are made by `detect` alone, which
//! asks the CPU, and their vectors are made of a token or of other vectors alone. So wherever one of their methods
//! runs, the instructions exist. Loads and stores go through references to eight doubles and need no
//! alignment. (The methods carry no `target_feature` of their own: they are inlined into the
//! functions of `dispatch.rs` that do.)
#![allow(unsafe_code)]

mod avx2;
mod avx512;
mod sse2;

pub use avx2::Avx2;
pub use avx512::Avx512;
pub use sse2::Sse2;

/// 1.0 has these bits.
const ONE: i64 = 1023 << 52;
