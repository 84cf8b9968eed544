//! Errors about images and files in requests.

use lango_domain::content::{AttachmentError, MAX_ATTACHMENTS};

use crate::error::ApiError;

pub(crate) fn bad_attachment(error: AttachmentError) -> ApiError {
    ApiError::bad_request(
        error.to_string(),
        "send images (PNG, JPEG, GIF, WebP), PDF files or other files as base64",
    )
}

pub(crate) fn too_many_attachments() -> ApiError {
    ApiError::bad_request(
        format!("a request may have at most {MAX_ATTACHMENTS} attachments"),
        "send fewer images and files",
    )
}
