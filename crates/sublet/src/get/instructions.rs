//! `sublet get instructions`: what the cluster of the certificate must do, from the stream.

use anyhow::Result;
use sublet_core::instruction::Duty;
use sublet_core::time::Time;
use sublet_wire::Timestamp;
use sublet_wire::client::{Client, Event};
use sublet_wire::v1::Instruction;

use super::Look;
use crate::clock;
use crate::connect::{Patient, failed};
use crate::output::{self, Cell, Column, Row, Watch, left, or_dash};

/// How.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    look: Look,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let Look { output, watch, connection } = &args.look;
    connection.answer(output.format, |client| async move {
        if *watch {
            return follow(&client, args).await;
        }
        let rows = list(&client).await?;
        output::list(&rows, output.format, clock::now(), &mut output::stdout())
    })
}

/// The list that the stream begins with.
async fn list(client: &Client) -> Result<Vec<Instruction>> {
    let mut stream = client.instructions(None);
    let mut found = Vec::new();
    loop {
        match stream.next().await {
            Event::Connected | Event::Message(_) => {}
            Event::Reset => found.clear(),
            Event::Instruction(instruction) => found.push(instruction),
            Event::Synced => return Ok(found),
            Event::Interrupted(error) => return Err(failed(error)),
        }
    }
}

/// The stream, which comes back by itself; what cannot get better ends it.
async fn follow(client: &Client, args: &Args) -> Result<()> {
    let mut stream = client.instructions(None);
    let mut watch = Watch::new::<Instruction>(args.look.output.format);
    // What cannot be looked at for the first time is more likely a slip than a broker that restarts.
    let mut patient = None;
    let mut list = None;
    loop {
        match stream.next().await {
            Event::Connected | Event::Message(_) => {}
            Event::Reset => list = Some(Vec::new()),
            Event::Synced => {
                patient = Some(Patient::default());
                if let Some(whole) = list.take() {
                    watch.print(&whole, clock::now(), &mut output::stdout())?;
                }
            }
            Event::Instruction(one) => match &mut list {
                Some(list) => list.push(one),
                None => tell(&mut watch, &one)?,
            },
            Event::Interrupted(error) => match &mut patient {
                Some(patient) => {
                    patient.wait_for::<()>(Err(failed(error)))?;
                }
                None => return Err(failed(error)),
            },
        }
    }
}

/// One that is new or other than before; what is gone is remembered no longer.
fn tell(watch: &mut Watch, instruction: &Instruction) -> Result<()> {
    watch.print_one(instruction, clock::now(), &mut output::stdout())?;
    if instruction.duty() == Some(Duty::Gone) {
        watch.forget(instruction);
    }
    Ok(())
}

impl Row for Instruction {
    const COLUMNS: &'static [Column] = &[
        Column::new("RESERVATION"),
        Column::new("SIDE"),
        Column::new("DUTY"),
        Column::new("PEER"),
        Column::new("CPU"),
        Column::new("MEMORY"),
        Column::new("GPU"),
        Column::new("GENERATION"),
        Column::new("EXPIRES IN"),
        Column::wide("OTHERS"),
    ];

    fn cells(&self, now: Time) -> Vec<Cell> {
        vec![
            self.reservation_id.as_str().into(),
            self.side.as_str().into(),
            self.duty.as_str().into(),
            self.peer_id.as_str().into(),
            self.resources.cpu.as_str().into(),
            self.resources.memory.as_str().into(),
            or_dash(self.resources.gpu.as_deref().unwrap_or_default()).into(),
            self.generation.to_string().into(),
            match self.duty() {
                Some(Duty::Keep) => left(self.expires_at.map(Timestamp::time), now).into(),
                _ => "-".into(),
            },
            output::others(&self.resources).into(),
        ]
    }

    fn name(&self) -> String {
        self.reservation_id.clone()
    }
}
