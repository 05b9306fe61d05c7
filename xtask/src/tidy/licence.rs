//! Whether a licence expression (SPDX, as crates write it) can be met with the licences that we
//! accept.

/// `expression` with `OR`, `AND`, `WITH`, parentheses, and the old `/` for `OR`; anything
/// unreadable is not accepted.
pub(crate) fn accepted(expression: &str, accept: &dyn Fn(&str) -> bool) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<_> = spaced.split_whitespace().collect();
    let mut reader = Reader { words: &words, accept };
    reader.either() == Some(true) && reader.words.is_empty()
}

struct Reader<'a> {
    words: &'a [&'a str],
    accept: &'a dyn Fn(&str) -> bool,
}

impl<'a> Reader<'a> {
    /// One or more alternatives.
    fn either(&mut self) -> Option<bool> {
        let mut met = self.both()?;
        while self.skip("OR") {
            met |= self.both()?;
        }
        Some(met)
    }

    /// One or more that hold together.
    fn both(&mut self) -> Option<bool> {
        let mut met = self.one()?;
        while self.skip("AND") {
            met &= self.one()?;
        }
        Some(met)
    }

    fn one(&mut self) -> Option<bool> {
        if self.skip("(") {
            let met = self.either()?;
            return self.skip(")").then_some(met);
        }
        let mut name = self.next()?.to_owned();
        if self.skip("WITH") {
            name = format!("{name} WITH {}", self.next()?);
        }
        Some((self.accept)(&name))
    }

    fn skip(&mut self, word: &str) -> bool {
        let is_next = self.words.first() == Some(&word);
        if is_next {
            self.words = &self.words[1..];
        }
        is_next
    }

    fn next(&mut self) -> Option<&'a str> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::accepted;

    fn met(expression: &str) -> bool {
        accepted(expression, &|name| {
            ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"].contains(&name)
        })
    }

    #[test]
    fn one_alternative_is_enough() {
        assert!(met("MIT") && met("GPL-3.0 OR MIT") && met("MIT/GPL-3.0"));
        assert!(!met("GPL-3.0"));
    }

    #[test]
    fn what_holds_together_must_all_be_accepted() {
        assert!(met("MIT AND Apache-2.0"));
        assert!(!met("(MIT OR Apache-2.0) AND Unicode-3.0"));
    }

    #[test]
    fn and_binds_closer_than_or() {
        assert!(met("GPL-3.0 AND ISC OR MIT"));
        assert!(!met("GPL-3.0 AND (ISC OR MIT)"));
    }

    #[test]
    fn an_exception_belongs_to_its_licence() {
        assert!(met("Apache-2.0 WITH LLVM-exception"));
        assert!(!met("MIT WITH LLVM-exception"));
    }

    #[test]
    fn what_cannot_be_read_is_not_accepted() {
        assert!(!met("") && !met("MIT OR") && !met("(MIT") && !met("MIT MIT"));
    }
}
