//! Filling a value in place from JSON, member by member.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::Trail;
use crate::limits::{LIST_MAX, NAMES_MAX};

/// What can be filled from JSON as Go fills it: what the text does not name stays as it is.
pub trait Fill {
    /// The most of these that are read in one list: what an item needs can be a hundred times as long
    /// as its text, so their number is bounded before they are made.
    const LISTED_MAX: usize = LIST_MAX;

    /// Reads one value into this place.
    fn fill<'de, D: Deserializer<'de>>(
        &mut self,
        reader: D,
        trail: &Trail<'_>,
    ) -> Result<(), D::Error>;
}

/// A place to read the next value into.
pub(crate) struct Place<'a, T: ?Sized>(pub(crate) &'a mut T, pub(crate) &'a Trail<'a>);

impl<'de, T: Fill + ?Sized> DeserializeSeed<'de> for Place<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        self.0.fill(reader, self.1).inspect_err(|_| self.1.note())
    }
}

/// A JSON object with known members.
pub(crate) trait Object {
    /// What its members are called.
    const NAMES: &'static [&'static str];

    /// Reads the value of the member `name`, which is one of [`Object::NAMES`].
    fn member<'de, A: MapAccess<'de>>(
        &mut self,
        name: &'static str,
        members: &mut A,
        trail: &Trail<'_>,
    ) -> Result<(), A::Error>;

    /// Reads the value of a member that has another name.
    fn other<'de, A: MapAccess<'de>>(
        &mut self,
        name: String,
        members: &mut A,
        trail: &Trail<'_>,
    ) -> Result<(), A::Error> {
        let _ = (name, trail);
        members.next_value::<IgnoredAny>().map(drop)
    }
}

/// Fills an object from `{…}`; `null` leaves it as it is.
pub(crate) fn fill_object<'de, T: Object, D: Deserializer<'de>>(
    object: &mut T,
    reader: D,
    trail: &Trail<'_>,
) -> Result<(), D::Error> {
    reader.deserialize_any(Members(object, trail))
}

struct Members<'a, T>(&'a mut T, &'a Trail<'a>);

impl<'de, T: Object> Visitor<'de> for Members<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(name) = members.next_key_seed(Known(T::NAMES))? {
            match name {
                Ok(name) => self.0.member(name, &mut members, self.1)?,
                Err(name) => self.0.other(name, &mut members, self.1)?,
            }
        }
        Ok(())
    }
}

/// Reads the name of a member and finds it among those that are known, or hands it out.
struct Known(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Known {
    type Value = Result<&'static str, String>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for Known {
    type Value = Result<&'static str, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a member")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        let exact = self.0.iter().find(|known| **known == name);
        let found = exact.or_else(|| self.0.iter().find(|known| folds_to(name, known)));
        Ok(found.copied().ok_or_else(|| name.to_owned()))
    }
}

/// Is `name` the same as `known`, which is ASCII, in any case? Beside the capital letters, Unicode
/// folds the long s and the Kelvin sign to ASCII letters, and so does Go.
fn folds_to(name: &str, known: &str) -> bool {
    let folded = name.chars().map(|letter| match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        letter => letter.to_ascii_lowercase(),
    });
    folded.eq(known.chars().map(|letter| letter.to_ascii_lowercase()))
}

/// Lists the members of an object by name and field, and how many of it a list may have if that is
/// not [`LIST_MAX`].
macro_rules! object {
    ($type:ty { $($name:literal => $field:ident),* $(,)? } $(, at most $most:expr)?) => {
        impl $crate::decode::Object for $type {
            const NAMES: &'static [&'static str] = &[$($name),*];

            fn member<'de, A: serde::de::MapAccess<'de>>(
                &mut self,
                name: &'static str,
                members: &mut A,
                trail: &$crate::decode::Trail<'_>,
            ) -> Result<(), A::Error> {
                let trail = trail.member(name);
                match name {
                    $($name => {
                        members.next_value_seed($crate::decode::Place(&mut self.$field, &trail))
                    })*
                    _ => Ok(()),
                }
            }
        }

        impl $crate::decode::Fill for $type {
            $(const LISTED_MAX: usize = $most;)?

            fn fill<'de, D: serde::Deserializer<'de>>(
                &mut self,
                reader: D,
                trail: &$crate::decode::Trail<'_>,
            ) -> Result<(), D::Error> {
                $crate::decode::fill_object(self, reader, trail)
            }
        }
    };
}
pub(crate) use object;

/// Types that are one JSON value without members; `null` leaves them as they are.
macro_rules! leaf {
    ($($type:ty),* $(,)?) => {
        $(impl $crate::decode::Fill for $type {
            fn fill<'de, D: serde::Deserializer<'de>>(
                &mut self,
                reader: D,
                _: &$crate::decode::Trail<'_>,
            ) -> Result<(), D::Error> {
                if let Some(value) = <Option<Self> as serde::Deserialize>::deserialize(reader)? {
                    *self = value;
                }
                Ok(())
            }
        })*
    };
}
pub(crate) use leaf;

leaf!(bool, i32, u32, u64, String);

impl<T: Fill + Default> Fill for Option<T> {
    fn fill<'de, D: Deserializer<'de>>(
        &mut self,
        reader: D,
        trail: &Trail<'_>,
    ) -> Result<(), D::Error> {
        reader.deserialize_option(Maybe(self, trail))
    }
}

struct Maybe<'a, T>(&'a mut Option<T>, &'a Trail<'a>);

impl<'de, T: Fill + Default> Visitor<'de> for Maybe<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or null")
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        self.visit_none()
    }

    fn visit_none<E>(self) -> Result<(), E> {
        *self.0 = None;
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        self.0.get_or_insert_default().fill(reader, self.1)
    }
}

impl<T: Fill + Default> Fill for Vec<T> {
    fn fill<'de, D: Deserializer<'de>>(
        &mut self,
        reader: D,
        trail: &Trail<'_>,
    ) -> Result<(), D::Error> {
        self.clear();
        reader.deserialize_any(Items(self, trail))
    }
}

struct Items<'a, T>(&'a mut Vec<T>, &'a Trail<'a>);

impl<'de, T: Fill + Default> Visitor<'de> for Items<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        loop {
            let mut item = T::default();
            let trail = self.1.index(self.0.len());
            match items.next_element_seed(Place(&mut item, &trail))? {
                Some(()) if self.0.len() < T::LISTED_MAX => self.0.push(item),
                Some(()) => return Err(self.1.too_many(T::LISTED_MAX)),
                None => return Ok(()),
            }
        }
    }
}

impl<T> Fill for BTreeMap<String, T>
where
    T: for<'a> Deserialize<'a>,
{
    fn fill<'de, D: Deserializer<'de>>(
        &mut self,
        reader: D,
        trail: &Trail<'_>,
    ) -> Result<(), D::Error> {
        reader.deserialize_any(Entries(self, trail))
    }
}

/// Adds one member whose name is free, unless there are too many.
pub(crate) fn add_named<T, E: de::Error>(
    names: &mut BTreeMap<String, T>,
    name: String,
    value: T,
    trail: &Trail<'_>,
) -> Result<(), E> {
    names.insert(name, value);
    if names.len() > NAMES_MAX { Err(trail.too_many(NAMES_MAX)) } else { Ok(()) }
}

struct Entries<'a, T>(&'a mut BTreeMap<String, T>, &'a Trail<'a>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        self.0.clear();
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        while let Some((name, value)) = entries.next_entry()? {
            add_named(self.0, name, value, self.1)?;
        }
        Ok(())
    }
}
