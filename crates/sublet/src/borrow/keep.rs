//! `sublet renew`, `resize`, `activate` and `acknowledge`: one reservation goes on, changed.

use anyhow::Result;
use sublet_core::id::{Generation, ReservationId};
use sublet_core::time::Span;
use sublet_wire::client::{Client, Error};
use sublet_wire::v1::{Renewal, Reservation, Resizing};

use super::Resources;
use crate::clock;
use crate::connect::{Answered, Connection};
use crate::output::{self, Output};

/// Which, and how it is shown.
#[derive(clap::Args)]
struct One {
    /// Which.
    id: ReservationId,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connection: Connection,
}

impl One {
    fn change(
        &self,
        act: impl AsyncFnOnce(Client, ReservationId) -> Result<Reservation, Error>,
    ) -> Result<()> {
        self.connection.answer(self.output.format, |client| async move {
            let reservation = act(client, self.id).await.answered()?;
            output::one(&reservation, self.output.format, clock::now(), &mut output::stdout())
        })
    }
}

/// For how long.
#[derive(clap::Args)]
pub(crate) struct RenewArgs {
    #[command(flatten)]
    one: One,
    /// How long from now, such as 2h; without it, as long as the operator lets it.
    #[arg(long, value_name = "SPAN")]
    duration: Option<Span>,
}

/// Lets it run for longer, or less long.
pub(crate) fn renew(args: &RenewArgs) -> Result<()> {
    let renewal = Renewal { duration: args.duration.map(|span| span.to_string()) };
    args.one.change(async |client, id| client.renew(id, &renewal).await)
}

/// To what.
#[derive(clap::Args)]
pub(crate) struct ResizeArgs {
    #[command(flatten)]
    one: One,
    #[command(flatten)]
    resources: Resources,
}

/// Changes its amounts.
pub(crate) fn resize(args: &ResizeArgs) -> Result<()> {
    let resizing = Resizing { requested_resources: args.resources.quantities() };
    args.one.change(async |client, id| client.resize(id, &resizing).await)
}

/// Which.
#[derive(clap::Args)]
pub(crate) struct ActivateArgs {
    #[command(flatten)]
    one: One,
}

/// The requester confirms use.
pub(crate) fn activate(args: &ActivateArgs) -> Result<()> {
    args.one.change(async |client, id| client.activate(id).await)
}

/// Which instruction.
#[derive(clap::Args)]
pub(crate) struct AcknowledgeArgs {
    #[command(flatten)]
    one: One,
    /// The number of the instruction that was carried out.
    #[arg(long, value_name = "NUMBER")]
    generation: u32,
}

/// The provider confirms an instruction.
pub(crate) fn acknowledge(args: &AcknowledgeArgs) -> Result<()> {
    let generation = Generation(args.generation);
    args.one.change(async |client, id| client.acknowledge(id, generation).await)
}
