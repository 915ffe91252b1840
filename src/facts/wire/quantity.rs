//! Counts of devices out of resource lists.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

/// A Kubernetes quantity in whole units, rounded up as `Quantity.Value()` does (apimachinery `pkg/api/resource`):
/// `4`, `1k`, `2Ki`, `1e3`, `1500m`. Negative ones are 0, too large ones the largest number; `None` for other text.
pub(super) fn whole_units(text: &str) -> Option<u64> {
    let text = text.trim();
    let (negative, digits) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    let end = digits.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(digits.len());
    let (number, suffix) = digits.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let (binary, exponent) = scale(suffix)?;
    if negative {
        return Some(0);
    }
    // More digits than this cannot be told apart after rounding up: only "is anything left" matters.
    let kept = &fraction[..fraction.len().min(18)];
    let lost = fraction[kept.len()..].bytes().any(|b| b != b'0');
    let all = format!("{whole}{kept}");
    let Ok(mantissa) = format!("0{all}").parse::<u128>() else { return Some(u64::MAX) };
    if mantissa == 0 {
        return Some(u64::from(lost));
    }
    let power = exponent - i32::try_from(kept.len()).ok()?;
    let ten = |power: u32| 10_u128.checked_pow(power);
    let value = mantissa.checked_mul(binary).and_then(|scaled| {
        if power >= 0 {
            scaled.checked_mul(ten(power.unsigned_abs())?)
        } else {
            Some(ten(power.unsigned_abs()).map_or(1, |divisor| scaled.div_ceil(divisor)))
        }
    });
    Some(value.and_then(|v| u64::try_from(v).ok()).unwrap_or(u64::MAX))
}

/// Binary factor and decimal exponent of a quantity's suffix.
fn scale(suffix: &str) -> Option<(u128, i32)> {
    Some(match suffix {
        "n" => (1, -9),
        "u" => (1, -6),
        "m" => (1, -3),
        "" => (1, 0),
        "k" => (1, 3),
        "M" => (1, 6),
        "G" => (1, 9),
        "T" => (1, 12),
        "P" => (1, 15),
        "E" => (1, 18),
        "Ki" => (1 << 10, 0),
        "Mi" => (1 << 20, 0),
        "Gi" => (1 << 30, 0),
        "Ti" => (1 << 40, 0),
        "Pi" => (1 << 50, 0),
        "Ei" => (1 << 60, 0),
        other => (1, other.strip_prefix(['e', 'E'])?.parse::<i32>().ok()?.clamp(-60, 60)),
    })
}

/// True for devices and other resources that are counted in whole units and not part of Kubernetes itself: the rule
/// of `IsExtendedResourceName` (Kubernetes `pkg/apis/core/v1/helper`).
fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/") && !name.starts_with("requests.")
}

/// The extended resources of a resource list, in units; CPU, memory, huge pages and the like are skipped.
#[derive(Debug, Clone, Default)]
pub(in crate::facts) struct Devices(pub(in crate::facts) BTreeMap<String, u64>);

impl<'de> Deserialize<'de> for Devices {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Extended;

        impl<'de> Visitor<'de> for Extended {
            type Value = Devices;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of resource names to quantities")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Devices, A::Error> {
                let mut devices = BTreeMap::new();
                while let Some(name) = map.next_key::<String>()? {
                    if is_extended(&name) {
                        let Units(units) = map.next_value()?;
                        devices.insert(name, units);
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(Devices(devices))
            }
        }

        deserializer.deserialize_map(Extended)
    }
}

/// A quantity as the API writes it: text, or a bare number.
struct Units(u64);

impl<'de> Deserialize<'de> for Units {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Quantity;

        impl Visitor<'_> for Quantity {
            type Value = Units;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity")
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Units, E> {
                Ok(Units(value))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Units, E> {
                Ok(Units(u64::try_from(value).unwrap_or(0)))
            }

            fn visit_str<E: Error>(self, value: &str) -> Result<Units, E> {
                whole_units(value).map(Units).ok_or_else(|| E::custom(format_args!("`{value}` is not a quantity")))
            }
        }

        deserializer.deserialize_any(Quantity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_count_whole_units() {
        for (text, units) in [
            ("0", 0),
            ("4", 4),
            ("+4", 4),
            ("-4", 0),
            ("1k", 1_000),
            ("110M", 110_000_000),
            ("2G", 2_000_000_000),
            ("1Ki", 1_024),
            ("3Mi", 3 << 20),
            ("1.5Ki", 1_536),
            ("0.5", 1),
            ("1500m", 2),
            ("1n", 1),
            ("1e3", 1_000),
            ("1E3", 1_000),
            ("12E", 12_000_000_000_000_000_000),
            ("100E", u64::MAX),
            ("16Ei", u64::MAX),
            (".5", 1),
            ("5.", 5),
            ("0.0000000000000000000001", 1),
            ("1e-50", 1),
            ("99999999999999999999999999999999999999999999", u64::MAX),
        ] {
            assert_eq!(whole_units(text), Some(units), "{text}");
        }
        for text in ["", "k", ".", "1..2", "1.2.3", "one", "1kk", "1K", "1e", "0x10"] {
            assert_eq!(whole_units(text), None, "{text}");
        }
    }

    #[test]
    fn only_extended_resources_are_devices() {
        let devices: Devices = serde_json::from_str(
            r#"{"cpu":"100m","memory":"1Gi","hugepages-2Mi":"4Mi","ephemeral-storage":"50M","nvidia.com/A100":"1",
                "devices.kubevirt.io/kvm":"1k","requests.nvidia.com/A100":"2","example.kubernetes.io/x":"3","a.b/c":7}"#,
        )
        .unwrap();
        let expected =
            [("a.b/c", 7), ("devices.kubevirt.io/kvm", 1_000), ("nvidia.com/A100", 1)].map(|(k, v)| (k.to_owned(), v));
        assert_eq!(devices.0, expected.into());
        assert!(serde_json::from_str::<Devices>(r#"{"nvidia.com/A100":"some"}"#).is_err());
    }
}
