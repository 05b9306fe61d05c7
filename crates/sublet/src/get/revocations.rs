//! `sublet get revocations`: which certificates are not believed.

use anyhow::Result;
use sublet_core::time::Time;
use sublet_wire::v1::Revocation;

use super::Look;
use crate::connect::Answered;
use crate::output::{Cell, Column, Row, or_dash};

/// How.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    look: Look,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let look = &args.look;
    look.answer(|client| async move {
        look.show(async || Ok(client.revocations().await.answered()?.revocations)).await
    })
}

impl Row for Revocation {
    const COLUMNS: &'static [Column] =
        &[Column::new("CLUSTER"), Column::new("SERIAL"), Column::new("BY"), Column::new("WHY")];

    fn cells(&self, _: Time) -> Vec<Cell> {
        let cell = |text: &Option<String>| or_dash(text.as_deref().unwrap_or_default()).into();
        vec![cell(&self.cluster_id), cell(&self.serial), cell(&self.by), or_dash(&self.why).into()]
    }

    fn name(&self) -> String {
        self.cluster_id.clone().or_else(|| self.serial.clone()).unwrap_or_default()
    }
}
