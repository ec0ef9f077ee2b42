//! Keys with which sites sign their answers, and coordinators their questions (ed25519).

use super::message::{hex, load, sha256, unhex};
use crate::{Error, Place, Result};
use ed25519_dalek::SigningKey;
use std::path::Path;

/// A secret key.
pub struct Key(pub(crate) SigningKey);

impl std::fmt::Debug for Key {
    /// Says whose it is, and not what it is.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key({})", self.public())
    }
}

impl Key {
    /// The key that these random bytes make.
    pub fn new(random: [u8; 32]) -> Key {
        Key(SigningKey::from_bytes(&random))
    }

    /// Reads a key's file: 64 hexadecimal digits.
    pub fn read(path: &Path) -> Result<Key> {
        let bytes = load(path, 1 << 10)?;
        let text = String::from_utf8_lossy(&bytes);
        // That of zeros is known to all.
        let bytes = unhex(text.trim()).filter(|bytes| *bytes != [0; 32]);
        bytes.map(Key::new).ok_or_else(|| {
            let message =
                "this is no secret key: it is not 64 hexadecimal digits, or all of them are 0; `consilience keygen` makes one";
            Error::input_at(Place::file(path), message)
        })
    }

    /// Makes 32 bytes of it that nobody else can make, for one purpose and one run.
    pub(crate) fn secret_for(&self, purpose: &str, run: &str) -> [u8; 32] {
        sha256(&[b"consilience ", purpose.as_bytes(), b"\n", self.0.as_bytes(), run.as_bytes()])
    }

    /// The public key, by which others know what it signed.
    pub fn public(&self) -> String {
        hex(self.0.verifying_key().as_bytes())
    }

    /// The secret key as its file holds it.
    pub fn secret(&self) -> String {
        hex(self.0.as_bytes())
    }
}
