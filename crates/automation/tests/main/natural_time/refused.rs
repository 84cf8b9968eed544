//! Sentences that are refused: a time that is understood only in part is not guessed.

use super::{TimeProblem, now, read_time, shown};

/// The sentence, the reason, and a part of the message.
const REFUSED: &[(&str, TimeProblem, &str)] = &[
    (
        "remind me in -5 minutes to stretch",
        TimeProblem::NotUnderstood,
        "in -5 minutes",
    ),
    (
        "remind me every other day at 9 to stretch",
        TimeProblem::NotUnderstood,
        "every other day",
    ),
    (
        "remind me on christmas at 9 to call Mum",
        TimeProblem::NotUnderstood,
        "christmas",
    ),
    (
        "remind me on my birthday at 9 to call Mum",
        TimeProblem::NotUnderstood,
        "on my birthday",
    ),
    (
        "remind me at 9 on my birthday to call Mum",
        TimeProblem::NotUnderstood,
        "on my birthday",
    ),
    (
        "on my birthday at 9 check the disk",
        TimeProblem::NotUnderstood,
        "on my birthday",
    ),
    (
        "remind me to do it",
        TimeProblem::NoTime,
        "remind me to do it",
    ),
    (
        "remind me yesterday to do it",
        TimeProblem::Past,
        "yesterday",
    ),
    (
        "remind me today at 08:00 to do it",
        TimeProblem::Past,
        "today at 08:00",
    ),
    (
        "remind me on 3/4 at 9 to pay",
        TimeProblem::TwoDates,
        "4 March 2027",
    ),
    (
        "remind me on Friday 28 March at 9 to pay",
        TimeProblem::WrongWeekday,
        "Friday 28 March",
    ),
    (
        "remind me tomorrow at 9 in Narnia time to pay",
        TimeProblem::UnknownZone,
        "narnia",
    ),
    (
        "remind me tomorrow at 9 Europe/Narnia to pay",
        TimeProblem::UnknownZone,
        "europe/narnia",
    ),
    (
        "remind me at 9 to call Ann tomorrow",
        TimeProblem::Apart,
        "tomorrow",
    ),
    (
        "remind me every day at 9 for 2 weeks to take the pill",
        TimeProblem::NotUnderstood,
        "2 weeks",
    ),
    (
        "remind me every day at 9 until friday to take the pill",
        TimeProblem::NotUnderstood,
        "friday",
    ),
    (
        "remind me every Monday at 8 and Thursday at 9 to call",
        TimeProblem::NotUnderstood,
        "Thursday",
    ),
    (
        "remind me every day at 9:00 and 18:30 to call",
        TimeProblem::NotUnderstood,
        "18:30",
    ),
    (
        "remind me every month to pay",
        TimeProblem::NotUnderstood,
        "every month",
    ),
    (
        "remind me every two weeks on Monday at 9 to pay",
        TimeProblem::NotUnderstood,
        "weeks",
    ),
    (
        "remind me tomorrow at 9-10 to pay",
        TimeProblem::NotUnderstood,
        "9-10",
    ),
    (
        "remind me in a few hours to pay",
        TimeProblem::NotUnderstood,
        "in a few",
    ),
    (
        "remind me later to pay",
        TimeProblem::NotUnderstood,
        "later",
    ),
    (
        "erinnere mich jeden zweiten Tag um 9 an den Müll",
        TimeProblem::NotUnderstood,
        "jeden zweiten",
    ),
    (
        "erinnere mich in zweiundzwanzig Minuten an den Kuchen",
        TimeProblem::NotUnderstood,
        "zweiundzwanzig Minuten",
    ),
    (
        "erinnere mich gestern an den Kuchen",
        TimeProblem::Past,
        "gestern",
    ),
    (
        "erinnere mich an Weihnachten um 9 an Oma",
        TimeProblem::NotUnderstood,
        "Weihnachten",
    ),
    (
        "rappelle-moi un jour sur deux à 9h de courir",
        TimeProblem::NotUnderstood,
        "un jour sur",
    ),
    ("rappelle-moi hier de courir", TimeProblem::Past, "hier"),
    (
        "recuérdame cada dos semanas el lunes a las 9 correr",
        TimeProblem::NotUnderstood,
        "semanas",
    ),
    (
        "recuérdame en navidad a las 9 llamar",
        TimeProblem::NotUnderstood,
        "navidad",
    ),
    (
        "ricordami a Natale alle 9 di chiamare",
        TimeProblem::NotUnderstood,
        "Natale",
    ),
    (
        "ricordami ogni due giorni alle 9 di correre",
        TimeProblem::NotUnderstood,
        "ogni due giorni",
    ),
    (
        "lembre-me no Natal às 9 de ligar",
        TimeProblem::NotUnderstood,
        "Natal",
    ),
    ("lembre-me ontem de ligar", TimeProblem::Past, "ontem"),
    ("", TimeProblem::NoTime, ""),
    (
        "remind me to call Ann",
        TimeProblem::NoTime,
        "There is no time",
    ),
    (
        "erinnere mich an den Kuchen",
        TimeProblem::NoTime,
        "keine Zeit",
    ),
    ("what is in the box", TimeProblem::NoTime, ""),
    ("compare version 9 and 10", TimeProblem::NoTime, ""),
    ("today", TimeProblem::NoTime, "today"),
    ("every file", TimeProblem::NoTime, ""),
    ("meet me at the station", TimeProblem::NoTime, ""),
    ("compra a 5 euro", TimeProblem::NoTime, ""),
    ("in 0 minutes", TimeProblem::NotUnderstood, ""),
    ("at 25:00", TimeProblem::NoTime, ""),
    ("🙂 : . - '", TimeProblem::NoTime, ""),
];

#[test]
fn half_understood_times_are_refused() {
    let mut wrong = Vec::new();
    for (sentence, problem, part) in REFUSED {
        match read_time(sentence, &now()) {
            Ok(found) => wrong.push(format!("{sentence}: {} {}", shown(&found), found.rest)),
            Err(error) if error.problem != *problem || !error.to_string().contains(part) => {
                wrong.push(format!("{sentence}: {:?} {error}", error.problem));
            }
            Err(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
