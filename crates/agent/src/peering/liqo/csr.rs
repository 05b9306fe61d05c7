//! Requests for certificates, as consumers make them and Liqo signs them.
//!
//! Liqo looks at the first organization and at the common name alone; whoever signs makes a group of
//! *every* organization. So a request with one more would make its owner an administrator here. What
//! is granted is therefore read first, and says exactly one name and one organization, and nothing
//! else.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::oid_registry::{OID_X509_COMMON_NAME, OID_X509_ORGANIZATION_NAME, Oid};
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::FromDer;
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

/// A request of an RSA key with 4096 bits has 1.7 thousand.
const LENGTH_MAX: usize = 4096;
const BEGIN: &str = "-----BEGIN CERTIFICATE REQUEST-----";
const END: &str = "-----END CERTIFICATE REQUEST-----";

/// Why a request for a certificate is not one that we grant anything for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unfit {
    #[error("it is longer than {LENGTH_MAX} characters")]
    TooLong,
    #[error("it is not one request for a certificate as PEM")]
    Unreadable,
    #[error("it names somebody else, another group, or more than one of either")]
    Subject,
    #[error("it asks for more than a name")]
    Extensions,
}

/// Does the request say this one name and this one organization, and nothing else? Then the key that
/// it is for, as DER with its algorithm.
pub(super) fn check(pem: &str, name: &str, organization: &str) -> Result<Vec<u8>, Unfit> {
    let der = decode(pem)?;
    let (rest, csr) = X509CertificationRequest::from_der(&der).map_err(|_| Unfit::Unreadable)?;
    if !rest.is_empty() {
        return Err(Unfit::Unreadable);
    }
    let info = &csr.certification_request_info;
    if !is_subject(&info.subject, name, organization) {
        return Err(Unfit::Subject);
    }
    if !info.attributes().is_empty() {
        return Err(Unfit::Extensions);
    }
    Ok(info.subject_pki.raw.to_vec())
}

/// The common name and the first organization of any request, for those who look for their own.
pub(in crate::peering) fn owner(pem: &[u8]) -> Option<(String, String)> {
    let (_, pem) = parse_x509_pem(pem).ok()?;
    let (_, csr) = X509CertificationRequest::from_der(&pem.contents).ok()?;
    let subject = &csr.certification_request_info.subject;
    let name = subject.iter_common_name().next()?.as_str().ok()?;
    let organization = subject.iter_organization().next()?.as_str().ok()?;
    Some((name.to_owned(), organization.to_owned()))
}

/// The key that any request is for, as DER with its algorithm.
pub(super) fn key_of(pem: &[u8]) -> Option<Vec<u8>> {
    let (_, pem) = parse_x509_pem(pem).ok()?;
    let (_, csr) = X509CertificationRequest::from_der(&pem.contents).ok()?;
    Some(csr.certification_request_info.subject_pki.raw.to_vec())
}

/// One block and nothing around it or in it, so that everybody who reads it reads the same.
fn decode(pem: &str) -> Result<Vec<u8>, Unfit> {
    if pem.len() > LENGTH_MAX {
        return Err(Unfit::TooLong);
    }
    let body = pem.trim().strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END));
    let text: String = body.ok_or(Unfit::Unreadable)?.lines().collect();
    BASE64.decode(text).map_err(|_| Unfit::Unreadable)
}

fn is_subject(subject: &X509Name<'_>, name: &str, organization: &str) -> bool {
    let mut parts: Vec<_> = subject.iter_attributes().collect();
    parts.sort_by_key(|part| *part.attr_type() == OID_X509_COMMON_NAME);
    let is = |part: &AttributeTypeAndValue<'_>, kind: &Oid<'_>, wanted: &str| {
        part.attr_type() == kind && part.as_str() == Ok(wanted)
    };
    match parts.as_slice() {
        [group, user] => {
            is(group, &OID_X509_ORGANIZATION_NAME, organization)
                && is(user, &OID_X509_COMMON_NAME, name)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
