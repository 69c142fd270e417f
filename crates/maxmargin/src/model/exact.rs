//! f64 in JSON, bit for bit: a number where JSON gives it back unchanged, else (infinities; what a parser rounds
//! wrongly) its shortest form as a string.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
pub(super) fn serialize<S: Serializer>(x: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    let back = serde_json::to_string(x).and_then(|text| serde_json::from_str::<f64>(&text));
    match back {
        Ok(back) if back.to_bits() == x.to_bits() => serializer.serialize_f64(*x),
        _ => serializer.collect_str(&format_args!("{x:?}")),
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Number(f64),
        Text(String),
    }
    match Written::deserialize(deserializer)? {
        Written::Number(x) => Ok(x),
        Written::Text(text) => text.parse().map_err(serde::de::Error::custom),
    }
}

/// The same for lists.
pub(super) mod list {
    use super::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Exact(#[serde(with = "super")] f64);

    pub(in super::super) fn serialize<S: Serializer>(list: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(list.iter().map(|&x| Exact(x)))
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
        Ok(Vec::<Exact>::deserialize(deserializer)?.into_iter().map(|x| x.0).collect())
    }
}
