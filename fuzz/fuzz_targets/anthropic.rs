#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lango_fuzz::decode(
    lango_models::Dialect::Anthropic,
    data
));
