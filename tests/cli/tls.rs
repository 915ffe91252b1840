//! Certificates that are made when a test needs them.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;

/// When a certificate is valid.
#[derive(Clone, Copy)]
pub(crate) enum Validity {
    /// Today.
    Now,
    /// Not any more.
    Past,
}

/// An authority that signs certificates for 127.0.0.1.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

static COUNT: AtomicU32 = AtomicU32::new(0);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        // Authorities of one name would be taken for one another.
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        params.distinguished_name.push(DnType::CommonName, format!("authority {number}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap() }
    }

    /// The lines of a kubeconfig's cluster that trust it.
    pub(crate) fn trusted(&self) -> String {
        format!("    certificate-authority-data: {}\n", base64(self.issuer.pem().as_bytes()))
    }

    /// The configuration of a server with a certificate of this authority.
    pub(crate) fn server(&self, validity: Validity) -> ServerConfig {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        if matches!(validity, Validity::Past) {
            params.not_before = date_time_ymd(2019, 1, 1);
            params.not_after = date_time_ymd(2020, 1, 1);
        }
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let builder = ServerConfig::builder_with_provider(ring::default_provider().into());
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        builder.with_single_cert(vec![certificate.der().clone()], key).unwrap()
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4_usize {
            let letter = char::from(LETTERS[(bits >> (18 - 6 * i) & 63) as usize]);
            write!(text, "{}", if i > chunk.len() { '=' } else { letter }).unwrap();
        }
    }
    text
}

#[test]
fn base64_pads() {
    assert_eq!(["", "f", "fo", "foo", "foob"].map(|t| base64(t.as_bytes())), ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]);
}
