//! docs/adding-a-tool.md is the example program, word for word.

const PAGE: &str = include_str!("../../../../docs/adding-a-tool.md");
const EXAMPLE: &str = include_str!("../../examples/adding_a_tool.rs");

#[test]
fn the_page_is_the_example_program() {
    let after_fence = PAGE.split("```rust\n").skip(1);
    let blocks: Vec<&str> = after_fence
        .filter_map(|text| text.split("```").next())
        .collect();
    assert_eq!(blocks.join("\n"), EXAMPLE);
}
