//! The tools `crypto_*`.

use std::fmt::Write as _;

use lango_domain::secret::Secret;
use lango_domain::{Intent, Safety, Tool, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{VaultTools, parse_name, parse_optional_name, phrases, tool_error};
use crate::cipher::to_hex;
use crate::digest::HashAlgorithm;
use crate::keys::{KeyEntry, KeyPurpose};
use crate::public_key::{PublicKey, decode_bytes};

/// The form in which bytes are written.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum DataForm {
    #[default]
    Text,
    Hex,
    Base64,
}

impl DataForm {
    fn bytes(self, data: &str) -> Result<Vec<u8>, ToolError> {
        use base64::Engine as _;
        let decoded = match self {
            Self::Text => Some(data.as_bytes().to_vec()),
            Self::Hex => crate::cipher::from_hex(data.trim()),
            Self::Base64 => base64::engine::general_purpose::STANDARD
                .decode(data.trim())
                .ok(),
        };
        decoded
            .ok_or_else(|| ToolError("`data` does not have the form that `form` names".to_owned()))
    }
}

#[derive(Deserialize, JsonSchema)]
struct HashArgs {
    /// The data to hash.
    data: String,
    /// Default: sha256.
    #[serde(default)]
    algorithm: HashAlgorithm,
    /// The form of `data`. Default: text.
    #[serde(default)]
    form: DataForm,
}

pub(super) fn crypto_hash() -> Tool {
    Tool::new(
        "crypto_hash",
        "Computes a hash of data, as hexadecimal digits.",
        Safety::Safe,
        |_context, args: HashArgs| async move {
            let digest = args.algorithm.digest(&args.form.bytes(&args.data)?);
            Ok(format!("{}: {}", args.algorithm.as_str(), to_hex(&digest)))
        },
    )
    .with_phrases(phrases::HASH)
}

#[derive(Deserialize, JsonSchema)]
struct SignArgs {
    /// The data to sign.
    data: String,
    /// The name of a key for signatures. Default: `signing`, which is made on first use.
    key_id: Option<String>,
    /// The form of `data`. Default: text.
    #[serde(default)]
    form: DataForm,
}

pub(super) fn crypto_sign(parts: VaultTools) -> Tool {
    let description =
        "Signs data with a key of the vault (Ed25519). Returns the signature as base64.";
    Tool::new(
        "crypto_sign",
        description,
        Safety::Dangerous,
        move |context, args: SignArgs| {
            let parts = parts.clone();
            async move { sign(&parts, &context, args).await }
        },
    )
    .with_intent(|_context, args: SignArgs| async move {
        let key = key_name(args.key_id.as_deref(), KeyPurpose::Sign)?;
        args.form.bytes(&args.data)?;
        Ok(Intent {
            level: Safety::Dangerous,
            shows: format!("signs with the key `{key}`:\n{}", args.data),
            subject: key,
            pattern: None,
        })
    })
    .with_phrases(phrases::SIGN)
}

/// Returns the name of the key that a call uses.
fn key_name(given: Option<&str>, purpose: KeyPurpose) -> Result<String, ToolError> {
    let name = parse_optional_name(given)?;
    Ok(name.map_or_else(
        || purpose.default_name().to_owned(),
        |name| name.to_string(),
    ))
}

async fn sign(
    parts: &VaultTools,
    context: &ToolContext,
    args: SignArgs,
) -> Result<String, ToolError> {
    let (data, name) = (
        args.form.bytes(&args.data)?,
        parse_optional_name(args.key_id.as_deref())?,
    );
    let vault = parts.secrets().await?.vault();
    let made = vault
        .sign(&context.principal, name.as_ref(), &data)
        .await
        .map_err(tool_error)?;
    let KeyEntry { name, version, .. } = &made.key;
    let public_key = made
        .key
        .public_key
        .map_or_else(String::new, PublicKey::to_base64);
    Ok(format!(
        "signature: {}\nkey_id: {name} (version {version})\npublic_key: {public_key}",
        made.signature
    ))
}

#[derive(Deserialize, JsonSchema)]
struct VerifyArgs {
    /// The data that was signed.
    data: String,
    /// The signature, as base64 or hexadecimal digits.
    signature: String,
    /// The name of a key of the vault. Either this or `public_key`. Default: `signing`.
    key_id: Option<String>,
    /// An Ed25519 public key, as base64 or hexadecimal digits.
    public_key: Option<String>,
    /// The form of `data`. Default: text.
    #[serde(default)]
    form: DataForm,
}

pub(super) fn crypto_verify(parts: VaultTools) -> Tool {
    let description = "Checks an Ed25519 signature with a key of the vault, of any version, or with a public key.";
    Tool::new(
        "crypto_verify",
        description,
        Safety::Safe,
        move |context, args: VerifyArgs| {
            let parts = parts.clone();
            async move { verify(&parts, &context, args).await }
        },
    )
    .with_phrases(phrases::VERIFY)
}

async fn verify(
    parts: &VaultTools,
    context: &ToolContext,
    args: VerifyArgs,
) -> Result<String, ToolError> {
    let data = args.form.bytes(&args.data)?;
    let signature = decode_bytes(&args.signature)
        .ok_or_else(|| ToolError("`signature` must be base64 or hexadecimal digits".to_owned()))?;
    let wrong = "not valid: the signature does not belong to this data and key".to_owned();
    let name = parse_optional_name(args.key_id.as_deref())?;
    if let Some(public_key) = args.public_key.as_deref().filter(|key| !key.is_empty()) {
        if name.is_some() {
            return Err(ToolError("give either `key_id` or `public_key`".to_owned()));
        }
        let public_key = PublicKey::parse(public_key).map_err(tool_error)?;
        return Ok(match public_key.verifies(&data, &signature) {
            true => "valid: signed with this public key".to_owned(),
            false => wrong,
        });
    }
    let name = match name {
        Some(name) => name,
        None => parse_name(KeyPurpose::Sign.default_name())?,
    };
    let vault = parts.secrets().await?.vault();
    let signer = vault
        .verify(&context.principal, &name, (&data, &signature))
        .await
        .map_err(tool_error)?;
    Ok(signer.map_or(wrong, |key| {
        format!(
            "valid: signed with the key `{}`, version {}",
            key.name, key.version
        )
    }))
}

#[derive(Deserialize, JsonSchema)]
struct EncryptArgs {
    /// The text to encrypt.
    data: String,
    /// The name of a key for encryption. Default: `encryption`, which is made on first use.
    key_id: Option<String>,
}

pub(super) fn crypto_encrypt(parts: VaultTools) -> Tool {
    let description = "Encrypts a text with a key of the vault (XChaCha20-Poly1305). Only this vault can decrypt it.";
    Tool::new(
        "crypto_encrypt",
        description,
        Safety::Moderate,
        move |context, args: EncryptArgs| {
            let parts = parts.clone();
            async move {
                let name = parse_optional_name(args.key_id.as_deref())?;
                let vault = parts.secrets().await?.vault();
                vault
                    .encrypt(&context.principal, name.as_ref(), args.data.as_bytes())
                    .await
                    .map_err(tool_error)
            }
        },
    )
    .with_phrases(phrases::ENCRYPT)
}

#[derive(Deserialize, JsonSchema)]
struct DecryptArgs {
    /// A text that crypto_encrypt returned.
    ciphertext: String,
    /// The name of the key. Default: the one that the text names.
    key_id: Option<String>,
}

pub(super) fn crypto_decrypt(parts: VaultTools) -> Tool {
    let description = "Decrypts a text of crypto_encrypt. Returns a reference `{{decrypt:ID}}`, never the \
        content: tools that accept references put it in.";
    Tool::new(
        "crypto_decrypt",
        description,
        Safety::Dangerous,
        move |context, args: DecryptArgs| {
            let parts = parts.clone();
            async move { decrypt(&parts, &context, args).await }
        },
    )
    .with_phrases(phrases::DECRYPT)
}

async fn decrypt(
    parts: &VaultTools,
    context: &ToolContext,
    args: DecryptArgs,
) -> Result<String, ToolError> {
    let name = parse_optional_name(args.key_id.as_deref())?;
    let secrets = parts.secrets().await?;
    let opened = secrets
        .vault()
        .decrypt(&context.principal, name.as_ref(), &args.ciphertext)
        .await
        .map_err(tool_error)?;
    let text = String::from_utf8(opened.to_vec())
        .map_err(|_| ToolError("the decrypted data is not a text".to_owned()))?;
    let reference = secrets
        .keep_decrypted(&context.principal, Secret::new(text))
        .map_err(tool_error)?;
    Ok(format!(
        "{reference} stands for the decrypted text, until this process ends. The text is not shown; use the \
        reference in a field that accepts references, such as `env` of exec_shell."
    ))
}

#[derive(Deserialize, JsonSchema)]
struct KeysArgs {}

pub(super) fn crypto_keys(parts: VaultTools) -> Tool {
    Tool::new(
        "crypto_keys",
        "Lists the keys of the vault for signatures and encryption, without their private parts.",
        Safety::Safe,
        move |context, _args: KeysArgs| {
            let parts = parts.clone();
            async move {
                let vault = parts.secrets().await?.vault();
                let keys = vault.keys(&context.principal).await.map_err(tool_error)?;
                Ok(list_keys(&keys))
            }
        },
    )
    .with_private_output()
    .with_phrases(phrases::KEYS)
}

fn list_keys(keys: &[KeyEntry]) -> String {
    if keys.is_empty() {
        return "There are no keys. One is made with the first signature or encryption, or with `lango key create NAME`."
            .to_owned();
    }
    let mut text = String::new();
    for key in keys {
        let _ = write!(
            text,
            "{} ({}, {}), version {}",
            key.name,
            key.purpose.as_str(),
            key.purpose.algorithm(),
            key.version
        );
        if let Some(public_key) = key.public_key {
            let _ = write!(text, ", public key {}", public_key.to_base64());
        }
        text.push('\n');
    }
    text.trim_end().to_owned()
}
