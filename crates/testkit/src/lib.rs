//! Real Kubernetes control planes for tests: etcd, API server, controllers, scheduler and simulated
//! nodes as plain processes on loopback, without containers or images; and [`Liqo`] on them.
//!
//! A test says what it wants and gets it when it is ready; everything ends with it, whatever happens
//! to it. Everything here blocks and keeps no runtime, so that plain and `async` tests can use it.
//!
//! ```no_run
//! use sublet_testkit::{Cluster, Nodes, Part, Pods, Setup};
//!
//! # fn main() -> Result<(), sublet_testkit::Error> {
//! let clusters = Cluster::start_all(["rome", "milan"].map(Setup::whole))?;
//! let rome = &clusters[0];
//! rome.add_nodes(&Nodes::new("worker", 5).resource("nvidia.com/gpu", "4"))?;
//! rome.deploy(&Pods::new("web", 40).cpu("100m"))?;
//! rome.wait_until_deployed("default", "web")?;
//! rome.part(Part::ApiServer).kill();
//! rome.start_part(Part::ApiServer)?;
//! println!("{}", rome.kubectl(&["get", "pods"])?);
//! # Ok(())
//! # }
//! ```

pub mod binaries;
pub mod wait;

mod error;
mod guardian;
mod process;
mod folder;
mod port;
mod pki;
mod kubeconfig;
mod http;
mod api;
mod cluster;
mod liqo;
mod kubectl;
mod fill;

pub use api::Api;
pub use cluster::{Cluster, Part, Setup};
pub use error::Error;
pub use fill::{Nodes, Pods};
pub use liqo::{Controller, Liqo, Tier, differences, inventory, link_by_hand};
pub use port::Port;
pub use process::{Process, Recipe, Signal};
pub use wait::wait_for;
