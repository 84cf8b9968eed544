//! Times in plain sentences.

mod refused;
mod sentences;

use jiff::Zoned;
use lango_automation::natural_time::{SentenceWork, TimePhrase, TimeProblem, read_time};
use lango_automation::schedule::Timetable;
use lango_domain::automation::{Schedule, ScheduleKind};

/// A Wednesday.
fn now() -> Zoned {
    "2026-03-25T10:20:30+01:00[Europe/Berlin]".parse().unwrap()
}

/// Returns the schedule, with instants as month, day and time in Berlin.
fn shown(found: &TimePhrase) -> String {
    match found.kind {
        ScheduleKind::Cron => format!("cron {}", found.text),
        ScheduleKind::Every => format!("every {}", found.text),
        ScheduleKind::At => {
            let at: jiff::Timestamp = found.text.parse().unwrap();
            let at = at.in_tz("Europe/Berlin").unwrap();
            at.strftime("at %m-%d %H:%M").to_string()
        }
    }
}

/// Returns the kind and text of the schedule, short: instants as month, day and time in the zone.
fn read(sentence: &str) -> Option<(String, String)> {
    let found = read_time(sentence, &now()).ok()?;
    let shown = match found.kind {
        ScheduleKind::Cron => format!("cron {}", found.text),
        ScheduleKind::Every => format!("every {}", found.text),
        ScheduleKind::At => {
            let at: jiff::Timestamp = found.text.parse().unwrap();
            at.in_tz("Europe/Berlin")
                .unwrap()
                .strftime("at %m-%d %H:%M:%S")
                .to_string()
        }
    };
    Some((shown, found.rest))
}

#[track_caller]
fn assert_reads(cases: &[(&str, &str, &str)]) {
    for (sentence, schedule, rest) in cases {
        let found = read(sentence);
        let expected = Some(((*schedule).to_owned(), (*rest).to_owned()));
        assert_eq!(found, expected, "{sentence}");
    }
}

const ENGLISH: &[(&str, &str, &str)] = &[
    (
        "remind me tomorrow at 9 to call Ann",
        "at 03-26 09:00:00",
        "remind me to call Ann",
    ),
    (
        "remind me in one minute to stretch",
        "at 03-25 10:21:30",
        "remind me to stretch",
    ),
    (
        "in two hours check the disk",
        "at 03-25 12:20:30",
        "check the disk",
    ),
    ("in 90 minutes", "at 03-25 11:50:30", ""),
    ("in half an hour, tea", "at 03-25 10:50:30", "tea"),
    ("in a week", "at 04-01 10:20:30", ""),
    (
        "every Monday at 8 check the disk",
        "cron 0 8 * * MON",
        "check the disk",
    ),
    (
        "Check the disk every day at 7:30.",
        "cron 30 7 * * *",
        "Check the disk.",
    ),
    ("daily at noon", "cron 0 12 * * *", ""),
    (
        "every Monday and Thursday at 5 pm",
        "cron 0 17 * * MON,THU",
        "",
    ),
    ("every Monday to Friday at 8", "cron 0 8 * * MON-FRI", ""),
    ("every weekday at 8:15", "cron 15 8 * * MON-FRI", ""),
    ("on Mondays at 8", "cron 0 8 * * MON", ""),
    ("at 8 every Monday", "cron 0 8 * * MON", ""),
    ("every morning", "cron 0 9 * * *", ""),
    ("every morning at 7", "cron 0 7 * * *", ""),
    (
        "every 15 minutes ping the server",
        "every 15m",
        "ping the server",
    ),
    ("every two hours", "every 2h", ""),
    ("hourly", "every 1h", ""),
    (
        "on Friday at 17:00 send the report",
        "at 03-27 17:00:00",
        "send the report",
    ),
    ("on Wednesday at 9", "at 04-01 09:00:00", ""),
    ("on Wednesday at 11", "at 03-25 11:00:00", ""),
    ("Friday 5pm", "at 03-27 17:00:00", ""),
    ("at 9:30 p.m. tomorrow", "at 03-26 21:30:00", ""),
    (
        "tomorrow at 8 o'clock in the evening",
        "at 03-26 20:00:00",
        "",
    ),
    ("tomorrow morning", "at 03-26 09:00:00", ""),
    ("the day after tomorrow at 9am", "at 03-27 09:00:00", ""),
    ("tonight", "at 03-25 20:00:00", ""),
    ("at 17:00", "at 03-25 17:00:00", ""),
    ("at 9", "at 03-26 09:00:00", ""),
    ("remind me at 9", "at 03-25 21:00:00", "remind me"),
    ("remind me at 5", "at 03-25 17:00:00", "remind me"),
    ("today at 11:05", "at 03-25 11:05:00", ""),
    ("on 2026-04-01 at 12:00 pay", "at 04-01 12:00:00", "pay"),
    ("tomorrow", "at 03-26 09:00:00", ""),
    // In the night of the change, an hour later is an hour of elapsed time.
    ("in 100 hours", "at 03-29 15:20:30", ""),
];

#[test]
fn reads_english() {
    assert_reads(ENGLISH);
}

const GERMAN: &[(&str, &str, &str)] = &[
    (
        "erinnere mich morgen um 9 daran, Anna anzurufen",
        "at 03-26 09:00:00",
        "erinnere mich daran, Anna anzurufen",
    ),
    ("in zwei Stunden", "at 03-25 12:20:30", ""),
    ("in einer Minute Pause", "at 03-25 10:21:30", "Pause"),
    (
        "jeden Montag um 8 Uhr die Platte prüfen",
        "cron 0 8 * * MON",
        "die Platte prüfen",
    ),
    ("jeden Tag um 7:30 Uhr", "cron 30 7 * * *", ""),
    ("täglich um 9 Uhr 30", "cron 30 9 * * *", ""),
    ("alle 15 Minuten", "every 15m", ""),
    ("am Freitag um 17:00", "at 03-27 17:00:00", ""),
    ("montags um 8", "cron 0 8 * * MON", ""),
    ("übermorgen um 18 Uhr", "at 03-27 18:00:00", ""),
    ("heute Abend", "at 03-25 20:00:00", ""),
    ("morgen früh", "at 03-26 09:00:00", ""),
    ("morgen um 8 Uhr abends", "at 03-26 20:00:00", ""),
    ("jeden Werktag um 8", "cron 0 8 * * MON-FRI", ""),
    ("in einer halben Stunde", "at 03-25 10:50:30", ""),
];

#[test]
fn reads_german() {
    assert_reads(GERMAN);
}

const ROMANCE: &[(&str, &str, &str)] = &[
    // Spanish
    (
        "recuérdame mañana a las 9 llamar a Ana",
        "at 03-26 09:00:00",
        "recuérdame llamar a Ana",
    ),
    ("en dos horas", "at 03-25 12:20:30", ""),
    ("dentro de un minuto", "at 03-25 10:21:30", ""),
    ("cada lunes a las 8", "cron 0 8 * * MON", ""),
    ("todos los días a las 7:30", "cron 30 7 * * *", ""),
    ("el viernes a las 17:00", "at 03-27 17:00:00", ""),
    ("mañana por la mañana", "at 03-26 09:00:00", ""),
    ("mañana a las 8 de la tarde", "at 03-26 20:00:00", ""),
    ("cada 15 minutos", "every 15m", ""),
    // French
    (
        "rappelle-moi demain à 9h d'appeler Anne",
        "at 03-26 09:00:00",
        "rappelle-moi d'appeler Anne",
    ),
    ("dans deux heures", "at 03-25 12:20:30", ""),
    ("dans une minute", "at 03-25 10:21:30", ""),
    ("chaque lundi à 8h", "cron 0 8 * * MON", ""),
    ("tous les jours à 7h30", "cron 30 7 * * *", ""),
    ("vendredi à 17h", "at 03-27 17:00:00", ""),
    ("tous les lundis à 8 heures", "cron 0 8 * * MON", ""),
    ("demain à midi", "at 03-26 12:00:00", ""),
    ("ce soir à 21h", "at 03-25 21:00:00", ""),
    // Italian
    (
        "ricordami domani alle 9 di chiamare Anna",
        "at 03-26 09:00:00",
        "ricordami di chiamare Anna",
    ),
    ("tra due ore", "at 03-25 12:20:30", ""),
    ("fra un minuto", "at 03-25 10:21:30", ""),
    ("ogni lunedì alle 8", "cron 0 8 * * MON", ""),
    ("ogni giorno alle 7:30", "cron 30 7 * * *", ""),
    ("venerdì alle 17:00", "at 03-27 17:00:00", ""),
    ("tra mezz'ora", "at 03-25 10:50:30", ""),
    ("stasera alle 21", "at 03-25 21:00:00", ""),
    // Portuguese
    (
        "lembra-me amanhã às 9 de ligar para a Ana",
        "at 03-26 09:00:00",
        "lembra-me de ligar para a Ana",
    ),
    ("em duas horas", "at 03-25 12:20:30", ""),
    ("daqui a um minuto", "at 03-25 10:21:30", ""),
    ("toda segunda-feira às 8", "cron 0 8 * * MON", ""),
    ("todos os dias às 7:30", "cron 30 7 * * *", ""),
    ("na sexta às 17:00", "at 03-27 17:00:00", ""),
    ("a cada 15 minutos", "every 15m", ""),
];

#[test]
fn reads_romance_languages() {
    assert_reads(ROMANCE);
}

/// Every text that is read is a schedule that can be stored.
#[test]
fn what_is_read_is_a_schedule() {
    for sentence in [
        "tomorrow at 9",
        "in two hours",
        "every Monday to Friday at 8",
        "every 2 weeks",
        "every weekend at noon",
        "every 3 days",
        "every first Monday of the month at 9",
        "every last Friday of the month at 9",
        "on the last day of the month at 9",
        "every year on 29 February at 9",
        "twice a day",
    ] {
        let found = read_time(sentence, &now()).unwrap();
        let schedule = Schedule {
            kind: found.kind,
            text: found.text,
            time_zone: "Europe/Berlin".to_owned(),
            anchor: now().timestamp(),
        };
        let table = Timetable::read(&schedule).unwrap();
        assert!(table.next_after(now().timestamp()).is_some(), "{sentence}");
    }
}
