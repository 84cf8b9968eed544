//! Markdown as it was written while walking over a page, made fit to read.

/// Without spaces at the ends of lines, without more than one empty line outside of code, without empty items.
pub fn tidied(text: &str) -> String {
    let mut tidied = String::with_capacity(text.len());
    let (mut is_code, mut empty) = (false, 0);
    for line in text.lines() {
        let line = line.trim_end();
        if line.trim_start_matches([' ', '>']).starts_with("```") {
            is_code = !is_code;
        }
        if !is_code && is_mark_alone(line) {
            continue;
        }
        empty = if line.is_empty() { empty + 1 } else { 0 };
        if is_code || empty <= 1 {
            tidied.push_str(line);
            tidied.push('\n');
        }
    }
    tidied.trim().to_owned()
}

fn is_mark_alone(line: &str) -> bool {
    let mark = line.trim_start();
    mark == "-" || (!mark.is_empty() && mark.bytes().all(|byte| byte == b'#'))
}
