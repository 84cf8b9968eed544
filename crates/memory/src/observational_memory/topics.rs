//! Topics of everyday words, so that a query about drinks finds tea without a language model.

/// Words of each topic in several languages, in lower case and without accents. A word belongs to one
/// topic.
const TOPICS: [&str; 9] = [
    "drink drinks beverage beverages tea coffee water juice beer wine milk cola cocoa espresso cappuccino latte \
     matcha lemonade whisky soda trinken getrank tee kaffee wasser bier wein beber bebida te cafe cerveza vino boire \
     boisson biere vin",
    "eat food foods meal breakfast lunch dinner dish pizza pasta sushi vegetarian vegan meat fish cheese bread rice \
     chocolate fruit nuts allergic allergy essen speise fruhstuck mittagessen kase brot comer comida manger repas",
    "colour color colours colors red blue green yellow purple black white pink farbe rot blau grun",
    "music song band jazz rock classical piano guitar opera techno musik lied musica",
    "sport sports football soccer tennis running cycling swimming climbing yoga chess hobby hobbies fussball",
    "pet pets dog cat bird hamster horse animal haustier hund katze perro gato chien chat",
    "family wife husband partner son daughter brother sister mother father children kids familie frau mann",
    "job work company employer profession occupation boss team arbeit beruf trabajo travail",
    "editor ide vim neovim emacs vscode helix intellij zed",
];

/// The same for scripts without spaces.
const TOPICS_UNSPACED: [(usize, &str); 3] = [
    (
        0,
        "마시 음료 녹차 홍차 커피 飲 お茶 コーヒー 紅茶 喝 茶 咖啡",
    ),
    (1, "먹 음식 식사 食べ 料理 吃"),
    (5, "강아지 고양이 犬 猫 狗"),
];

/// Returns the topics of a text, one bit for each.
pub fn topics(words: &[String], text: &str) -> u16 {
    let mut bits = 0;
    for (at, topic) in TOPICS.iter().enumerate() {
        if topic
            .split(' ')
            .any(|known| words.iter().any(|word| word == known))
        {
            bits |= 1 << at;
        }
    }
    for (at, topic) in TOPICS_UNSPACED {
        if !text.is_ascii() && topic.split(' ').any(|piece| text.contains(piece)) {
            bits |= 1 << at;
        }
    }
    bits
}
