//! The six definitions, as they are installed.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;

use crate::{
    Advertisement, ClusterAdvertisement, ProviderInstruction, Reservation, ReservationInstruction,
    ResourceRequest,
};

macro_rules! file {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../deploy/crds/", $name)))
    };
}

/// The files of `deploy/crds`, as `cargo xtask gen` writes them: their names and their texts.
pub const FILES: [(&str, &str); 6] = [
    file!("rear.fluidos.eu_advertisements.yaml"),
    file!("rear.fluidos.eu_resourcerequests.yaml"),
    file!("rear.fluidos.eu_reservationinstructions.yaml"),
    file!("rear.fluidos.eu_providerinstructions.yaml"),
    file!("broker.fluidos.eu_clusteradvertisements.yaml"),
    file!("broker.fluidos.eu_reservations.yaml"),
];

/// The six definitions, from the types.
pub fn all() -> [CustomResourceDefinition; 6] {
    [
        Advertisement::crd(),
        ResourceRequest::crd(),
        ReservationInstruction::crd(),
        ProviderInstruction::crd(),
        ClusterAdvertisement::crd(),
        Reservation::crd(),
    ]
    .map(tidied)
}

/// The name of the file that a definition is kept in: its group, and its plural.
pub fn file_name(definition: &CustomResourceDefinition) -> String {
    let spec = &definition.spec;
    format!("{}_{}.yaml", spec.group, spec.names.plural)
}

fn tidied(mut definition: CustomResourceDefinition) -> CustomResourceDefinition {
    for version in &mut definition.spec.versions {
        if let Some(schema) =
            version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut())
        {
            never_null(schema);
        }
    }
    definition
}

/// Takes back that optional fields may be null. The API server then drops a null, as it does for the
/// Go system's definitions, and no rule ever meets one.
fn never_null(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    for property in schema.properties.iter_mut().flat_map(|all| all.values_mut()) {
        never_null(property);
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => never_null(items),
        Some(JSONSchemaPropsOrArray::Schemas(all)) => all.iter_mut().for_each(never_null),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        never_null(values);
    }
}
