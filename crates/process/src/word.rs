//! Labels of metrics: from small fixed sets, so that their number is known beforehand.

use std::fmt::{self, Write as _};

use prometheus_client::encoding::{EncodeLabelValue, LabelValueEncoder};

/// A value from a fixed set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Word(pub &'static str);

impl EncodeLabelValue for Word {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        encoder.write_str(self.0)
    }
}
