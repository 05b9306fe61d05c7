//! Clusters joined by Liqo, through its custom resources alone: no kubeconfig of anybody else's
//! cluster, one slice per reservation, granted by the provider's agent in exactly the amounts that
//! are reserved, and taken back at the end.

pub mod kinds;
pub mod link;
pub mod names;
