//! The schemas of the texts that the kinds share: amounts, durations, names, conditions.
//!
//! Kubernetes' rules language (CEL) can read quantities and durations, so a wrong one is refused by
//! the API server with a sentence, when it is written, and not found out later by a controller. Every
//! text and list has a limit, because the API server estimates what a rule costs at most, and refuses
//! a schema whose rules could cost too much.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};
use sublet_core::decision::Strategy;
use sublet_core::id::ClusterId;
use sublet_core::reservation::Ask;
use sublet_core::resources::Resources;

/// The longest amount or duration that is taken; real ones have fewer than 30 characters.
const AMOUNT_MAX: usize = 64;
/// The longest text for people. Explanations of the broker are shorter.
const MESSAGE_MAX: usize = 32_768;
/// As many conditions as any kind has, and some to come.
const CONDITIONS_MAX: usize = 16;
/// What Kubernetes allows as the name of an object.
const NAME_MAX: usize = 253;

/// More namespaces than one request has business with.
const NAMESPACES_MAX: usize = 32;

/// How Kubernetes names a namespace.
const LABEL: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
/// How Kubernetes writes an amount.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";
/// How Kubernetes names a resource, as the core reads it.
const RESOURCE: &str = "^[A-Za-z0-9]([-A-Za-z0-9_.]*(/[-A-Za-z0-9_.]*)?[A-Za-z0-9])?$";
/// How Go writes a duration that is not negative.
const DURATION: &str = r"^\+?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$";

fn rule(rule: &str, message: &str) -> Value {
    json!({ "rule": rule, "message": message })
}

/// An amount as the Go system has it in measured resources: a number or a text, of either sign.
pub fn quantity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [{ "type": "integer" }, { "type": "string" }],
        "pattern": QUANTITY,
        "x-kubernetes-int-or-string": true,
    })
}

/// Amounts by the name of their resource.
pub fn quantities(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": quantity(generator),
        "maxProperties": Resources::EXTENDED_MAX,
    })
}

/// A number or a text above zero, as the Go system has it in a Reservation.
pub fn positive_quantity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [{ "type": "integer" }, { "type": "string" }],
        "pattern": QUANTITY,
        "x-kubernetes-int-or-string": true,
        "x-kubernetes-validations": [rule(
            "quantity(string(self)).isGreaterThan(quantity('0'))",
            "must be more than 0",
        )],
    })
}

/// A text that is an amount above zero, and at most this: thousandths of it fit in 64 bits for cores,
/// and it does for bytes.
fn positive_up_to(most: &str) -> Schema {
    let is_positive = "isQuantity(self) && quantity(self).isGreaterThan(quantity('0'))";
    json_schema!({
        "type": "string",
        "maxLength": AMOUNT_MAX,
        "x-kubernetes-validations": [
            rule(is_positive, "must be a quantity of more than 0, such as 500m, 2 or 4Gi"),
            rule(
                &format!("!isQuantity(self) || !quantity(self).isGreaterThan(quantity('{most}'))"),
                &format!("must be at most {most}"),
            ),
        ],
    })
}

/// A text that is a number of cores above zero.
pub fn positive_cores(_: &mut SchemaGenerator) -> Schema {
    positive_up_to("9P")
}

/// A text that is an amount of bytes above zero.
pub fn positive_bytes(_: &mut SchemaGenerator) -> Schema {
    positive_up_to("9E")
}

/// A text that is an amount of bytes, or nothing.
pub fn amount(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": AMOUNT_MAX,
        "x-kubernetes-validations": [rule(
            "isQuantity(self) && !quantity(self).isLessThan(quantity('0')) && \
             !quantity(self).isGreaterThan(quantity('9E'))",
            "must be a quantity of 0 or more, such as 10Gi, and at most 9E",
        )],
    })
}

/// A text that is a count of whole pieces.
pub fn count(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": AMOUNT_MAX,
        "x-kubernetes-validations": [rule(
            "isQuantity(self) && quantity(self).isInteger() && quantity(self).asInteger() >= 0",
            "must be a whole number of 0 or more",
        )],
    })
}

/// Counts by the name of their resource, which is none of those that have a field of their own.
pub fn counts(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": count(generator),
        "maxProperties": Resources::EXTENDED_MAX,
        "x-kubernetes-validations": [
            rule(
                "!('cpu' in self || 'memory' in self || 'gpu' in self || 'nvidia.com/gpu' in self \
                 || 'storage' in self || 'ephemeral-storage' in self)",
                "cpu, memory, gpu and storage have fields of their own",
            ),
            rule(
                &format!("self.all(name, size(name) <= 128 && name.matches('{RESOURCE}'))"),
                "must have names of resources, such as example.com/fpga",
            ),
        ],
    })
}

/// How long, as Go writes it; longer than nothing. Go has an empty text where nothing was set.
pub fn duration(_: &mut SchemaGenerator) -> Schema {
    let hours = Ask::SPAN_MAX.as_millis() / 3_600_000;
    let rule = rule(
        &format!(
            "self == '' || self.matches('{}') && duration(self) > duration('0s') && duration(self) <= \
             duration('{hours}h')",
            DURATION.replace('\\', "\\\\")
        ),
        "must be a duration above 0 and of at most ten years, such as 300ms, 45s or 1h30m",
    );
    json_schema!({
        "type": "string",
        "maxLength": AMOUNT_MAX,
        "x-kubernetes-validations": [rule],
    })
}

/// The name of a cluster.
pub fn cluster_id(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "minLength": 1,
        "maxLength": ClusterId::LENGTH_MAX,
        "pattern": LABEL,
    })
}

/// The name of a cluster, or nothing: Go has no other way to say that none was given.
pub fn optional_cluster_id(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": ClusterId::LENGTH_MAX,
        "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$",
    })
}

/// The name of an object.
pub fn name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "minLength": 1, "maxLength": NAME_MAX })
}

/// Names of namespaces.
pub fn namespaces(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": NAMESPACES_MAX,
        "x-kubernetes-list-type": "set",
        "items": { "type": "string", "minLength": 1, "maxLength": 63, "pattern": LABEL },
    })
}

/// A short text of somebody else: a price, a version, an address.
pub fn short_text(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "maxLength": NAME_MAX })
}

/// A text for people.
pub fn message(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "maxLength": MESSAGE_MAX })
}

/// A count that fits in 32 bits and is not negative; Kubernetes has no unsigned numbers.
pub fn generation(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "format": "int64", "minimum": 0, "maximum": u32::MAX })
}

/// A number that only grows.
pub fn counter(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "format": "int64", "minimum": 0 })
}

/// A priority. The API server knows the format and does not check it.
pub fn priority(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "integer",
        "format": "int32",
        "minimum": i32::MIN,
        "maximum": i32::MAX,
    })
}

/// How to choose among clusters.
pub fn strategy(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": Strategy::ALL })
}

/// Labels of a cluster, as Kubernetes has them on objects.
pub fn labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": { "type": "string", "maxLength": Ask::VALUE_MAX },
        "maxProperties": sublet_core::advertisement::Advertisement::LABELS_MAX,
    })
}

/// What is true of an object, by type.
pub fn conditions(_: &mut SchemaGenerator) -> Schema {
    let text = |about: &str, pattern: &str, max: usize| json!({ "type": "string", "description": about, "pattern": pattern, "maxLength": max });
    json_schema!({
        "type": "array",
        "maxItems": CONDITIONS_MAX,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "type": text("What is said.", "^[A-Za-z][A-Za-z0-9]*$", 316),
                "status": {
                    "type": "string",
                    "description": "Whether it is so.",
                    "enum": ["True", "False", "Unknown"],
                },
                "reason": text("Why, in one word for programs.", "^[A-Za-z][A-Za-z0-9_,:]*$", 1024),
                "message": {
                    "type": "string",
                    "description": "Why, for people.",
                    "maxLength": MESSAGE_MAX,
                },
                "lastTransitionTime": {
                    "type": "string",
                    "format": "date-time",
                    "description": "Since when it is so.",
                },
                "observedGeneration": {
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                    "description": "The metadata.generation that this was said of.",
                },
            },
        },
    })
}

/// What a provider's labels must be like.
pub fn constraints(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": Ask::CONSTRAINTS_MAX,
        "x-kubernetes-list-type": "atomic",
        "items": {
            "type": "object",
            "required": ["key", "operator"],
            "properties": {
                "key": {
                    "type": "string",
                    "description": "The label.",
                    "minLength": 1,
                    "maxLength": Ask::LABEL_MAX,
                    "pattern": "^[-A-Za-z0-9_./]+$",
                },
                "operator": {
                    "type": "string",
                    "description": "What is asked of it, with the meanings of Kubernetes' selectors.",
                    "enum": ["In", "NotIn", "Exists", "DoesNotExist"],
                },
                "values": {
                    "type": "array",
                    "description": "For In and NotIn.",
                    "maxItems": Ask::VALUES_MAX,
                    "x-kubernetes-list-type": "atomic",
                    "items": {
                        "type": "string",
                        "maxLength": Ask::VALUE_MAX,
                        "pattern": "^[-A-Za-z0-9_./]*$",
                    },
                },
            },
            "x-kubernetes-validations": [rule(
                "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
                "In and NotIn need values, Exists and DoesNotExist take none",
            )],
        },
    })
}

/// The rule that these fields of an object never change, each by the way it may be absent.
pub(crate) fn fixed(fields: &[&str]) -> Value {
    let same = |field: &&str| {
        format!(
            "has(self.{field}) == has(oldSelf.{field}) && \
             (!has(self.{field}) || self.{field} == oldSelf.{field})"
        )
    };
    let rules: Vec<_> = fields.iter().map(same).collect();
    let message = format!("{} cannot be changed: delete it and create another", list(fields));
    rule(&rules.join(" && "), &message)
}

/// The rule that a field, once it says something, says it for good.
pub(crate) fn fixed_once_set(field: &str) -> Value {
    rule(
        &format!(
            "!has(oldSelf.{field}) || oldSelf.{field} == '' || \
             (has(self.{field}) && self.{field} == oldSelf.{field})"
        ),
        &format!("{field} cannot be changed once it is set"),
    )
}

fn list(fields: &[&str]) -> String {
    match fields {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}
