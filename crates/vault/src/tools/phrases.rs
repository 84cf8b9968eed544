//! Phrases of the tools for the offline model. None of them takes the value of a secret: it is typed at
//! the terminal.

pub(super) const HASH: [&str; 17] = [
    "[what is] [compute] [calculate] [give me] [show me] [the] (sha256|sha-256|sha 256) [hash|digest|checksum] of {data}",
    "[what is] [compute] [calculate] [give me] [show me] [the] (hash|digest|checksum) of {data}",
    "[what is] [compute] [calculate] [give me] [show me] [the] {algorithm:word} (hash|digest|checksum) of {data}",
    "[what is] [compute] [calculate] [give me] [show me] [the] {algorithm:word} of {data}",
    "hash {data}",
    "hash {data} (with|using|by) {algorithm:word}",
    "{algorithm:word} hash {data}",
    "[berechne] [den] (hash|sha256) von {data}",
    "[berechne] [den] {algorithm:word} [hash] von {data}",
    "[calcula] [el] (hash|sha256) de {data}",
    "[calcula] [el] hash {algorithm:word} de {data}",
    "[calcule] [le] (hash|sha256|hachage) de {data}",
    "[calcule] [le] hash {algorithm:word} de {data}",
    "[calcola] (l'hash|lo sha256) di {data}",
    "[calcola] (l'hash|lo hash) {algorithm:word} di {data}",
    "[calcula] [calcule] [o] (hash|sha256) (de|do|da) {data}",
    "[calcula] [calcule] [o] hash {algorithm:word} (de|do|da) {data}",
];

pub(super) const SIGN: [&str; 12] = [
    "sign {data} (with|using) [the] [my] key {key_id:word}",
    "sign {data} (with|using) [the] [my] {key_id:word} key",
    "sign [the] [this] (message|text|data) {data}",
    "sign {data}",
    "(signiere|unterschreibe) {data} mit [dem] schlüssel {key_id:word}",
    "(signiere|unterschreibe) {data}",
    "firma {data} con [la] (clave|llave) {key_id:word}",
    "signe {data} avec [la] clé {key_id:word}",
    "firma {data} con [la] chiave {key_id:word}",
    "(assine|assina) {data} com [a] chave {key_id:word}",
    "(assine|assina) {data}",
    "signe {data}",
];

pub(super) const VERIFY: [&str; 10] = [
    "verify [the] signature {signature:word} (of|for) {data} (with|using) [the] [my] key {key_id:word}",
    "verify [the] signature {signature:word} (of|for) {data} (with|using) [the] public key {public_key:word}",
    "verify [the] signature {signature:word} (of|for) {data}",
    "verify that {signature:word} is [the] [a] signature (of|for) {data}",
    "is {signature:word} [the] [a] valid signature (of|for) {data}",
    "(prüfe|überprüfe|verifiziere) die signatur {signature:word} (von|für) {data}",
    "verifica la firma {signature:word} (de|di) {data}",
    "vérifie la signature {signature:word} de {data}",
    "(verifique|verifica) a assinatura {signature:word} (de|do|da) {data}",
    "verify {data} (with|against) [the] signature {signature:word}",
];

pub(super) const ENCRYPT: [&str; 10] = [
    "encrypt {data} (with|using) [the] [my] key {key_id:word}",
    "encrypt {data} (with|using) [the] [my] {key_id:word} key",
    "encrypt [the] [this] (message|text|data) {data}",
    "encrypt {data}",
    "verschlüssele {data} mit [dem] schlüssel {key_id:word}",
    "verschlüssele {data}",
    "cifra {data}",
    "chiffre {data}",
    "(criptografe|cripte|criptografa) {data}",
    "encripta {data}",
];

pub(super) const DECRYPT: [&str; 7] = [
    "decrypt [the] [this] [text] [message] {ciphertext:word}",
    "decrypt {ciphertext:word} (with|using) [the] [my] key {key_id:word}",
    "entschlüssele {ciphertext:word}",
    "(descifra|desencripta) {ciphertext:word}",
    "déchiffre {ciphertext:word}",
    "decifra {ciphertext:word}",
    "(descriptografe|decifre) {ciphertext:word}",
];

pub(super) const KEYS: [&str; 8] = [
    "(what|which) keys (do i have|are there|are in the vault|does the vault have)",
    "(list|show) [me] [all] [my] [the] [signing] [encryption] [crypto] keys",
    "welche schlüssel (habe ich|gibt es)",
    "(zeige|zeig|liste) [mir] [alle] [meine] [die] schlüssel",
    "(qué|cuáles) claves tengo",
    "quelles clés (ai-je|y a-t-il)",
    "(quali|che) chiavi ho",
    "(que|quais) chaves (eu|) tenho",
];

pub(super) const STORE: [&str; 17] = [
    "(store|save|keep|add|set|create) [a] [the] [my] [new] secret (named|called) {name:word}",
    "(store|save|keep|add|set|create) [a] [the] [my] [new] secret {name:word}",
    "(store|save|keep|add|set) [a] [the] [my] [new] (token|password|api key|key|credential) (named|called|as) {name:word}",
    "(store|save|keep|add|set|create) [a] [the] [my] [new] secret (named|called|) {name:word} for [the] [host] {hosts:word}",
    "(store|save|keep|add|set|create) [a] [the] [my] [new] secret (named|called|) {name:word} for [the] tool {tools:word}",
    "(update|change|replace) [the] [my] secret {name:word}",
    "(speichere|lege|merke) [ein] [das] [mein] geheimnis (namens|mit dem namen|) {name:word}",
    "(speichere|lege) [ein] [das] [mein] geheimnis {name:word} an",
    "(speichere|hinterlege) [das] [mein] (passwort|token) (namens|als) {name:word}",
    "(guarda|almacena) [un] [el] [mi] secreto (llamado|con el nombre|) {name:word}",
    "(guarda|almacena) [una] [la] [mi] contraseña (llamada|como) {name:word}",
    "(enregistre|stocke|garde) [un] [le] [mon] secret (nommé|appelé|) {name:word}",
    "(enregistre|stocke|garde) [un] [le] [mon] mot de passe (nommé|appelé|sous) {name:word}",
    "(salva|memorizza|conserva) [un] [il] [mio] segreto (chiamato|di nome|) {name:word}",
    "(salva|memorizza) [una] [la] [mia] password (chiamata|come) {name:word}",
    "(guarde|guarda|armazene|salve) [um] [o] [meu] segredo (chamado|com o nome|) {name:word}",
    "(guarde|guarda|armazene|salve) [uma] [a] [minha] senha (chamada|como) {name:word}",
];

pub(super) const GET: [&str; 8] = [
    "(get|show) [me] [the] [my] reference (to|of|for) [the] [secret] {name:word}",
    "(get|show|use|read) [me] [the] [my] secret {name:word}",
    "how do i use [the] [my] secret {name:word}",
    "(zeige|zeig|hole) [mir] das geheimnis {name:word}",
    "(muestra|muéstrame|dame) el secreto {name:word}",
    "(montre|montre-moi|donne-moi) le secret {name:word}",
    "(mostra|mostrami|dammi) il segreto {name:word}",
    "(mostre|mostra|me dê) o segredo {name:word}",
];

pub(super) const LIST: [&str; 12] = [
    "(what|which) secrets (do i have|are there|are stored|did i store|are in the vault|do you know|have i stored)",
    "(list|show) [me] [all] [of] [my] [the] [stored] secrets",
    "(list|show) [me] [all] [my] [the] [names] [of] [the] [my] [stored] secrets",
    "what is in (the|my) vault",
    "welche geheimnisse (habe ich|gibt es|sind gespeichert|kennst du)",
    "(zeige|zeig|liste) [mir] [alle] [meine] [die] geheimnisse [auf]",
    "(qué|cuáles) secretos (tengo|hay)",
    "(muestra|muéstrame|lista) [todos] [mis] [los] secretos",
    "quels secrets (ai-je|y a-t-il|est-ce que j'ai)",
    "(quali|che) segreti (ho|ci sono)",
    "(que|quais) segredos (eu|) (tenho|há)",
    "(montre|montre-moi|liste) [tous] [mes] [les] secrets",
];

pub(super) const DELETE: [&str; 8] = [
    "(delete|remove|forget|erase) [the] [my] [stored] secret (named|called|) {name:word}",
    "(delete|remove|erase) {name:word} from (the|my) (vault|secrets)",
    "(lösche|entferne) [das] [mein] geheimnis {name:word}",
    "(borra|elimina) [el] [mi] secreto {name:word}",
    "(supprime|efface) [le] [mon] secret {name:word}",
    "(elimina|cancella|rimuovi) [il] [mio] segreto {name:word}",
    "(exclua|apague|apaga|remova) [o] [meu] segredo {name:word}",
    "vergiss [das] [mein] geheimnis {name:word}",
];
