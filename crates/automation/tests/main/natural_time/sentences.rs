//! Sentences and the schedules and texts that they lead to.

use super::{SentenceWork, TimeProblem, now, read_time, shown};

/// The sentence, the schedule, and the reminder or the work.
const SENTENCES: &[(&str, &str, &str)] = &[
    ("remind me tonight at 3 to sleep", "at 03-26 03:00", "sleep"),
    (
        "erinnere mich heute Nacht um 3 Uhr ans Schlafen",
        "at 03-26 03:00",
        "Schlafen",
    ),
    ("remind me tonight at 8 to sleep", "at 03-25 20:00", "sleep"),
    (
        "remind me on 24 December at noon to wrap presents",
        "at 12-24 12:00",
        "wrap presents",
    ),
    (
        "remind me on Dec 24 at noon to wrap presents",
        "at 12-24 12:00",
        "wrap presents",
    ),
    (
        "remind me on December 24th at 10 to wrap presents",
        "at 12-24 10:00",
        "wrap presents",
    ),
    (
        "remind me on the 24th of December at 10am to wrap presents",
        "at 12-24 10:00",
        "wrap presents",
    ),
    (
        "remind me on 12/24 at noon to wrap presents",
        "at 12-24 12:00",
        "wrap presents",
    ),
    (
        "remind me on the 28th at 10 to pay",
        "at 03-28 10:00",
        "pay",
    ),
    (
        "remind me on 24.12. at 10:00 to wrap presents",
        "at 12-24 10:00",
        "wrap presents",
    ),
    (
        "remind me to wrap presents on 24 December 2026 at noon",
        "at 12-24 12:00",
        "wrap presents",
    ),
    (
        "remind me on Friday 27 March at 9 to pay",
        "at 03-27 09:00",
        "pay",
    ),
    (
        "erinnere mich am 24. Dezember um 10 Uhr an die Geschenke",
        "at 12-24 10:00",
        "die Geschenke",
    ),
    (
        "erinnere mich am 24.12. um 10 Uhr an die Geschenke",
        "at 12-24 10:00",
        "die Geschenke",
    ),
    (
        "rappelle-moi le 24 décembre à 10h d'acheter des cadeaux",
        "at 12-24 10:00",
        "acheter des cadeaux",
    ),
    (
        "rappelle-moi le 24/12 à 10h d'acheter des cadeaux",
        "at 12-24 10:00",
        "acheter des cadeaux",
    ),
    (
        "recuérdame el 24 de diciembre a las 10 comprar regalos",
        "at 12-24 10:00",
        "comprar regalos",
    ),
    (
        "ricordami il 24 dicembre alle 10 di comprare i regali",
        "at 12-24 10:00",
        "comprare i regali",
    ),
    (
        "lembre-me no dia 24 de dezembro às 10 de comprar presentes",
        "at 12-24 10:00",
        "comprar presentes",
    ),
    (
        "every first monday of the month at 9 check the disk",
        "cron 0 9 * * MON#1",
        "prompt: check the disk",
    ),
    (
        "monthly on the 1st at 9 check the disk",
        "cron 0 9 1 * *",
        "prompt: check the disk",
    ),
    (
        "on the 1st of every month at 9 check the disk",
        "cron 0 9 1 * *",
        "prompt: check the disk",
    ),
    (
        "remind me every month on the 15th at 9 to pay rent",
        "cron 0 9 15 * *",
        "pay rent",
    ),
    (
        "remind me on the last friday of every month at 4pm to send the invoice",
        "cron 0 16 * * FRI#L",
        "send the invoice",
    ),
    (
        "remind me every year on 24 December at 10 to call Mum",
        "cron 0 10 24 12 *",
        "call Mum",
    ),
    (
        "remind me on weekends at 10 to water the plants",
        "cron 0 10 * * SAT,SUN",
        "water the plants",
    ),
    (
        "remind me on weekdays at 8:15 to stand up",
        "cron 15 8 * * MON-FRI",
        "stand up",
    ),
    (
        "remind me twice a day to drink water",
        "cron 0 9,18 * * *",
        "drink water",
    ),
    (
        "remind me every day at 8 and 20:00 to take the pill",
        "cron 0 8,20 * * *",
        "take the pill",
    ),
    (
        "remind me every Monday to call Ann at 9",
        "cron 0 9 * * MON",
        "call Ann",
    ),
    (
        "erinnere mich jeden Werktag um halb acht an den Bus",
        "cron 30 7 * * MON-FRI",
        "den Bus",
    ),
    (
        "erinnere mich am 1. jedes Monats um 9 an die Miete",
        "cron 0 9 1 * *",
        "die Miete",
    ),
    (
        "erinnere mich jeden ersten Montag im Monat um 9 an die Sitzung",
        "cron 0 9 * * MON#1",
        "die Sitzung",
    ),
    (
        "rappelle-moi le 1er de chaque mois à 9h de payer le loyer",
        "cron 0 9 1 * *",
        "payer le loyer",
    ),
    (
        "rappelle-moi deux fois par jour de boire",
        "cron 0 9,18 * * *",
        "boire",
    ),
    (
        "recuérdame el 1 de cada mes a las 9 pagar el alquiler",
        "cron 0 9 1 * *",
        "pagar el alquiler",
    ),
    (
        "recuérdame los fines de semana a las 10 regar las plantas",
        "cron 0 10 * * SAT,SUN",
        "regar las plantas",
    ),
    (
        "ricordami il primo di ogni mese alle 9 di pagare l'affitto",
        "cron 0 9 1 * *",
        "pagare l'affitto",
    ),
    (
        "ogni lunedì alle 8 controlla il disco",
        "cron 0 8 * * MON",
        "prompt: controlla il disco",
    ),
    (
        "lembre-me no dia 1 de cada mês às 9 de pagar o aluguel",
        "cron 0 9 1 * *",
        "pagar o aluguel",
    ),
    (
        "lembre-me todos os dias às 8 de beber água",
        "cron 0 8 * * *",
        "beber água",
    ),
    (
        "toda segunda-feira às 8 verifica o disco",
        "cron 0 8 * * MON",
        "prompt: verifica o disco",
    ),
    (
        "remind me in 2 hours and 15 minutes to stretch",
        "at 03-25 12:35",
        "stretch",
    ),
    (
        "remind me in an hour and a half to stretch",
        "at 03-25 11:50",
        "stretch",
    ),
    ("remind me in 1h30m to stretch", "at 03-25 11:50", "stretch"),
    (
        "remind me in 2.5 hours to stretch",
        "at 03-25 12:50",
        "stretch",
    ),
    (
        "remind me two hours from now to stretch",
        "at 03-25 12:20",
        "stretch",
    ),
    (
        "remind me in 2 days at 9 to stretch",
        "at 03-27 09:00",
        "stretch",
    ),
    (
        "rappelle-moi dans une heure et demie de partir",
        "at 03-25 11:50",
        "partir",
    ),
    (
        "rappelle-moi dans un quart d'heure de partir",
        "at 03-25 10:35",
        "partir",
    ),
    (
        "recuérdame en una hora y media salir",
        "at 03-25 11:50",
        "salir",
    ),
    (
        "erinnere mich in anderthalb Stunden an den Kuchen",
        "at 03-25 11:50",
        "den Kuchen",
    ),
    (
        "erinnere mich in 1,5 Stunden an den Kuchen",
        "at 03-25 11:50",
        "den Kuchen",
    ),
    (
        "erinnere mich in einer Viertelstunde an den Kuchen",
        "at 03-25 10:35",
        "den Kuchen",
    ),
    (
        "ricordami tra un'ora e mezza di uscire",
        "at 03-25 11:50",
        "uscire",
    ),
    (
        "ricordami tra due ore di portare fuori il cane",
        "at 03-25 12:20",
        "portare fuori il cane",
    ),
    (
        "ricordami fra 10 minuti di uscire",
        "at 03-25 10:30",
        "uscire",
    ),
    ("ricordami tra un'ora di uscire", "at 03-25 11:20", "uscire"),
    (
        "ricordami tra mezz'ora di uscire",
        "at 03-25 10:50",
        "uscire",
    ),
    (
        "lembre-me em uma hora e meia de sair",
        "at 03-25 11:50",
        "sair",
    ),
    ("lembre-me em duas horas de sair", "at 03-25 12:20", "sair"),
    ("lembra-me em meia hora de sair", "at 03-25 10:50", "sair"),
    (
        "remind me at half past 7 to leave",
        "at 03-25 19:30",
        "leave",
    ),
    (
        "remind me tomorrow at quarter to 8 to leave",
        "at 03-26 07:45",
        "leave",
    ),
    (
        "remind me at ten past five to leave",
        "at 03-25 17:10",
        "leave",
    ),
    (
        "remind me this afternoon to call Ann",
        "at 03-25 15:00",
        "call Ann",
    ),
    ("remind me next month to pay", "at 04-01 09:00", "pay"),
    ("remind me next week to pay", "at 03-30 09:00", "pay"),
    ("remind me at 5 to leave", "at 03-25 17:00", "leave"),
    (
        "remind me tomorrow at 5 to leave",
        "at 03-26 17:00",
        "leave",
    ),
    (
        "remind me tomorrow at 6 to leave",
        "at 03-26 06:00",
        "leave",
    ),
    (
        "remind me tomorrow to call Ann at 9",
        "at 03-26 09:00",
        "call Ann",
    ),
    (
        "erinnere mich morgen um halb 8 an den Bus",
        "at 03-26 07:30",
        "den Bus",
    ),
    (
        "erinnere mich um viertel nach 3 an den Bus",
        "at 03-25 15:15",
        "den Bus",
    ),
    (
        "erinnere mich heute Nachmittag an den Bus",
        "at 03-25 15:00",
        "den Bus",
    ),
    (
        "erinnere mich nächsten Monat an die Miete",
        "at 04-01 09:00",
        "die Miete",
    ),
    (
        "erinnere mich um 9 Uhr morgen an den Bus",
        "at 03-26 09:00",
        "den Bus",
    ),
    (
        "rappelle-moi demain à 7 heures et demie de partir",
        "at 03-26 07:30",
        "partir",
    ),
    (
        "rappelle-moi demain à 8h moins le quart de partir",
        "at 03-26 07:45",
        "partir",
    ),
    (
        "rappelle-moi cet après-midi de partir",
        "at 03-25 15:00",
        "partir",
    ),
    (
        "recuérdame mañana a las 7 y media salir",
        "at 03-26 07:30",
        "salir",
    ),
    (
        "recuérdame mañana a las 8 menos cuarto salir",
        "at 03-26 07:45",
        "salir",
    ),
    ("recuérdame esta tarde salir", "at 03-25 15:00", "salir"),
    ("recuérdame el próximo mes pagar", "at 04-01 09:00", "pagar"),
    (
        "ricordami domani alle sette e mezza di uscire",
        "at 03-26 07:30",
        "uscire",
    ),
    (
        "ricordami domani alle otto meno un quarto di uscire",
        "at 03-26 07:45",
        "uscire",
    ),
    ("ricordami stasera di uscire", "at 03-25 20:00", "uscire"),
    (
        "lembre-me amanhã às sete e meia de sair",
        "at 03-26 07:30",
        "sair",
    ),
    ("lembre-me esta tarde de sair", "at 03-25 15:00", "sair"),
    (
        "lembre-me amanhã às 9 de ligar ao médico",
        "at 03-26 09:00",
        "ligar ao médico",
    ),
    ("wake me up at 6", "at 03-26 06:00", "Wake up"),
    ("weck mich morgen um 6", "at 03-26 06:00", "Aufwachen"),
    (
        "remind me tomorrow at 9am EST to call",
        "at 03-26 14:00",
        "call",
    ),
    (
        "remind me tomorrow at 9am UTC to call",
        "at 03-26 10:00",
        "call",
    ),
    (
        "remind me tomorrow at 9 in Tokyo time to call",
        "at 03-26 01:00",
        "call",
    ),
    (
        "remind me tomorrow at 9:00 Europe/London to call",
        "at 03-26 10:00",
        "call",
    ),
    (
        "remind me tomorrow at 9am New York time to call",
        "at 03-26 14:00",
        "call",
    ),
    (
        "erinnere mich bitte morgen um 9 an das Meeting",
        "at 03-26 09:00",
        "das Meeting",
    ),
    (
        "erinnere mich morgen um 9 bitte an das Meeting",
        "at 03-26 09:00",
        "das Meeting",
    ),
    (
        "rappelle-moi demain à 9h d'appeler le dentiste",
        "at 03-26 09:00",
        "appeler le dentiste",
    ),
    (
        "ricordami domani alle 9 della riunione",
        "at 03-26 09:00",
        "riunione",
    ),
    (
        "ricordami domani alle 9 dell'appuntamento",
        "at 03-26 09:00",
        "appuntamento",
    ),
    (
        "remind me tomorrow at 9 to prepare the Monday meeting",
        "at 03-26 09:00",
        "prepare the Monday meeting",
    ),
    (
        "remind me tomorrow at 9 to \"call Ann on Friday at 8\"",
        "at 03-26 09:00",
        "call Ann on Friday at 8",
    ),
    (
        "remind me to buy 2 liters of milk tomorrow at 9",
        "at 03-26 09:00",
        "buy 2 liters of milk",
    ),
    (
        "tomorrow at 9 remind me to call Ann",
        "at 03-26 09:00",
        "call Ann",
    ),
    (
        "remind me tomorrow at 9 to call Ann, please",
        "at 03-26 09:00",
        "call Ann",
    ),
    (
        "every Monday check the disk at 8",
        "cron 0 8 * * MON",
        "prompt: check the disk",
    ),
    (
        "check the disk every Monday at 8",
        "cron 0 8 * * MON",
        "prompt: check the disk",
    ),
    ("at 5pm run df -h", "at 03-25 17:00", "prompt: run df -h"),
    (
        "schedule a backup every day at 2",
        "cron 0 2 * * *",
        "prompt: a backup",
    ),
];

#[test]
fn sentences_have_a_time_and_work() {
    let mut wrong = Vec::new();
    for (sentence, schedule, work) in SENTENCES {
        let read = match read_time(sentence, &now()) {
            Err(error) => format!("{error}"),
            Ok(found) => match found.work(sentence) {
                Ok(SentenceWork::Reminder(text)) => format!("{} | {text}", shown(&found)),
                Ok(SentenceWork::Prompt(text)) => format!("{} | prompt: {text}", shown(&found)),
                Err(error) => format!("{} | {error}", shown(&found)),
            },
        };
        let expected = format!("{schedule} | {work}");
        if read != expected {
            wrong.push(format!("{sentence}\n    {read}\n    {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Sentences that say when, but not what.
const WITHOUT_WORK: &[(&str, TimeProblem, &str)] = &[
    (
        "remind me tomorrow at 9",
        TimeProblem::NoWork,
        "What should I remind you of?",
    ),
    (
        "remind me tomorrow at 9, please",
        TimeProblem::NoWork,
        "What should I",
    ),
    ("erinnere mich morgen um 9", TimeProblem::NoWork, "Woran"),
    (
        "rappelle-moi demain à 9h",
        TimeProblem::NoWork,
        "Que dois-je",
    ),
    (
        "recuérdame mañana a las 9",
        TimeProblem::NoWork,
        "Qué quieres",
    ),
    ("ricordami domani alle 9", TimeProblem::NoWork, "Che cosa"),
    ("lembre-me amanhã às 9", TimeProblem::NoWork, "De que"),
    ("every day at 9", TimeProblem::NoTask, "not what to do"),
];

#[test]
fn sentences_without_work_are_questions() {
    for (sentence, problem, part) in WITHOUT_WORK {
        let found = read_time(sentence, &now()).unwrap();
        let error = found.work(sentence).unwrap_err();
        assert_eq!(error.problem, *problem, "{sentence}");
        assert!(error.to_string().contains(part), "{sentence}: {error}");
    }
}
