//! Errors about images and files in requests.

use lango_domain::content::AttachmentError;

use crate::error::ApiError;

pub(crate) fn bad_attachment(error: AttachmentError) -> ApiError {
    let hint = match &error {
        AttachmentError::Empty(_) => "send a file that is not empty",
        AttachmentError::TooLarge { .. }
        | AttachmentError::TooMany(_)
        | AttachmentError::TooLargeTogether(_) => "send fewer or smaller files",
        AttachmentError::MediaType(_) => "send a media type such as image/png, or none",
        AttachmentError::Base64(_) => "send the bytes as base64, without line breaks",
        AttachmentError::WrongContent { .. } => "send the media type of the bytes, or none",
    };
    ApiError::bad_request(error.to_string(), hint)
}
