//! Values that receipts write in hexadecimal.

use std::fmt;

use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::canonical::hex;

/// A real number by its IEEE 754 bits: 16 lowercase hex digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Bits(u64);

impl Bits {
    /// The number.
    pub fn value(self) -> f64 {
        f64::from_bits(self.0)
    }
}

impl From<f64> for Bits {
    fn from(value: f64) -> Self {
        Self(value.to_bits())
    }
}

/// The digits.
impl fmt::Display for Bits {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

impl fmt::Debug for Bits {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self} ({:?})", self.value())
    }
}

impl Serialize for Bits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Bits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = read_hex(deserializer, Some(8))?;
        Ok(Self(
            bytes
                .iter()
                .fold(0, |bits, byte| bits << 8 | u64::from(*byte)),
        ))
    }
}

/// A SHA-256: 64 lowercase hex digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sha256Hex(String);

impl Sha256Hex {
    /// Of the 32 bytes of a hash.
    pub fn of_hash(hash: &[u8; 32]) -> Self {
        Self(hex(hash))
    }

    /// Of anything.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(crate::canonical::sha256_hex(bytes))
    }

    /// Of digits, if they are 64 lowercase ones.
    pub fn of_digits(digits: &str) -> Option<Self> {
        (parse_hex(digits)?.len() == 32).then(|| Self(digits.to_owned()))
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Sha256Hex {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Sha256Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_hex(deserializer, Some(32)).map(|hash| Self(hex(&hash)))
    }
}

/// Bytes, two digits each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HexBytes(pub Vec<u8>);

impl Serialize for HexBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for HexBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_hex(deserializer, None).map(Self)
    }
}

fn read_hex<'de, D: Deserializer<'de>>(
    deserializer: D,
    num_bytes: Option<usize>,
) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let bytes = parse_hex(&text).filter(|bytes| num_bytes.is_none_or(|num| bytes.len() == num));
    bytes.ok_or_else(|| {
        let expected = match num_bytes {
            Some(num_bytes) => format!("{} lowercase hex digits", 2 * num_bytes),
            None => "pairs of lowercase hex digits".to_owned(),
        };
        Error::invalid_value(Unexpected::Str(&text), &expected.as_str())
    })
}

fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let pairs = text.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    });
    bytes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_sixteen_digits_and_nothing_else() {
        for value in [0.0, -0.0, -1.5, f64::NEG_INFINITY, f64::MIN_POSITIVE] {
            let text = serde_json::to_string(&Bits::from(value)).expect("written");
            let read: Bits = serde_json::from_str(&text).expect("read");
            assert_eq!(read.value().to_bits(), value.to_bits(), "{text}");
        }
        for text in [
            "\"3ff000000000000\"",
            "\"3FF0000000000000\"",
            "\"3ff00000000000000\"",
            "\"+3ff00000000000\"",
            "1",
        ] {
            assert!(serde_json::from_str::<Bits>(text).is_err(), "{text}");
        }
    }
}
