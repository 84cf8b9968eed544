//! Whether a sentence wants something done or said. Such a sentence tells nothing about the user's own world, whatever
//! words it repeats: "forget that my sister is called Anna" is no answer to who the sister is.

use crate::memory::normalize_words;

/// What may stand before a request and changes nothing about it.
const OPENERS: &str = "ok, okay, well, and, so, now, then, hey, hi, hello, oh, also, just, but, lango, yes, no, thanks, \
    actually, danke, ja, nein, also, und, dann, bueno, si, y, vale, gracias, merci, oui, non, et, alors, grazie, allora, e";

/// How requests begin: an order, a wish that somebody else does something, or what keeps from answering.
const ORDER_PHRASES: &str = "please, kindly, forget, unlearn, remember, delete, erase, remove, drop, clear, run, show, list, search, \
    find, look, stop, cancel, abort, quit, exit, undo, read, open, send, write, create, make, save, keep, note, store, \
    tell, say, explain, describe, summarise, summarize, translate, fix, change, update, add, put, set, give, get, fetch, \
    check, test, build, start, restart, install, download, ask, skip, dismiss, ignore, do, dont, never, not, let, lets, \
    can you, could you, would you, will you, i want you to, i need you to, i would like you to, id like you to, \
    you should, you must, go ahead, \
    bitte, vergiss, vergesst, losche, losch, entferne, merk dir, merke dir, erinnere, denk daran, zeig, zeige, such, suche, \
    finde, starte, stopp, stoppe, halt, brich, lies, offne, sende, schick, schreib, schreibe, mach, erstelle, sag, kannst du, \
    konntest du, wurdest du, ich will dass du, ich mochte dass du, du sollst, \
    por favor, olvida, olvidate, olvide, borra, elimina, quita, recuerda, ejecuta, muestra, muestrame, lista, busca, para, \
    cancela, lee, abre, envia, escribe, crea, dime, puedes, podrias, quiero que, \
    sil te plait, sil vous plait, oublie, oubliez, efface, supprime, enleve, souviens toi, rappelle toi, lance, execute, \
    montre, liste, cherche, trouve, arrete, annule, lis, ouvre, envoie, ecris, cree, dis, peux tu, pourrais tu, je veux que, \
    je voudrais que, ne, \
    per favore, dimentica, scorda, cancella, rimuovi, ricorda, ricordati, esegui, mostra, elenca, cerca, trova, ferma, \
    annulla, leggi, apri, invia, scrivi, dimmi, puoi, potresti, voglio che";

/// How orders begin or end where words have no spaces between them, or verbs stand last.
const ORDER_PHRASES_UNSPACED: &str = "해줘, 해 줘, 해주세요, 해 주세요, 하세요, 하십시오, 잊어, 잊으, 지워, 삭제, 기억해, 보여, 찾아, 검색, 멈춰, 취소, 그만, \
    してください, して下さい, 忘れて, 消して, 削除, 覚えて, 見せて, 探して, 検索, 止めて, やめて, 请, 忘记, 忘掉, 删除, 记住, 显示, 列出, 搜索, 停止, \
    取消, 帮我";

/// How questions begin that have no mark at their end.
const QUESTION_PHRASES: &str = "what, whats, who, whos, whom, whose, which, when, where, why, how, does, did, is, are, was, were, am, \
    can, could, should, would, shall, will you, will i, will it, will we, will the, will my, will there, \
    was, wer, wen, wem, wessen, welche, welcher, welches, wann, wo, wohin, woher, warum, wieso, weshalb, wie, \
    que, quien, cual, cuando, donde, por que, como, cuanto, \
    quoi, qui, quel, quelle, quand, ou, pourquoi, comment, combien, est ce, quest ce, \
    che cosa, cosa, chi, quale, dove, perche, quanto";

/// What asks to have something forgotten, wherever the politeness before it ends.
const FORGET_WORDS: &str = "forget, unlearn, erase, vergiss, vergesst, olvida, olvidate, olvide, oublie, oubliez, dimentica, scorda";
const FORGET_WORDS_UNSPACED: &str = "잊어, 잊으, 忘れて, 忘记, 忘掉";
/// So many words of politeness may stand before it.
const MAX_POLITE: usize = 6;

/// Orders to do away with something. What they repeat is told in order to be gone.
const DELETE_WORDS: &str =
    "forget, unlearn, erase, delete, remove, discard, wipe, purge, scrub, disregard";
const NEGATIONS: &str =
    "dont, not, never, no, stop, quit, avoid, shouldnt, mustnt, neednt, cannot, cant, wont";
const KEEP_WORDS: &str = "remember, remembering, memorise, memorising, memorize, memorizing, save, saving, keep, keeping, \
    note, noting, store, storing, learn, learning, record, recording, retain, retaining";
/// What may stand before and between these words without saying anything by itself.
const POLITE_WORDS: &str = "please, kindly, just, also, now, you, can, could, would, will, should, may, must, might, do, i, we, id, \
    wed, want, wanted, need, like, rather, prefer, have, to, there, theres, is, it, ever, even, bother, any, longer, more, feel, free, \
    lets, let, us, go, ahead, and, ok, okay, well, so, then, hey, lango, actually, but, yes, thanks";

/// Whether a sentence asks, orders or wishes.
pub(crate) fn is_request(sentence: &str) -> bool {
    let words = normalize_words(sentence);
    let is_begun = |list: &'static str| {
        sentence_starts(&words, sentence)
            .any(|begun| split_phrases(list).any(|row| starts_with_phrase(begun, row)))
    };
    is_question(sentence)
        || is_begun(ORDER_PHRASES)
        || is_begun(QUESTION_PHRASES)
        || split_phrases(ORDER_PHRASES_UNSPACED).any(|order| sentence.contains(order))
        || sentence.trim_start().starts_with('/')
        || is_delete_order(sentence)
}

/// Whether a sentence asks for something to be forgotten.
pub(crate) fn is_forget_request(sentence: &str) -> bool {
    let words = normalize_words(sentence);
    let is_meant = |word: &String| split_phrases(FORGET_WORDS).any(|forgetting| forgetting == word);
    let refuses =
        |pair: &[String]| ["dont", "not", "never"].contains(&&*pair[0]) && is_meant(&pair[1]);
    let is_asked = sentence_starts(&words, sentence).any(|begun| {
        let polite = if is_request(sentence) { MAX_POLITE } else { 1 };
        begun.iter().take(polite).any(is_meant)
    });
    let is_unspaced =
        || split_phrases(FORGET_WORDS_UNSPACED).any(|forgetting| sentence.contains(forgetting));
    !words.windows(2).any(refuses) && (is_asked || is_unspaced() || is_delete_order(sentence))
}

/// Whether a clause orders to do away with something, or not to keep it: "you can delete that", "don't save it".
fn is_delete_order(sentence: &str) -> bool {
    sentence.split([',', ':', '—', '–', '(']).any(|clause| {
        let words = normalize_words(clause);
        let is_of = |list: &'static str, word: &String| split_phrases(list).any(|row| row == word);
        let Some(at) = words
            .iter()
            .position(|word| !is_of(POLITE_WORDS, word) && !is_of(NEGATIONS, word))
        else {
            return false;
        };
        let (before, order) = (&words[..at], &words[at]);
        // "I never save" tells of oneself; "I want you to save" asks.
        let holds = |list: &'static str| {
            before
                .iter()
                .any(|word| split_phrases(list).any(|row| row == word))
        };
        let is_order = !holds("i, we, id, wed") || holds("you");
        let is_negated = before.iter().any(|word| is_of(NEGATIONS, word));
        is_order
            && if is_negated {
                is_of(KEEP_WORDS, order)
            } else {
                is_of(DELETE_WORDS, order)
            }
    })
}

fn is_question(sentence: &str) -> bool {
    sentence.contains('¿')
        || sentence
            .trim_end_matches(['"', '”', ')', ' '])
            .ends_with(['?', '？', '؟'])
}

/// The words behind what only opens a sentence, and those behind a name that is called: "Ada, forget that".
fn sentence_starts<'a>(words: &'a [String], sentence: &str) -> impl Iterator<Item = &'a [String]> {
    let calls_somebody = sentence
        .split_whitespace()
        .next()
        .is_some_and(|first| first.ends_with([',', ':']));
    let called = words
        .get(1..)
        .filter(|behind| calls_somebody && !behind.is_empty());
    [Some(words), called]
        .into_iter()
        .flatten()
        .map(|mut begun| {
            while begun.len() > 1 && split_phrases(OPENERS).any(|opener| opener == begun[0]) {
                begun = &begun[1..];
            }
            begun
        })
}

fn starts_with_phrase(words: &[String], row: &str) -> bool {
    let mut words = words.iter();
    row.split(' ')
        .all(|word| words.next().is_some_and(|said| said == word))
}

fn split_phrases(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.split(',').map(str::trim)
}

/// Ways to say that something is not to be kept, for the tests of whoever keeps things.
#[cfg(test)]
pub(crate) const FORGET_REQUESTS: [&str; 20] = [
    "don't remember that my cat is called Xylo",
    "Don’t remember that my cat is called Xylo.",
    "please do not remember that I prefer tea",
    "do not save that I prefer tea",
    "delete the memory that I love tea",
    "Delete the fact that my name is Ada.",
    "could you remove the note that my sister is Anna",
    "you can forget that I love tea",
    "you may now forget that my name is Ada",
    "please remove from your memory that my cat is called Xylo",
    "stop remembering that I love tea",
    "never store that I live in Rome",
    "I don't want you to remember that I prefer tea",
    "I'd like you to erase that my name is Ada",
    "no need to remember that I live in Rome",
    "you don't have to keep that my dog is old",
    "you should not learn that I hate rain",
    "I love tea, but don't remember that",
    "ok, let's forget that I love tea",
    "Lango, discard that I work at Acme",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// B106
    #[test]
    fn orders_wishes_and_questions_are_requests() {
        for sentence in [
            "forget that my sister is called Anna",
            "Please forget that my sister is called Anna.",
            "ok, forget it",
            "Lango, forget that my name is Ada",
            "can you forget my name",
            "I'd like you to delete that",
            "don't forget that my sister is Anna",
            "what is my sister called",
            "my sister is called Anna, right?",
            "Bitte vergiss, dass meine Schwester Anna heißt",
            "lösche das",
            "olvida que mi hermana se llama Ana",
            "s'il te plaît, oublie ma sœur",
            "oublie que ma sœur s'appelle Anne",
            "dimentica mia sorella",
            "내 이름을 잊어 줘",
            "私の名前を忘れてください",
            "请忘记我的名字",
            "¿cómo se llama?",
            "/forget everything",
        ] {
            assert!(is_request(sentence), "{sentence}");
        }
        for sentence in [
            "",
            "Anna",
            "my sister is called Anna",
            "Anna is my sister",
            "call me Ada",
            "Will",
            "May 5th",
            "Meine Schwester heißt Anna",
            "I always forget names",
            "제 이름은 에이다예요",
            "\u{0}",
        ] {
            assert!(!is_request(sentence), "{sentence}");
        }
    }

    /// B106
    #[test]
    fn asking_to_forget_is_known_however_politely() {
        for sentence in FORGET_REQUESTS {
            assert!(
                is_forget_request(sentence) && is_request(sentence),
                "{sentence}"
            );
        }
        for sentence in [
            "forget that I prefer tea",
            "Please forget that I prefer tea",
            "could you please just forget that I prefer tea?",
            "I want you to forget that I prefer tea",
            "vergiss bitte, dass ich Tee mag",
            "제 이름을 잊어 주세요",
        ] {
            assert!(is_forget_request(sentence), "{sentence}");
        }
        for sentence in [
            "don't forget that I prefer tea",
            "do not forget the milk",
            "I forget names",
            "remember tea",
            "I never save receipts",
            "I do not keep sugar at home, my wife does",
            "my sister does not remember names",
            "we stopped saving money",
            "I would like to learn Spanish",
            "please save that I prefer tea",
            "please do not",
            "you",
            ",,,",
        ] {
            assert!(!is_forget_request(sentence), "{sentence}");
        }
    }
}
