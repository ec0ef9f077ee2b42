//! Which code runs: chosen once per set of rows, by what the CPU has.
#![allow(unsafe_code)]

use super::simd::{Cpu, Portable};
#[cfg(target_arch = "x86_64")]
use super::x86::{Avx2, Avx512};
use serde::{Deserialize, Serialize};

/// Whose instructions the hot loops use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Kernel {
    /// The best that the CPU has. One kind of CPU always gives the same bits; another may
    /// differ from it in the last ones.
    #[default]
    Auto,
    /// Plain ones: slower, and the same bits on every machine.
    Portable,
}

/// A way through the hot loops.
#[derive(Debug, Clone, Copy)]
pub enum Path {
    /// Plain Rust.
    Portable,
    /// AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// AVX-512F.
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
}

/// A loop over rows, written for any CPU. `run` has to be inlined, so that it is compiled with the
/// instructions that its CPU has.
pub trait Pass {
    /// What it computes.
    type Out;
    /// Computes it.
    fn run<C: Cpu>(self, cpu: C) -> Self::Out;
}

impl Path {
    /// The way that a choice leads to on this machine.
    pub fn of(kernel: Kernel) -> Path {
        match kernel {
            Kernel::Auto => Path::all().pop().unwrap_or(Path::Portable),
            Kernel::Portable => Path::Portable,
        }
    }

    /// The ways that this machine has, the best one last.
    pub fn all() -> Vec<Path> {
        #[allow(unused_mut)]
        let mut paths = vec![Path::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            paths.extend(Avx2::detect().map(Path::Avx2));
            paths.extend(Avx512::detect().map(Path::Avx512));
        }
        paths
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Path::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Path::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Path::Avx512(_) => "avx512",
        }
    }

    /// Runs a loop this way.
    pub fn run<W: Pass>(self, work: W) -> W::Out {
        match self {
            Path::Portable => work.run(Portable),
            // SAFETY: the token proves that the CPU has the instructions.
            #[cfg(target_arch = "x86_64")]
            Path::Avx2(cpu) => unsafe { avx2(cpu, work) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Path::Avx512(cpu) => unsafe { avx512(cpu, work) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2<W: Pass>(cpu: Avx2, work: W) -> W::Out {
    work.run(cpu)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn avx512<W: Pass>(cpu: Avx512, work: W) -> W::Out {
    work.run(cpu)
}
