//! The description of the API, made from the types and the table of routes.
//!
//! `OpenAPI` 3.1 takes JSON Schema as it is, so the schemas come straight from the types; the rest is
//! [`ROUTES`], written out. Nothing is said twice, so nothing can differ.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

use crate::{Body, Code, Problem, ROUTES, Route, Shape, v1};

/// The whole description.
pub fn document() -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Sublet broker",
            "version": "v1",
            "description": "JSON over mutual TLS. The CN of the client certificate is the cluster. \
                            Every error has a code, which is explained in docs/errors.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "security": [{ "certificate": [] }],
        "paths": paths(),
        "components": {
            "securitySchemes": { "certificate": { "type": "mutualTLS" } },
            "schemas": schemas(),
        },
    })
}

/// The description as the file holds it.
pub fn text() -> String {
    format!("{:#}\n", document())
}

/// The index of the error pages, as a table.
pub fn error_index() -> String {
    let row = |code: &Code| {
        let (name, status, meaning) = (code.as_str(), code.status(), code.meaning());
        format!("| {status} | [{name}]({name}.md) | {meaning} |\n")
    };
    let rows: String = Code::ALL.iter().map(row).collect();
    format!("| status | code | meaning |\n|---|---|---|\n{rows}")
}

/// Lists the types that routes name, so that none is forgotten: a test compares.
macro_rules! named {
    ($generator:ident: $($type:ty),* $(,)?) => {
        $(drop($generator.subschema_for::<$type>());)*
    };
}

fn schemas() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = SchemaGenerator::new(settings);
    named!(generator:
        v1::Acknowledgement,
        v1::Advertisement,
        v1::AdvertisementResponse,
        v1::CandidateList,
        v1::CandidateRequest,
        v1::Cap,
        v1::Cluster,
        v1::ClusterList,
        v1::Decision,
        v1::Explanation,
        v1::Failed,
        v1::Message,
        v1::Renewal,
        v1::Reservation,
        v1::ReservationList,
        v1::ReservationRequest,
        v1::Resizing,
        v1::Revocation,
        v1::RevocationList,
        v1::WatchEvent,
        v1::ClusterDecision,
        v1::Why,
        Problem,
    );
    generator.take_definitions(true)
}

fn paths() -> Map<String, Value> {
    let mut paths = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = operation(route);
    }
    paths
}

fn operation(route: &Route) -> Value {
    let mut operation = json!({
        "operationId": route.name,
        "summary": route.summary,
        "responses": responses(route),
    });
    let parameters = parameters(route);
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    if route.request != Body::None {
        operation["requestBody"] =
            json!({ "required": !route.may_be_empty, "content": content(route.request) });
    }
    operation
}

fn parameters(route: &Route) -> Vec<Value> {
    let text = json!({ "type": "string" });
    let in_path = route.path.split('{').skip(1).filter_map(|part| part.split('}').next());
    let path =
        in_path.map(|name| json!({ "name": name, "in": "path", "required": true, "schema": text }));
    let query = route.query.iter().map(|parameter| {
        let required = parameter.about.ends_with("required.");
        json!({
            "name": parameter.name,
            "in": "query",
            "required": required,
            "description": parameter.about,
            "schema": text,
        })
    });
    let key = (route.name == "reserve").then(|| {
        json!({
            "name": "Idempotency-Key",
            "in": "header",
            "required": false,
            "description": "The client's name for this request: a repeat is answered with the \
                            reservation as it is now.",
            "schema": { "type": "string", "minLength": 1, "maxLength": 128 },
        })
    });
    path.chain(query).chain(key).collect()
}

fn responses(route: &Route) -> Value {
    let mut responses = json!({});
    for (status, body) in route.answers {
        let response = &mut responses[status.to_string()];
        if response.is_null() {
            *response = json!({ "description": success(*status, *body) });
        }
        // Some answer in one of two forms, as they were asked.
        if let (Value::Object(forms), true) = (content(*body), *body != Body::None) {
            for (kind, schema) in forms {
                response["content"][kind] = schema;
            }
        }
    }
    responses["default"] = json!({
        "description": "What is wrong, with a code in `X-Sublet-Code`.",
        "headers": {
            "X-Sublet-Code": { "schema": { "$ref": "#/components/schemas/Code" } },
            "Retry-After": { "schema": { "type": "integer" } },
        },
        "content": match route.shape {
            Shape::Json => content(Body::Json("Problem")),
            Shape::Plain => content(Body::Text),
        },
    });
    responses
}

fn success(status: u16, body: Body) -> &'static str {
    match status {
        201 => "It was made.",
        202 if body == Body::None => "It is kept for its receiver, for a while.",
        202 => "It waits; the grant comes by the stream of instructions.",
        204 => "It is done.",
        _ => "As asked.",
    }
}

fn content(body: Body) -> Value {
    let named = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    match body {
        Body::None => json!({}),
        Body::Text => json!({ "text/plain": { "schema": { "type": "string" } } }),
        Body::Json(name) => json!({ "application/json": { "schema": named(name) } }),
        Body::List(name) => json!({ "application/json": {
            "schema": { "type": ["array", "null"], "items": named(name) },
        } }),
        Body::Lines(name) => json!({ v1::WatchEvent::CONTENT_TYPE: { "schema": named(name) } }),
        Body::Any => json!({ "application/json": { "schema": { "type": "object" } } }),
    }
}
