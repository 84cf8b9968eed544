//! Detects requests: sentences that ask or order. A request states nothing about the user, whatever
//! words it repeats: "forget that my sister is called Anna" does not answer who the sister is.

use lango_text::normalize_words;

/// Words that may precede a request.
const OPENERS: &str = "ok, okay, well, and, so, now, then, hey, hi, hello, oh, also, just, but, lango, yes, no, thanks, \
    actually, danke, ja, nein, also, und, dann, bueno, si, y, vale, gracias, merci, oui, non, et, alors, grazie, allora, e";

/// Beginnings of requests: orders, wishes addressed to the assistant, and refusals to answer.
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

/// Parts of orders in languages without spaces between words or with the verb at the end.
const ORDER_PHRASES_UNSPACED: &str = "해줘, 해 줘, 해주세요, 해 주세요, 하세요, 하십시오, 잊어, 잊으, 지워, 삭제, 기억해, 보여, 찾아, 검색, 멈춰, 취소, 그만, \
    してください, して下さい, 忘れて, 消して, 削除, 覚えて, 見せて, 探して, 検索, 止めて, やめて, 请, 忘记, 忘掉, 删除, 记住, 显示, 列出, 搜索, 停止, \
    取消, 帮我";

/// Beginnings of questions without a question mark.
const QUESTION_PHRASES: &str = "what, whats, who, whos, whom, whose, which, when, where, why, how, does, did, is, are, was, were, am, \
    can, could, should, would, shall, will you, will i, will it, will we, will the, will my, will there, \
    was, wer, wen, wem, wessen, welche, welcher, welches, wann, wo, wohin, woher, warum, wieso, weshalb, wie, \
    que, quien, cual, cuando, donde, por que, como, cuanto, \
    quoi, qui, quel, quelle, quand, ou, pourquoi, comment, combien, est ce, quest ce, \
    che cosa, cosa, chi, quale, dove, perche, quanto";

/// Verbs that request forgetting, possibly after polite words.
const FORGET_WORDS: &str = "forget, unlearn, erase, vergiss, vergesst, olvida, olvidate, olvide, oublie, oubliez, dimentica, scorda";
const FORGET_WORDS_UNSPACED: &str = "잊어, 잊으, 忘れて, 忘记, 忘掉";
/// Most polite words before the verb.
const MAX_POLITE: usize = 6;

/// Verbs that order a deletion. A sentence with one repeats a fact in order to delete it.
const DELETE_WORDS: &str =
    "forget, unlearn, erase, delete, remove, discard, wipe, purge, scrub, disregard";
const NEGATIONS: &str =
    "dont, not, never, no, stop, quit, avoid, shouldnt, mustnt, neednt, cannot, cant, wont";
const KEEP_WORDS: &str = "remember, remembering, memorise, memorising, memorize, memorizing, save, saving, keep, keeping, \
    note, noting, store, storing, learn, learning, record, recording, retain, retaining";
/// Filler words before and between these words.
const POLITE_WORDS: &str = "please, kindly, just, also, now, you, can, could, would, will, should, may, must, might, do, i, we, id, \
    wed, want, wanted, need, like, rather, prefer, have, to, there, theres, is, it, ever, even, bother, any, longer, more, feel, free, \
    lets, let, us, go, ahead, and, ok, okay, well, so, then, hey, lango, actually, but, yes, thanks";

/// Returns true if a sentence is a question, an order or a wish.
pub(crate) fn is_request(sentence: &str) -> bool {
    let words = normalize_words(sentence);
    let starts_with_any = |list: &'static str| {
        sentence_starts(&words, sentence)
            .any(|start| split_phrases(list).any(|phrase| starts_with_phrase(start, phrase)))
    };
    is_question(sentence)
        || starts_with_any(ORDER_PHRASES)
        || starts_with_any(QUESTION_PHRASES)
        || split_phrases(ORDER_PHRASES_UNSPACED).any(|order| sentence.contains(order))
        || sentence.trim_start().starts_with('/')
        || is_delete_order(sentence)
}

/// Returns true if a sentence asks to forget something.
pub(crate) fn is_forget_request(sentence: &str) -> bool {
    let words = normalize_words(sentence);
    let is_forget_word = |word: &String| split_phrases(FORGET_WORDS).any(|verb| verb == word);
    let is_negated =
        |pair: &[String]| ["dont", "not", "never"].contains(&&*pair[0]) && is_forget_word(&pair[1]);
    let is_asked = sentence_starts(&words, sentence).any(|start| {
        let max_words = if is_request(sentence) { MAX_POLITE } else { 1 };
        start.iter().take(max_words).any(is_forget_word)
    });
    let is_unspaced = || split_phrases(FORGET_WORDS_UNSPACED).any(|verb| sentence.contains(verb));
    !words.windows(2).any(is_negated) && (is_asked || is_unspaced() || is_delete_order(sentence))
}

/// Returns true if a clause orders to delete something or not to save it: "you can delete that",
/// "don't save it".
fn is_delete_order(sentence: &str) -> bool {
    sentence.split([',', ':', '—', '–', '(']).any(|clause| {
        let words = normalize_words(clause);
        let is_in =
            |list: &'static str, word: &String| split_phrases(list).any(|entry| entry == word);
        let Some(at) = words
            .iter()
            .position(|word| !is_in(POLITE_WORDS, word) && !is_in(NEGATIONS, word))
        else {
            return false;
        };
        let (before, order) = (&words[..at], &words[at]);
        // "I never save" is a statement about the user; "I want you to save" is a request.
        let has_before = |list: &'static str| before.iter().any(|word| is_in(list, word));
        let is_order = !has_before("i, we, id, wed") || has_before("you");
        let is_negated = before.iter().any(|word| is_in(NEGATIONS, word));
        is_order
            && if is_negated {
                is_in(KEEP_WORDS, order)
            } else {
                is_in(DELETE_WORDS, order)
            }
    })
}

fn is_question(sentence: &str) -> bool {
    sentence.contains('¿')
        || sentence
            .trim_end_matches(['"', '”', ')', ' '])
            .ends_with(['?', '？', '؟'])
}

/// Returns the words after the openers of a sentence, and the words after a name that is addressed:
/// "Ada, forget that".
fn sentence_starts<'a>(words: &'a [String], sentence: &str) -> impl Iterator<Item = &'a [String]> {
    let addresses_name = sentence
        .split_whitespace()
        .next()
        .is_some_and(|first| first.ends_with([',', ':']));
    let after_name = words
        .get(1..)
        .filter(|after| addresses_name && !after.is_empty());
    [Some(words), after_name]
        .into_iter()
        .flatten()
        .map(|mut start| {
            while start.len() > 1 && split_phrases(OPENERS).any(|opener| opener == start[0]) {
                start = &start[1..];
            }
            start
        })
}

fn starts_with_phrase(words: &[String], phrase: &str) -> bool {
    let mut words = words.iter();
    phrase
        .split(' ')
        .all(|expected| words.next().is_some_and(|word| word == expected))
}

fn split_phrases(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.split(',').map(str::trim)
}

/// Requests not to keep something, shared by the tests of several modules.
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
    fn detects_requests() {
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
    fn detects_forget_requests() {
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
