//! The CA itself: one key, and what it signs.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use jiff::{Timestamp, ToSpan, civil::Date, tz::TimeZone};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType, SerialNumber, date_time_ymd,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sublet_core::id::ClusterId;

use super::file::{Access, check_absent, make_folder, write_new};
use super::register::{Entry, Register};
use crate::exit::{Exit, Stop};

const CERTIFICATE: &str = "ca.crt";
const KEY: &str = "ca.key";
const CERTIFICATE_FILE: &str = "tls.crt";
const KEY_FILE: &str = "tls.key";
/// What the broker knows operators by.
const OPERATORS: &str = "sublet:operators";
/// A serial number may have 20 bytes; 16 are unique enough.
const SERIAL_BYTES: usize = 16;

/// Whose certificate it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// A cluster: its agent, or somebody who asks in its name.
    Cluster,
    /// Somebody who decides about all clusters.
    Operator,
    /// A broker.
    Server,
}

/// A certificate that is wanted.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) name: ClusterId,
    pub(crate) role: Role,
    /// Under which names and addresses a server is reached, besides this machine's own.
    pub(crate) dns: Vec<String>,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) days: u32,
}

impl Wish {
    /// A certificate for a year.
    pub(crate) fn new(name: ClusterId, role: Role) -> Self {
        Self { name, role, dns: Vec::new(), addresses: Vec::new(), days: 365 }
    }
}

/// A CA in its folder.
pub(crate) struct Authority {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

impl Authority {
    /// Makes a CA in a folder that has none.
    pub(crate) fn init(folder: &Path, name: &str, days: u32, now: Timestamp) -> Result<Self> {
        make_folder(folder)?;
        check_absent(folder, &[KEY, CERTIFICATE])?;
        let key = KeyPair::generate().context("no key could be made")?;
        let mut params = params(name, days, now)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let (serial, _) = serial(&key);
        params.serial_number = Some(serial);
        let certificate = params.self_signed(&key).context("the CA could not sign itself")?.pem();
        write_new(&folder.join(KEY), &key.serialize_pem(), Access::Owner)?;
        write_new(&folder.join(CERTIFICATE), &certificate, Access::Everybody)?;
        let issuer = Issuer::new(params, key);
        Ok(Self { folder: folder.into(), issuer, certificate })
    }

    /// Opens the CA in a folder.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let read = |name| {
            let path = folder.join(name);
            fs::read_to_string(&path).with_context(|| {
                let hint = "make a CA with: sublet ca init";
                Stop::new(Exit::NotFound, format!("{} cannot be read; {hint}", path.display()))
            })
        };
        let (certificate, key) = (read(CERTIFICATE)?, read(KEY)?);
        let key = KeyPair::from_pem(&key)
            .with_context(|| format!("{} holds no key", folder.join(KEY).display()))?;
        let issuer = Issuer::from_ca_cert_pem(&certificate, key).with_context(|| {
            format!("{} holds no certificate", folder.join(CERTIFICATE).display())
        })?;
        Ok(Self { folder: folder.into(), issuer, certificate })
    }

    /// What was issued.
    pub(crate) fn register(&self) -> Register {
        Register::of(&self.folder)
    }

    /// Where a certificate is put if nothing else was said.
    pub(crate) fn default_folder(&self, name: &ClusterId) -> PathBuf {
        self.folder.join("certs").join(name.as_str())
    }

    /// Signs a certificate and writes it with its key and the CA's into `folder`.
    pub(crate) fn issue(&self, wish: &Wish, folder: &Path, now: Timestamp) -> Result<Entry> {
        let key = KeyPair::generate().context("no key could be made")?;
        let mut params = params(wish.name.as_str(), wish.days, now)?;
        if wish.role == Role::Operator {
            params.distinguished_name.push(DnType::OrganizationName, OPERATORS);
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        // A server's names a host, not a cluster: it must not be taken for the certificate of one.
        params.extended_key_usages = vec![match wish.role {
            Role::Server => ExtendedKeyUsagePurpose::ServerAuth,
            _ => ExtendedKeyUsagePurpose::ClientAuth,
        }];
        if wish.role == Role::Server {
            params.subject_alt_names = names(wish)?;
        }
        params.use_authority_key_identifier_extension = true;
        let (number, serial) = serial(&key);
        params.serial_number = Some(number);
        let certificate = params.signed_by(&key, &self.issuer).context("it was not signed")?;
        let expires = expiry(wish.days, now)?.to_zoned(TimeZone::UTC)?.timestamp();
        let Wish { name, role, .. } = wish.clone();
        let entry = Entry { name, serial, role, issued: now, expires };
        make_folder(folder)?;
        check_absent(folder, &[KEY_FILE, CERTIFICATE_FILE, CERTIFICATE])?;
        // First the register: a certificate that it does not know could not be revoked by name.
        self.register().issued(&entry)?;
        write_new(&folder.join(KEY_FILE), &key.serialize_pem(), Access::Owner)?;
        write_new(&folder.join(CERTIFICATE_FILE), &certificate.pem(), Access::Everybody)?;
        write_new(&folder.join(CERTIFICATE), &self.certificate, Access::Everybody)?;
        Ok(entry)
    }
}

fn params(name: &str, days: u32, now: Timestamp) -> Result<CertificateParams> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let midnight = |date: Date| {
        let (month, day) = (date.month().unsigned_abs(), date.day().unsigned_abs());
        date_time_ymd(i32::from(date.year()), month, day)
    };
    // From yesterday, for machines whose clocks are behind.
    let begin = today(now).checked_sub(1.day()).context("the clock is out of range")?;
    params.not_before = midnight(begin);
    params.not_after = midnight(expiry(days, now)?);
    Ok(params)
}

fn today(now: Timestamp) -> Date {
    now.to_zoned(TimeZone::UTC).date()
}

fn expiry(days: u32, now: Timestamp) -> Result<Date> {
    let days = i64::from(days).days();
    today(now).checked_add(days).context("no certificate lasts that long: name fewer days")
}

/// A number of fixed length that follows from the key: unique, because the key is.
fn serial(key: &KeyPair) -> (SerialNumber, String) {
    let digest = Sha256::digest(key.public_key_raw());
    let mut bytes: Vec<u8> = digest.iter().copied().take(SERIAL_BYTES).collect();
    // Neither negative nor with a leading zero, so that everybody writes it with the same digits.
    if let Some(first) = bytes.first_mut() {
        *first = *first & 0x7f | 0x40;
    }
    let text = bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    (SerialNumber::from_slice(&bytes), text)
}

/// The names of a server: this machine's own, and those that were asked for.
fn names(wish: &Wish) -> Result<Vec<SanType>> {
    let own = [wish.name.as_str(), "localhost"].map(str::to_owned);
    let dns = own.into_iter().chain(wish.dns.iter().cloned()).map(|name| {
        ensure!(name.len() <= 253 && !name.is_empty(), "{name:?} is not a DNS name");
        let name = name.clone().try_into().with_context(|| format!("{name:?} is no DNS name"))?;
        Ok(SanType::DnsName(name))
    });
    let local = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    let addresses = local.into_iter().chain(wish.addresses.iter().copied());
    dns.chain(addresses.map(|address| Ok(SanType::IpAddress(address)))).collect()
}
