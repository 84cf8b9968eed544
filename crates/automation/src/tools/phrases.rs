//! Phrases of the tools for the offline model, in the languages that [`crate::natural_time`] reads.
//!
//! Sentences with a time are passed on whole: `{when=request}`.

/// Units and days are listed, so that a sentence without a time is not taken for a job.
pub(super) const CRON_ADD: [&str; 111] = [
    // English
    "wake me [up] {_} {when=request}",
    "(monthly|weekly|yearly|annually) {_} {when=request}",
    "(twice|once) (a|an|every) {_} {when=request}",
    "on (the|weekdays|weekends|workdays) {_} {when=request}",
    "on {_:word} (january|february|march|april|may|june|july|august|september|october|november|december) {_} {when=request}",
    "{_} (twice a day|monthly|on weekdays|on weekends) {when=request}",
    "{_} on (weekdays|weekends) at {_} {when=request}",
    "{_} at {_:word} every {_} {when=request}",
    "(weck|wecke) mich {_} {when=request}",
    "(despiértame|despiérteme) {_} {when=request}",
    "(réveille-moi|réveille moi|réveillez-moi) {_} {when=request}",
    "svegliami {_} {when=request}",
    "(acorda-me|acorde-me|me acorde|me acorda) {_} {when=request}",
    "remind me {_} {when=request}",
    "(set|create|add|schedule) [me] a reminder {_} {when=request}",
    "every {_} {when=request}",
    "each {_} {when=request}",
    "every {_} in the background {when=request}",
    "in {_:word} (second|minute|hour|day|week|month) {_} {when=request}",
    "in {_:word} (second|minute|hour|day|week|month) {_} in the background {when=request}",
    "in half an hour {_} {when=request}",
    "(tomorrow|tonight) {_} {when=request}",
    "(this|tomorrow) (morning|afternoon|evening) {_} {when=request}",
    "the day after tomorrow {_} {when=request}",
    "today at {_} {when=request}",
    "at {_:word} {_} {when=request}",
    "(on|next|this) (monday|tuesday|wednesday|thursday|friday|saturday|sunday) {_} {when=request}",
    "{_} in {_:word} (second|minute|hour|day|week|month) {when=request}",
    "{_} in half an hour {when=request}",
    "{_} (tomorrow|tonight) {when=request}",
    "{_} tomorrow (morning|afternoon|evening) {when=request}",
    "{_} tomorrow at {_} {when=request}",
    "{_} today at {_} {when=request}",
    "{_} at {_:word} tomorrow {when=request}",
    "{_} (on|next|every|each) (monday|tuesday|wednesday|thursday|friday|saturday|sunday) {when=request}",
    "{_} (on|next|every|each) (monday|tuesday|wednesday|thursday|friday|saturday|sunday) at {_} {when=request}",
    "{_} (every|each) (minute|hour|day|morning|afternoon|evening|week|weekday|workday|weekend) {when=request}",
    "{_} (every|each) (day|morning|evening|weekday|workday|weekend) at {_} {when=request}",
    "{_} every {_:word} (minute|hour|day|week) {when=request}",
    "{_} (daily|hourly) {when=request}",
    "{_} daily at {_} {when=request}",
    "schedule {_} {when=request}",
    "(add|create|make) [a] [new] (cron|scheduled|) job (to|that|which) {when}",
    // German
    "(erinnere|erinner) mich {_} {when=request}",
    "(jeden|jede|jedes) {_} {when=request}",
    "alle {_:word} (sekunden|minuten|stunden|tage|wochen) {_} {when=request}",
    "in {_:word} (sekunde|sekunden|minute|minuten|stunde|stunden|tag|tagen|woche|wochen|monat|monaten) {_} {when=request}",
    "in einer halben stunde {_} {when=request}",
    "(morgen|übermorgen) {_} {when=request}",
    "heute (abend|um|nachmittag) {_} {when=request}",
    "um {_:word} [uhr] {_} {when=request}",
    "am (montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag) {_} {when=request}",
    "{_} in {_:word} (sekunde|sekunden|minute|minuten|stunde|stunden|tag|tagen|woche|wochen) {when=request}",
    "{_} (jeden|jede|jedes) (minute|stunde|tag|morgen|abend|woche|werktag|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag) {when=request}",
    "{_} (jeden|jede|jedes) (tag|morgen|abend|werktag|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag) um {_} {when=request}",
    "{_} alle {_:word} (minuten|stunden|tage|wochen) {when=request}",
    "{_} (morgen|übermorgen) um {_} {when=request}",
    "{_} täglich um {_} {when=request}",
    // Spanish
    "(recuérdame|recuérdeme) {_} {when=request}",
    "(cada|todos los|todas las) {_} {when=request}",
    "(en|dentro de) {_:word} (segundo|segundos|minuto|minutos|hora|horas|día|días|semana|semanas|mes|meses) {_} {when=request}",
    "en media hora {_} {when=request}",
    "(mañana|pasado mañana|esta noche) {_} {when=request}",
    "a las {_:word} {_} {when=request}",
    "el (lunes|martes|miércoles|jueves|viernes|sábado|domingo) {_} {when=request}",
    "{_} (en|dentro de) {_:word} (segundo|segundos|minuto|minutos|hora|horas|día|días|semana|semanas) {when=request}",
    "{_} (cada|todos los|todas las) (minuto|hora|horas|día|días|semana|semanas|mañana|mañanas|noche|noches|lunes|martes|miércoles|jueves|viernes|sábado|domingo) {when=request}",
    "{_} (cada|todos los|todas las) (día|días|mañana|mañanas|lunes|martes|miércoles|jueves|viernes|sábado|domingo) a las {_} {when=request}",
    "{_} (mañana|pasado mañana) {when=request}",
    "{_} (mañana|pasado mañana) a las {_} {when=request}",
    "(programa|planifica) {_} {when=request}",
    // French
    "(rappelle-moi|rappelle moi|rappelez-moi|rappelez moi) {_} {when=request}",
    "(chaque|tous les|toutes les) {_} {when=request}",
    "dans {_:word} (seconde|secondes|minute|minutes|heure|heures|jour|jours|semaine|semaines|mois) {_} {when=request}",
    "dans une demi-heure {_} {when=request}",
    "(demain|après-demain|ce soir) {_} {when=request}",
    "{_} dans {_:word} (seconde|secondes|minute|minutes|heure|heures|jour|jours|semaine|semaines) {when=request}",
    "{_} (chaque|tous les|toutes les) (minute|minutes|heure|heures|jour|jours|matin|matins|soir|soirs|semaine|semaines|lundi|lundis|mardi|mardis|mercredi|jeudi|jeudis|vendredi|vendredis|samedi|dimanche) {when=request}",
    "{_} (chaque|tous les) (jour|jours|matin|matins|lundi|lundis|mardi|mercredi|jeudi|vendredi|samedi|dimanche) à {_} {when=request}",
    "{_} (demain|après-demain) {when=request}",
    "{_} (demain|après-demain) à {_} {when=request}",
    "(planifie|programme) {_} {when=request}",
    // Italian
    "ricordami {_} {when=request}",
    "(ogni|tutti i|tutte le) {_} {when=request}",
    "(tra|fra) {_:word} (secondo|secondi|minuto|minuti|ora|ore|giorno|giorni|settimana|settimane|mese|mesi) {_} {when=request}",
    "(tra|fra) mezz'ora {_} {when=request}",
    "(domani|dopodomani|stasera) {_} {when=request}",
    "{_} (tra|fra) {_:word} (secondo|secondi|minuto|minuti|ora|ore|giorno|giorni|settimana|settimane) {when=request}",
    "{_} ogni (minuto|ora|giorno|mattina|sera|settimana|lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica) {when=request}",
    "{_} ogni (giorno|mattina|sera|lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica) alle {_} {when=request}",
    "{_} ogni {_:word} (minuti|ore|giorni|settimane) {when=request}",
    "{_} (domani|dopodomani) {when=request}",
    "{_} (domani|dopodomani) alle {_} {when=request}",
    "(pianifica|programma) {_} {when=request}",
    // Portuguese
    "(lembra-me|lembre-me|lembra me|lembre me|me lembre|me lembra) {_} {when=request}",
    "(todo|toda|todos os|todas as) {_} {when=request}",
    "(em|daqui a) {_:word} (segundo|segundos|minuto|minutos|hora|horas|dia|dias|semana|semanas|mês|meses) {_} {when=request}",
    "(em|daqui a) meia hora {_} {when=request}",
    "(amanhã|depois de amanhã) {_} {when=request}",
    "(hoje à noite|esta noite) {_} {when=request}",
    "na (segunda|terça|quarta|quinta|sexta) {_} {when=request}",
    "na (segunda-feira|terça-feira|quarta-feira|quinta-feira|sexta-feira) {_} {when=request}",
    "no (sábado|domingo) {_} {when=request}",
    "{_} (em|daqui a) {_:word} (segundo|segundos|minuto|minutos|hora|horas|dia|dias|semana|semanas) {when=request}",
    "{_} (cada|todo o|todos os|todas as|toda) (minuto|minutos|hora|horas|dia|dias|manhã|manhãs|noite|noites|semana|semanas) {when=request}",
    "{_} (todos os dias|todas as manhãs|todo dia) às {_} {when=request}",
    "{_} toda (segunda|terça|quarta|quinta|sexta|segunda-feira|terça-feira|quarta-feira|quinta-feira|sexta-feira) {when=request}",
    "{_} toda (segunda|terça|quarta|quinta|sexta|segunda-feira|terça-feira|quarta-feira|quinta-feira|sexta-feira) às {_} {when=request}",
    "{_} (amanhã|depois de amanhã) {when=request}",
    "{_} (amanhã|depois de amanhã) às {_} {when=request}",
    "(agende|programe) {_} {when=request}",
];

pub(super) const CRON_LIST: [&str; 15] = [
    "(what is|whats) (scheduled|planned|on the schedule)",
    "(what|which) (jobs|reminders|cron jobs|scheduled jobs) (are there|do i have|are scheduled|are planned)",
    "(show|list) [me] [all] [of] [my] [the] (jobs|reminders|cron jobs|scheduled jobs|scheduled tasks|schedule|schedules)",
    "when (is|are) (my|the) next (job|jobs|reminder|reminders)",
    "was ist (geplant|eingeplant)",
    "(zeige|zeig|liste) [mir] [alle] [meine] [die] (jobs|erinnerungen|geplanten aufgaben|aufgaben)",
    "welche (jobs|erinnerungen|aufgaben) (gibt es|habe ich|sind geplant)",
    "qué (está|hay) (programado|planificado)",
    "(muestra|muéstrame|lista) [todos] [mis] [los] (trabajos|recordatorios|trabajos programados|jobs)",
    "(qu'est-ce qui|que) est (prévu|planifié|programmé)",
    "(montre|montre-moi|liste) [tous] [mes] [les] (rappels|jobs|tâches planifiées|tâches programmées)",
    "(cosa|che cosa) è (programmato|pianificato|previsto)",
    "(mostra|mostrami|elenca) [tutti] [i] [miei] (promemoria|job|lavori|lavori programmati)",
    "o que está (agendado|programado|planejado)",
    "(mostra|mostre|lista|liste) [todos] [os] [meus] (lembretes|jobs|trabalhos|agendamentos)",
];

pub(super) const CRON_HISTORY: [&str; 11] = [
    "what did [the] [my] (job|cron job|reminder) {job} do",
    "what happened (with|to) [the] [my] (job|cron job|reminder) {job}",
    "(show|list) [me] [the] (history|runs|results) of [the] [my] (job|cron job|) {job}",
    "(did|has) [the] [my] (job|cron job) {job} (run|work|fail|worked|failed)",
    "how did [the] [my] (job|cron job) {job} (go|end|run)",
    "(show|list) [me] [the] history of [all] [the] [my] jobs",
    "was hat der job {job} (gemacht|getan)",
    "qué (hizo|ha hecho) el trabajo {job}",
    "(qu'a fait|qu'est-ce qu'a fait) (le job|la tâche) {job}",
    "(cosa|che cosa) ha fatto il (job|lavoro) {job}",
    "o que fez o (job|trabalho) {job}",
];

pub(super) const CRON_RUN: [&str; 6] = [
    "(run|start|trigger|execute) [the] [my] (job|cron job|scheduled job) {job}",
    "(starte|führe) den job {job}",
    "(ejecuta|inicia) el trabajo {job}",
    "(lance|exécute) (le job|la tâche) {job}",
    "(esegui|avvia) il (job|lavoro) {job}",
    "(executa|execute|inicia|inicie) o (job|trabalho) {job}",
];

pub(super) const CRON_PAUSE: [&str; 7] = [
    "(pause|suspend|disable|stop) [the] [my] (job|reminder|cron job|scheduled job) {job}",
    "(pause|suspend|disable|stop) [the] [my] (job|reminder|cron job|scheduled job) (called|named|to) {job}",
    "(pausiere|stoppe|unterbrich) (den job|die erinnerung) {job}",
    "(pausa|detén|suspende) (el trabajo|el recordatorio|el job) {job}",
    "(suspends|mets en pause|arrête) (le job|le rappel|la tâche) {job}",
    "(sospendi|metti in pausa|ferma) (il job|il promemoria|il lavoro) {job}",
    "(pausa|pause|suspende|suspenda) (o job|o lembrete|o trabalho) {job}",
];

pub(super) const CRON_RESUME: [&str; 7] = [
    "(resume|unpause|enable|continue|reactivate) [the] [my] (job|reminder|cron job|scheduled job) {job}",
    "(resume|unpause|enable|continue|reactivate) [the] [my] (job|reminder|cron job|scheduled job) (called|named|to) {job}",
    "(aktiviere|reaktiviere) (den job|die erinnerung) {job}",
    "(reanuda|activa|reactiva) (el trabajo|el recordatorio|el job) {job}",
    "(reprends|active|réactive) (le job|le rappel|la tâche) {job}",
    "(riprendi|attiva|riattiva) (il job|il promemoria|il lavoro) {job}",
    "(retoma|retome|ativa|ative|reativa|reative) (o job|o lembrete|o trabalho) {job}",
];

pub(super) const CRON_REMOVE: [&str; 19] = [
    "(remove|delete|cancel|stop) [the] [my] (job|reminder|cron job|scheduled job)",
    "(remove|delete|cancel|stop) {job:word} [of] [the] [my] (jobs|reminders|scheduled jobs)",
    "(lösche|entferne|storniere|stoppe) (meine|die) erinnerung",
    "(lösche|entferne|storniere|stoppe) {job:word} [meine] (erinnerungen|jobs)",
    "(elimina|borra|cancela|quita) (mi|el) recordatorio",
    "(elimina|borra|cancela|quita) {job:word} (los|mis) recordatorios",
    "(supprime|annule|efface) (mon|le) rappel",
    "(supprime|annule|efface) {job:word} (les|mes) rappels",
    "(elimina|cancella|annulla|rimuovi) il [mio] promemoria",
    "(elimina|cancella|annulla|rimuovi) {job:word} (i|i miei) promemoria",
    "(remova|apaga|apague|cancela|cancele) (o|o meu|meu) lembrete",
    "(remova|apaga|apague|cancela|cancele) {job:word} os [meus] lembretes",
    "(remove|delete|cancel) [the] [my] (job|reminder|cron job|scheduled job) {job}",
    "(remove|delete|cancel) [the] [my] (job|reminder|cron job|scheduled job) (called|named|to) {job}",
    "(lösche|entferne|storniere) (den job|die erinnerung|die erinnerung an) {job}",
    "(elimina|borra|cancela|quita) (el trabajo|el recordatorio|el job) {job}",
    "(supprime|annule|efface) (le job|le rappel|la tâche) {job}",
    "(elimina|cancella|annulla|rimuovi) (il job|il promemoria|il lavoro) {job}",
    "(remove|remova|apaga|apague|cancela|cancele) (o job|o lembrete|o trabalho) {job}",
];

pub(super) const BG_SUBMIT: [&str; 8] = [
    "{prompt} in the background",
    "in the background {prompt}",
    "(start|create|submit|make) [a] [new] background task (to|that|for|which) {prompt}",
    "{prompt} im hintergrund [aus]",
    "{prompt} en segundo plano",
    "{prompt} (en arrière-plan|en arrière plan)",
    "{prompt} in (background|sottofondo|secondo piano)",
    "{prompt} em segundo plano",
];

pub(super) const BG_STATUS: [&str; 4] = [
    "(show|what is|whats) [me] [the] (status|state) of [the] [background] task {task_id:word}",
    "(status|state) of [the] [background] task {task_id:word}",
    "how is [the] [background] task {task_id:word} (doing|going|)",
    "is [the] [background] task {task_id:word} (done|finished|ready|running|still running)",
];

pub(super) const BG_RESULT: [&str; 7] = [
    "(show|get|what is|whats) [me] [the] result of [the] [background] task {task_id:word}",
    "what did [the] [background] task {task_id:word} (do|find|return|say|find out)",
    "(zeige|zeig|was ist) [mir] das ergebnis (von|der) [aufgabe] {task_id:word}",
    "(muestra|cuál es|dame) el resultado de la tarea {task_id:word}",
    "(montre|donne) [moi] le résultat de la tâche {task_id:word}",
    "(mostra|mostrami) il risultato (del task|dell'attività) {task_id:word}",
    "(mostra|mostre) o resultado da tarefa {task_id:word}",
];

pub(super) const BG_LIST: [&str; 9] = [
    "(show|list) [me] [all] [my] [the] (background tasks|background jobs|tasks in the background)",
    "[my] [the] background tasks",
    "(what is|whats|what) (running|runs|going on) in the background",
    "(what|which) background tasks (are there|are running|do i have)",
    "(zeige|zeig|liste) [mir] [alle] [meine] [die] hintergrundaufgaben",
    "(was läuft|welche aufgaben laufen) im hintergrund",
    "(muestra|lista|qué) [mis] [las] tareas (hay|están|) en segundo plano",
    "(montre|liste) [mes] [les] tâches en arrière-plan",
    "(mostra|mostre|elenca|lista|liste) [i] [le] [as] [minhas] (task|attività|tarefas) (in background|em segundo plano)",
];

pub(super) const BG_CANCEL: [&str; 4] = [
    "(cancel|stop|abort|kill) [the] [my] [background] task {task_id:word}",
    "(stoppe|beende|storniere) [die] [hintergrundaufgabe] [aufgabe] {task_id:word}",
    "(cancela|detén|annulla|ferma|cancele) (la tarea|il task|a tarefa) {task_id:word}",
    "(annule|arrête) la tâche {task_id:word} en arrière-plan",
];

pub(super) const WORKFLOW_RUN: [&str; 8] = [
    "(run|start|execute|launch) [the] [my] workflow {name}",
    "(run|start|execute|launch) [the] [my] {name:word} workflow",
    "(run|start|execute|launch) [the] workflow file {file_path:word}",
    "(starte|führe) den workflow {name}",
    "(ejecuta|inicia|lanza) el (workflow|flujo|flujo de trabajo) {name}",
    "(lance|exécute|démarre) le (workflow|flux) {name}",
    "(esegui|avvia|lancia) il (workflow|flusso) {name}",
    "(executa|execute|inicia|inicie|roda|rode) o (workflow|fluxo) {name}",
];

pub(super) const WORKFLOW_STATUS: [&str; 4] = [
    "(show|what is|whats) [me] [the] (status|state) of [the] [workflow] run {run_id:word}",
    "(status|state) of [the] [workflow] run {run_id:word}",
    "(show|what is|whats) [me] [the] (workflow status|status of the workflow)",
    "how is [the] [my] workflow (doing|going)",
];

pub(super) const WORKFLOW_LIST: [&str; 7] = [
    "(show|list) [me] [all] [my] [the] [saved] workflows",
    "(what|which) workflows (are there|do i have|are saved|exist)",
    "(zeige|zeig|liste) [mir] [alle] [meine] [die] workflows",
    "(muestra|lista) [mis] [los] (workflows|flujos|flujos de trabajo)",
    "(montre|liste) [mes] [les] workflows",
    "(mostra|elenca) [i] [miei] workflow",
    "(mostra|mostre|lista|liste) [os] [meus] workflows",
];

pub(super) const WORKFLOW_VALIDATE: [&str; 2] = [
    "(validate|check) [the] workflow file {file_path:word}",
    "(validate|check) [the] workflow {file_path:word}",
];

pub(super) const WORKFLOW_CANCEL: [&str; 1] =
    ["(cancel|stop|abort) [the] (workflow|workflow run|run) {run_id:word}"];

pub(super) const WORKFLOW_RETRY: [&str; 3] = [
    "(retry|repeat) [the] (workflow|workflow run|run) {run_id:word}",
    "(retry|repeat) [the] (workflow|workflow run|run) {run_id:word} from [the] [step] {from:word}",
    "(retry|repeat) [the] (workflow|workflow run|run) {run_id:word} without [the] [step] {skip:word}",
];

pub(super) const WORKFLOW_APPROVE: [&str; 2] = [
    "{decision:word} [the] step {step:word} of [the] (workflow|workflow run|run) {run_id:word}",
    "(approve|continue) [the] (workflow|workflow run|run) {run_id:word}",
];
