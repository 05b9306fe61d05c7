//! The description of the API, made from the types and the table of routes.
