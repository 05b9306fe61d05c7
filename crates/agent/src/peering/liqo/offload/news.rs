//! What keeps from something that is tried again and again: said when it begins, when it becomes something
//! else, and when it is over.

/// What is in the way now, if anything.
#[derive(Debug, Default)]
pub(super) struct Trouble(Option<String>);

/// What is to be said.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum News<'a> {
    /// This is in the way.
    Begun(&'a str),
    /// Nothing is any more.
    Over,
}

impl Trouble {
    /// Something is in the way, or nothing: what is to be said of that.
    pub(super) fn is(&mut self, now: Option<String>) -> Option<News<'_>> {
        if self.0 == now {
            return None;
        }
        self.0 = now;
        Some(self.0.as_deref().map_or(News::Over, News::Begun))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_said_once() {
        let mut trouble = Trouble::default();
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(trouble.is(None), None, "all was well");
        assert_eq!(trouble.is(some("forbidden")), Some(News::Begun("forbidden")));
        assert_eq!(trouble.is(some("forbidden")), None);
        assert_eq!(trouble.is(some("silent")), Some(News::Begun("silent")));
        assert_eq!(trouble.is(None), Some(News::Over));
        assert_eq!(trouble.is(None), None);
    }
}
