//! Keys with which sites sign their answers (ed25519).

use crate::run::{hex, unhex};
use crate::{Error, Place, Result};
use ed25519_dalek::SigningKey;
use std::path::Path;

/// A site's secret key.
pub struct Key(pub(super) SigningKey);

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
        let bytes = crate::run::load(path, 1 << 10)?;
        let text = String::from_utf8_lossy(&bytes);
        // That of zeros is known to all.
        let bytes = unhex(text.trim()).filter(|bytes| *bytes != [0; 32]);
        bytes.map(Key::new).ok_or_else(|| {
            let message =
                "this is no secret key: it is not 64 hexadecimal digits, or all of them are 0; `consilience keygen` makes one";
            Error::input_at(Place::file(path), message)
        })
    }

    /// The public key, by which others know the site's answers.
    pub fn public(&self) -> String {
        hex(self.0.verifying_key().as_bytes())
    }

    /// The secret key as its file holds it.
    pub fn secret(&self) -> String {
        hex(self.0.as_bytes())
    }
}
