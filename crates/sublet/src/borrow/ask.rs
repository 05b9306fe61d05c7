//! What is asked for, as flags; checked here as the broker will check it.

use std::collections::BTreeMap;
use std::str::FromStr;

use anyhow::Result;
use clap::ValueEnum;
use sublet_core::id::ClusterId;
use sublet_core::quantity::Quantity;
use sublet_core::resources::Kind;
use sublet_core::time::Span;
use sublet_wire::v1::{Constraint, Operator, Quantities, ReservationRequest};

use crate::exit::{Exit, Stop};

/// How much.
#[derive(clap::Args)]
pub(crate) struct Resources {
    /// Cores, such as 2 or 500m.
    #[arg(long, value_name = "CORES", allow_hyphen_values = true)]
    cpu: Quantity,
    /// Bytes, such as 4Gi.
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true)]
    memory: Quantity,
    /// Whole GPUs.
    #[arg(long, value_name = "COUNT", allow_hyphen_values = true)]
    gpu: Option<Quantity>,
    /// Bytes of local disk.
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true)]
    storage: Option<Quantity>,
    /// Another resource by its Kubernetes name, such as example.com/fpga=1.
    #[arg(long = "resource", value_name = "NAME=AMOUNT")]
    others: Vec<Amount>,
}

impl Resources {
    /// As the wire has it.
    pub(crate) fn quantities(&self) -> Quantities {
        let text = |amount: &Option<Quantity>| amount.as_ref().map(ToString::to_string);
        let others = self.others.iter();
        Quantities {
            cpu: self.cpu.to_string(),
            memory: self.memory.to_string(),
            gpu: text(&self.gpu),
            storage: text(&self.storage),
            others: others.map(|one| (one.kind.to_string(), one.amount.to_string())).collect(),
        }
    }
}

/// One resource and how much of it.
#[derive(Clone, Debug)]
pub(crate) struct Amount {
    kind: Kind,
    amount: Quantity,
}

impl Amount {
    /// Several of them by name.
    pub(crate) fn by_name(all: &[Self]) -> BTreeMap<String, String> {
        all.iter().map(|one| (one.kind.to_string(), one.amount.to_string())).collect()
    }
}

impl FromStr for Amount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, amount) = text.split_once('=').ok_or("write NAME=AMOUNT")?;
        let kind = name.parse().map_err(|error| format!("{error}"))?;
        let amount = amount.parse().map_err(|error| format!("{error}"))?;
        Ok(Self { kind, amount })
    }
}

/// How to choose among the providers that fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Strategy {
    /// The one that keeps the largest share free
    Headroom,
    /// The one that keeps the smallest share free
    Binpack,
    /// The cheapest
    Cost,
}

/// What is asked for.
#[derive(clap::Args)]
pub(crate) struct Ask {
    #[command(flatten)]
    resources: Resources,
    /// For how long, such as 1h30m; without it, as long as the operator lets it.
    #[arg(long, value_name = "SPAN")]
    duration: Option<Span>,
    /// Higher goes first among those that arrive or wait together.
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    priority: i32,
    /// The one provider that will do.
    #[arg(long, value_name = "CLUSTER")]
    target: Option<ClusterId>,
    /// What the provider's labels must be like: NAME=A,B or NAME!=A,B or NAME or !NAME.
    #[arg(long = "constraint", value_name = "CONSTRAINT", value_parser = constraint)]
    constraints: Vec<Constraint>,
    /// How to choose, if not as the broker does by itself.
    #[arg(long, value_enum)]
    strategy: Option<Strategy>,
}

impl Ask {
    /// As the wire has it.
    pub(crate) fn request(&self) -> Result<ReservationRequest> {
        let strategy = self.strategy.map(|strategy| match strategy {
            Strategy::Headroom => "headroom".to_owned(),
            Strategy::Binpack => "binpack".to_owned(),
            Strategy::Cost => "cost".to_owned(),
        });
        let request = ReservationRequest {
            requested_resources: self.resources.quantities(),
            priority: self.priority,
            duration: self.duration.map(|span| span.to_string()),
            target_cluster_id: self.target.as_ref().map(ToString::to_string),
            constraints: self.constraints.clone(),
            strategy,
            ..ReservationRequest::default()
        };
        let asked = request.to_core().map_err(|error| Stop::new(Exit::Usage, error.to_string()))?;
        asked.check().map_err(|error| Stop::new(Exit::Usage, error.to_string()))?;
        Ok(request)
    }
}

fn constraint(text: &str) -> Result<Constraint, String> {
    let values = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    let (key, operator, values) = match (text.split_once("!="), text.split_once('=')) {
        (Some((key, rest)), _) => (key, Operator::NotIn, values(rest)),
        (None, Some((key, rest))) => (key, Operator::In, values(rest)),
        (None, None) => match text.strip_prefix('!') {
            Some(key) => (key, Operator::DoesNotExist, Vec::new()),
            None => (text, Operator::Exists, Vec::new()),
        },
    };
    if key.is_empty() {
        return Err("write NAME=A,B or NAME!=A,B or NAME or !NAME".into());
    }
    Ok(Constraint { key: key.into(), operator, values })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_are_written_as_kubernetes_writes_selectors() {
        let read = |text: &str| {
            let Constraint { key, operator, values } = constraint(text).unwrap();
            (key, operator, values.join("+"))
        };
        assert_eq!(read("zone=a,b"), ("zone".into(), Operator::In, "a+b".into()));
        assert_eq!(read("zone!=a"), ("zone".into(), Operator::NotIn, "a".into()));
        assert_eq!(read("spot"), ("spot".into(), Operator::Exists, String::new()));
        assert_eq!(read("!spot"), ("spot".into(), Operator::DoesNotExist, String::new()));
        assert!(constraint("=a").is_err() && constraint("!").is_err());
    }

    #[test]
    fn an_amount_names_its_resource() {
        let amounts: Vec<Amount> =
            ["example.com/fpga=1", "cpu=2"].map(|text| text.parse().unwrap()).into();
        let named = Amount::by_name(&amounts);
        assert_eq!(named["example.com/fpga"], "1");
        assert_eq!(named["cpu"], "2");
        assert!("cpu".parse::<Amount>().is_err() && "cpu=x".parse::<Amount>().is_err());
    }
}
