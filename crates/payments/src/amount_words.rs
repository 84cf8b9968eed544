//! Amounts in words, for the question: a misplaced point is easier to see in words than in digits.

use lango_domain::payments::UsdcAmount;

/// Returns "one USDC and fifty cents". Amounts with parts of cents are named in millionths.
pub fn amount_in_words(amount: UsdcAmount) -> String {
    let (whole, rest) = amount.parts();
    let whole_text = format!("{} USDC", number_in_words(whole));
    let (small, unit) = match rest {
        0 => return whole_text,
        rest if rest.is_multiple_of(10_000) => (rest / 10_000, "cent"),
        rest => (rest, "millionth"),
    };
    let plural = if small == 1 { "" } else { "s" };
    let small_text = format!("{} {unit}{plural}", number_in_words(small));
    match whole {
        0 => format!("{small_text} of a USDC"),
        _ => format!("{whole_text} and {small_text}"),
    }
}

const SMALL: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 10] = [
    "", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
];
const GROUPS: [(u64, &str); 4] = [
    (1_000_000_000_000, "trillion"),
    (1_000_000_000, "billion"),
    (1_000_000, "million"),
    (1_000, "thousand"),
];

fn number_in_words(number: u64) -> String {
    for (size, name) in GROUPS {
        if number >= size {
            let head = format!("{} {name}", number_in_words(number / size));
            return with_rest(head, number % size);
        }
    }
    let at = |index: u64| usize::try_from(index).unwrap_or_default();
    match number {
        0..20 => SMALL[at(number)].to_owned(),
        20..100 if number.is_multiple_of(10) => TENS[at(number / 10)].to_owned(),
        20..100 => format!("{}-{}", TENS[at(number / 10)], SMALL[at(number % 10)]),
        _ => with_rest(format!("{} hundred", SMALL[at(number / 100)]), number % 100),
    }
}

fn with_rest(head: String, rest: u64) -> String {
    match rest {
        0 => head,
        rest => format!("{head} {}", number_in_words(rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_named() {
        for (digits, words) in [
            ("1.5", "one USDC and fifty cents"),
            ("5", "five USDC"),
            ("0.01", "one cent of a USDC"),
            ("0", "zero USDC"),
            ("0.000001", "one millionth of a USDC"),
            ("21.25", "twenty-one USDC and twenty-five cents"),
            ("1500", "one thousand five hundred USDC"),
            ("1000000.10", "one million USDC and ten cents"),
            (
                "2.500001",
                "two USDC and five hundred thousand one millionths",
            ),
            (
                "9223372036854.77",
                "nine trillion two hundred twenty-three billion three hundred seventy-two million thirty-six \
                thousand eight hundred fifty-four USDC and seventy-seven cents",
            ),
        ] {
            assert_eq!(amount_in_words(digits.parse().unwrap()), words);
        }
    }
}
