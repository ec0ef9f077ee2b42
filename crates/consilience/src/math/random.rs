//! Random streams: one for every seed and purpose, so that nothing depends on who asks first.

use rand::SeedableRng;

/// The generator behind every random number of this crate.
pub type Stream = rand_chacha::ChaCha12Rng;

/// The stream of this seed for one model, shard and purpose. Streams with different arguments are
/// independent; the same arguments give the same numbers everywhere.
pub fn stream(seed: u64, model: u64, shard: u64, purpose: &str) -> Stream {
    let mut key = [0u8; 32];
    for (slot, word) in key.chunks_exact_mut(8).zip([seed, model, shard, fingerprint(purpose)]) {
        slot.copy_from_slice(&word.to_le_bytes());
    }
    Stream::from_seed(key)
}

/// A stable 64-bit name of a text (FNV-1a): a model keeps its stream when others come or go.
pub fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
