//! Rules for the requests for certificates that a consumer sends, in CEL. Liqo signs them by itself, within a moment,
//! and looks at the first organization alone; whoever signs makes a group of every organization. CEL cannot read a
//! request, but it can measure one: Liqo's own, of an Ed25519 key, says one name and one organization, and is exactly
//! as long as these make it.
//!
//! No other is as short. Liqo and Kubernetes want this name, this organization and a signature of the tenant's key, so
//! all of it has to be there; one organization more takes eight bytes at least, which are eight characters of base64 at
//! least, also where it shares its set with the others. Six are what can be saved by writing the lines of the longest
//! request as one. So the length is taken in bytes, and not in the threes of base64.

use serde_json::{Value, json};

/// What Liqo appends to the name of a slice to name its user: a dash, and this many digits of a hash.
const HASH_DIGITS: usize = 12;

/// From the names to the bytes of the PEM. Each part begins with a tag and its length, which takes one byte more from
/// 128 on, and two from 256 on.
pub(super) fn variables() -> Value {
    let user = HASH_DIGITS + 1;
    json!([
        // For each of the two: a set, a sequence, the kind and the text.
        variable(
            "names",
            &format!(
                "2 * 11 + size(object.metadata.name) + {user} + size(request.userInfo.username)"
            )
        ),
        variable("subject", "variables.names + (variables.names < 128 ? 2 : 3)"),
        // The version, the key, and no attributes.
        variable("said", "3 + variables.subject + 44 + 2"),
        variable(
            "signed",
            "variables.said + (variables.said < 128 ? 2 : variables.said < 256 ? 3 : 4)"
        ),
        // The algorithm, and the signature.
        variable("all", "variables.signed + 7 + 67"),
        variable("der", "variables.all + (variables.all < 256 ? 3 : 4)"),
        variable("base64", "(variables.der + 2) / 3 * 4"),
        // The two lines around it, and the ends of those between.
        variable("pem", "36 + variables.base64 + (variables.base64 + 63) / 64 + 34"),
        variable("csr", "has(object.spec.csr) ? object.spec.csr : ''"),
        variable(
            "padding",
            "variables.csr.endsWith('==') ? 2 : variables.csr.endsWith('=') ? 1 : 0"
        ),
    ])
}

/// Whose user is named is the hash of the consumer, so there has to be one.
pub(super) fn rule() -> &'static str {
    "variables.csr == '' || (has(object.spec.consumerClusterID) && \
     size(variables.csr) / 4 * 3 - variables.padding <= variables.pem)"
}

fn variable(name: &str, expression: &str) -> Value {
    json!({ "name": name, "expression": expression })
}
