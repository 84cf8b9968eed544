//! Comma-separated phrases that mark sentences worth remembering.

use lango_domain::memory::MemoryKind;

/// Beginnings of sentences that ask to remember the rest of the sentence.
pub const REMEMBER_PREFIXES: &str = "remember that, please remember that, remember, keep in mind that, note that, please note that, dont forget that, \
    do not forget that, for the record, fyi, merk dir dass, denk daran dass, recuerda que, souviens toi que";

/// Words that are ignored when matching phrases.
pub const FILLERS: &str = "really, also, always, usually, generally, definitely, absolutely, just, actually, very, much, still, now, \
    strongly, do, personally";

/// Phrases anywhere in a sentence, with the kind of memory that they mark.
pub const KIND_PHRASES: [(MemoryKind, &str); 6] = [
    (
        MemoryKind::Name,
        "my name is, my names, call me, i am called, im called, i go by, ich heisse, mein name ist, me llamo, \
        mi nombre es, je mappelle, mi chiamo",
    ),
    (
        MemoryKind::Decision,
        "we decided, i decided, ive decided, weve decided, i have decided, we have decided, we agreed, weve agreed, \
        we settled on, lets go with, we go with, we will go with, well go with, i chose, we chose, ive chosen, \
        decision is, wir haben entschieden, wir haben beschlossen, ich habe entschieden, ich habe beschlossen, \
        hemos decidido, nous avons decide",
    ),
    (
        MemoryKind::Preference,
        "i prefer, we prefer, i like, i love, i hate, i dislike, i enjoy, i dont like, i do not like, i not like, \
        i cant stand, i cannot stand, i would rather, id rather, i am fond of, my favourite, my favorite, \
        my preferred, i never eat, i never drink, i dont eat, i dont drink, i avoid, ich mag, ich bevorzuge, \
        ich liebe, ich hasse, mein lieblings, am liebsten, me gusta, prefiero, jaime, je prefere, je deteste",
    ),
    (
        MemoryKind::Promise,
        "i promise, i promised, we promised, i will deliver, i will send, ill send, i will finish, ill finish, \
        i will pay, ill pay, i owe, you promised, ich verspreche, prometo, je promets",
    ),
    (
        MemoryKind::Date,
        "my birthday, birthday is, our anniversary, anniversary is, deadline is, is due, my appointment, \
        appointment is, my flight, flight is, meeting is, wedding is, the release is, mein geburtstag, mi cumpleanos, \
        mon anniversaire",
    ),
    (
        MemoryKind::Fact,
        "i live in, i am from, im from, i work as, i work at, i work for, i work on, i am allergic, im allergic, \
        i am vegetarian, im vegetarian, i am vegan, im vegan, i speak, i was born, my wife, my husband, my partner, \
        my son, my daughter, my brother, my sister, my mother, my father, my dog, my cat, my job is, my company, \
        my team is, my boss, my timezone, my time zone, my address is, my email is, my phone number is, my editor is, \
        my native language, i am married, ich wohne, ich arbeite, ich bin allergisch, vivo en, trabajo en, jhabite, \
        je travaille",
    ),
];

/// Phrases that look similar but mark nothing.
pub const EXCLUDED_PHRASES: &str = "i like it, i like that, i like this, i like your, i like the way, i love it, i love that, i love this, i hate it, \
    i hate that, i hate this, id like you, i would like, i like to see, i like you to, if i, what if";

/// The same for scripts without spaces.
pub const KIND_PHRASES_UNSPACED: [(MemoryKind, &str); 5] = [
    (
        MemoryKind::Name,
        "제 이름은, 내 이름은, 私の名前は, と申します, 我叫, 我的名字",
    ),
    (
        MemoryKind::Decision,
        "하기로 했, 결정했, に決めた, に決めました, ことにした, 我们决定, 我决定",
    ),
    (
        MemoryKind::Preference,
        "좋아해, 좋아합니다, 싫어해, 싫어합니다, 선호, が好き, が嫌い, 我喜欢, 我讨厌, 我更喜欢",
    ),
    (MemoryKind::Promise, "약속했, 약속해, 約束し, 我答应"),
    (
        MemoryKind::Date,
        "생일은, 마감은, 誕生日は, 締め切りは, 我的生日",
    ),
];

/// Splits a list into its phrases.
pub fn split_phrases(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.split(',').map(str::trim)
}
