//! `sublet get candidates`: what every cluster is to a request, for operators.

use anyhow::Result;
use sublet_core::id::ClusterId;
use sublet_core::time::Time;
use sublet_wire::client::{Client, Page};
use sublet_wire::v1::{Candidate, CandidateRequest};

use super::{Look, clusters::limits};
use crate::borrow::Ask;
use crate::connect::Answered;
use crate::output::{Cell, Column, Row, or_dash, paint};

/// For what.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Who would ask.
    #[arg(long = "for", value_name = "CLUSTER")]
    requester: ClusterId,
    #[command(flatten)]
    ask: Ask,
    #[command(flatten)]
    look: Look,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let request = args.ask.request()?;
    let request = CandidateRequest { requester_id: args.requester.to_string(), request };
    let (look, request) = (&args.look, &request);
    look.answer(|client| async move { look.show(async || all(&client, request).await).await })
}

async fn all(client: &Client, request: &CandidateRequest) -> Result<Vec<Candidate>> {
    let mut page = Page::default();
    let mut found = Vec::new();
    loop {
        let list = client.candidates(request, &page).await.answered()?;
        found.extend(list.candidates);
        match list.next {
            Some(next) => page.after = Some(next),
            None => return Ok(found),
        }
    }
}

impl Row for Candidate {
    const COLUMNS: &'static [Column] = &[
        Column::new("CLUSTER"),
        Column::new("FITS"),
        Column::new("LEFT"),
        Column::new("PRICE"),
        Column::new("WHY NOT"),
        Column::new("SHORT OF"),
    ];

    fn cells(&self, _: Time) -> Vec<Cell> {
        let left = self.left.iter().map(|left| {
            let hundredths = left.hundredths_of_percent;
            format!("{}={}.{:02}%", left.resource, hundredths / 100, hundredths % 100)
        });
        let price = self.price.as_ref().map(|price| {
            let (whole, rest) = (price.micros / 1_000_000, price.micros % 1_000_000);
            format!("{whole}.{rest:06} {}", price.currency)
        });
        let fits = if self.fits { Cell::styled("yes", paint("Active")) } else { "no".into() };
        vec![
            self.cluster_id.as_str().into(),
            fits,
            or_dash(left.collect::<Vec<_>>().join(",")).into(),
            or_dash(price.unwrap_or_default()).into(),
            or_dash(self.text.as_deref().or(self.filter.as_deref()).unwrap_or_default()).into(),
            or_dash(self.short.as_ref().map(limits).unwrap_or_default()).into(),
        ]
    }

    fn name(&self) -> String {
        self.cluster_id.clone()
    }
}
