//! Why an object that an API server kept cannot be what it says.

use sublet_core::{id, quantity, resources, time};

/// A field that is not what it should be; written for the person who wrote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {cause}")]
pub struct Invalid {
    /// Where, from the top of the object: `spec.requestedCPU`.
    pub field: String,
    /// What is wrong with it.
    #[source]
    pub cause: Cause,
}

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// Not an amount, or not one that we count.
    #[error(transparent)]
    Quantity(#[from] quantity::Error),
    /// Not a resource, or too many of them.
    #[error(transparent)]
    Resources(#[from] resources::Error),
    /// Not the name of a cluster or of a reservation.
    #[error(transparent)]
    Name(#[from] id::Error),
    /// Not a duration.
    #[error(transparent)]
    Duration(#[from] time::Error),
    /// It would be over at once.
    #[error("a duration of 0 would end at once: leave it out, or write one such as 1h30m")]
    NoTime,
    /// Every request takes some cpu and some memory.
    #[error("must be more than 0")]
    Nothing,
    /// One resource under two of its names.
    #[error("the same resource is given twice, under two names: leave one out")]
    Twice,
    /// A strategy that we do not have.
    #[error("there is no such strategy: use one of {0}")]
    Strategy(String),
    /// An operator that we do not have.
    #[error("there is no such operator: use In, NotIn, Exists or DoesNotExist")]
    Operator,
    /// Values where none belong, or none where some do.
    #[error("In and NotIn need values, Exists and DoesNotExist take none")]
    Values,
    /// A point in time before 1970, which no clock of ours shows.
    #[error("lies before 1970")]
    BeforeTime,
}

impl Invalid {
    /// That `field` is wrong because of `cause`.
    pub fn new(field: impl Into<String>, cause: impl Into<Cause>) -> Self {
        Self { field: field.into(), cause: cause.into() }
    }
}
