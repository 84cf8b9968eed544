//! Sends one e-mail as a delivery does: `send_email SETTINGS ADDRESS TITLE TEXT`, with the JSON of
//! `automation.smtp`. Prints `sent`, `temporary: …` or `permanent: …`.

use std::process::ExitCode;

use jiff::Timestamp;
use lango_automation::delivery::{DeliverySender, EmailSender, MailChannel, OutgoingMessage};
use lango_automation::delivery::{SendError, SmtpSettings};
use lango_domain::Label;
use lango_domain::automation::{
    Delivery, DeliveryId, DeliveryMessage, DeliveryOccasion, DeliveryState,
};
use lango_domain::event::Principal;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [settings, address, title, text] = arguments.as_slice() else {
        eprintln!("usage: send_email SETTINGS ADDRESS TITLE TEXT");
        return ExitCode::from(2);
    };
    match send(settings, address, title, text).await {
        Ok(()) => println!("sent"),
        Err(SendError::Temporary(reason)) => println!("temporary: {reason}"),
        Err(SendError::Permanent(reason)) => println!("permanent: {reason}"),
    }
    ExitCode::SUCCESS
}

async fn send(settings: &str, address: &str, title: &str, text: &str) -> Result<(), SendError> {
    let permanent = |error: &dyn std::fmt::Display| SendError::Permanent(error.to_string());
    let settings: SmtpSettings =
        serde_json::from_str(settings).map_err(|error| permanent(&error))?;
    let channel = MailChannel::new(&settings).map_err(|error| permanent(&error))?;
    let to = address.parse().map_err(|error| permanent(&error))?;
    let created = Timestamp::now();
    let delivery = Delivery {
        id: DeliveryId::new(1),
        run: None,
        principal: Principal::local(),
        occasion: DeliveryOccasion::Result,
        target: format!("email:{address}"),
        message: DeliveryMessage {
            from: "example".to_owned(),
            title: title.to_owned(),
            text: text.to_owned(),
            session: None,
            label: Label::default(),
            workspace: None,
        },
        state: DeliveryState::Pending,
        attempts: 1,
        created,
        next_try: created,
        last_error: None,
    };
    let message = OutgoingMessage {
        delivery: &delivery,
        sent_at: created,
    };
    let sender = EmailSender {
        channel: &channel,
        to: &to,
    };
    sender.send(message).await.map(drop)
}
