//! What people see under `kubectl describe`: Kubernetes Events.

use kube::runtime::events::{Event, EventType};

/// The longest note that Kubernetes takes.
const NOTE_MAX: usize = 1024;

/// Something worth an Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) is_warning: bool,
    pub(crate) reason: &'static str,
    pub(crate) note: String,
}

impl Notice {
    pub(crate) fn normal(reason: &'static str, note: &str) -> Self {
        Self { is_warning: false, reason, note: cut(note, NOTE_MAX) }
    }

    pub(crate) fn warning(reason: &'static str, note: &str) -> Self {
        Self { is_warning: true, ..Self::normal(reason, note) }
    }

    pub(crate) fn event(self) -> Event {
        Event {
            type_: if self.is_warning { EventType::Warning } else { EventType::Normal },
            reason: self.reason.to_owned(),
            note: Some(self.note),
            action: "Reconcile".to_owned(),
            secondary: None,
        }
    }
}

/// At most so many bytes of a text.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text[..end.unwrap_or_default()].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("äö", 3), "ä");
        assert_eq!(cut("abc", 9), "abc");
        assert_eq!(cut("", 0), "");
    }
}
