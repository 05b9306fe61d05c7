//! `kube`: finds or builds the programs, and shows how far it is.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use clap::ValueEnum;
use sublet_testkit::binaries::{BuildError, Kit, Places, Progress, build};

/// How often a log, which is no terminal, is told that something is still being done.
const REMIND: Duration = Duration::from_secs(30);

/// What to find or build; without any, all but liqoctl.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these
    #[arg(long = "kit", value_enum)]
    kits: Vec<Wanted>,
}

/// A kit, as it is named on the command line.
#[derive(Clone, Copy, ValueEnum)]
enum Wanted {
    /// etcd, Kubernetes, kubectl and KWOK
    Kubernetes,
    /// Liqo's controllers
    Liqo,
    /// Liqo's command line
    Liqoctl,
}

impl Wanted {
    const fn kit(self) -> Kit {
        match self {
            Self::Kubernetes => Kit::Kubernetes,
            Self::Liqo => Kit::Liqo,
            Self::Liqoctl => Kit::Liqoctl,
        }
    }
}

/// Finds or builds all of them, and says where they are.
pub(crate) fn run(args: &Args) -> Result<(), BuildError> {
    let all = [Wanted::Kubernetes, Wanted::Liqo];
    let kits = if args.kits.is_empty() { &all[..] } else { &args.kits };
    kits.iter().try_for_each(|wanted| find_or_build(wanted.kit()))
}

fn find_or_build(kit: Kit) -> Result<(), BuildError> {
    let places = Places::from_environment();
    let terminal = io::stdout().is_terminal();
    let mut display = Display { begun: false, reminded: Duration::ZERO, terminal };
    let binaries = build(&places, kit, &mut |progress| {
        if matches!(progress, Progress::Building { .. }) && !display.begun {
            display.begun = true;
            let (meanwhile, after) = sizes(kit);
            println!(
                "building from source, once on this machine: some minutes, {meanwhile} meanwhile,"
            );
            println!("{after} after; to {}", places.built(kit).display());
        }
        display.show(progress);
    })?;
    for &program in kit.programs() {
        println!("{:<24}{}", program.name(), binaries.path(program).display());
    }
    Ok(())
}

/// How much room a build takes, and its results.
const fn sizes(kit: Kit) -> (&'static str, &'static str) {
    match kit {
        Kit::Kubernetes => ("5 GB", "0.4 GB"),
        Kit::Liqo => ("2 GB", "0.25 GB"),
        Kit::Liqoctl => ("2 GB", "0.1 GB"),
    }
}

/// A line that counts, or lines now and then.
struct Display {
    begun: bool,
    reminded: Duration,
    terminal: bool,
}

impl Display {
    fn show(&mut self, progress: Progress) {
        match progress {
            Progress::Waiting => println!("somebody else builds them; waiting"),
            Progress::Building { program, number, of, elapsed } => {
                let line =
                    format!("[{number}/{of}] {:<24}{:>4} s", program.name(), elapsed.as_secs());
                if self.terminal {
                    print!("\r{line}");
                    // A line that is not shown is no reason to stop.
                    drop(io::stdout().flush());
                } else if elapsed < self.reminded || elapsed >= self.reminded + REMIND {
                    self.reminded = elapsed;
                    println!("{line} …");
                }
            }
            Progress::Built { program, took } => {
                let start = if self.terminal { "\r" } else { "" };
                self.reminded = Duration::ZERO;
                println!("{start}built {:<26}{:>5.0} s", program.name(), took.as_secs_f64());
            }
        }
    }
}
