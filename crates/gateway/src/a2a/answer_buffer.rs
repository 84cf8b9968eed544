//! The answer of a turn as chunks of an artifact.

use lango_remote::a2a::{Artifact, ArtifactId};

use super::worker::TaskStep;

const ANSWER_ARTIFACT: &str = "answer";

/// Buffers the text of an answer. Holds back the newest piece, so that the last chunk can be marked
/// as such.
#[derive(Default)]
pub(super) struct AnswerBuffer {
    sent: String,
    held: String,
}

impl AnswerBuffer {
    /// Adds a piece of text and returns the chunk before it.
    pub fn push(&mut self, text: &str) -> Option<TaskStep> {
        let piece = std::mem::replace(&mut self.held, text.to_owned());
        (!piece.is_empty()).then(|| self.send(piece, false))
    }

    /// Discards text that was not part of the answer. The next chunk replaces what was sent.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// Returns the last chunk: the rest of the answer, or all of it if it differs from what was sent.
    pub fn finish(&mut self, answer: &str) -> Option<TaskStep> {
        let rest = answer
            .strip_prefix(self.sent.as_str())
            .filter(|rest| !rest.is_empty())
            .map(str::to_owned);
        self.held.clear();
        let step = match rest {
            Some(rest) => self.send(rest, true),
            None => answer_chunk(answer.to_owned(), false, true),
        };
        self.sent.clear();
        Some(step)
    }

    fn send(&mut self, piece: String, last: bool) -> TaskStep {
        let append = !self.sent.is_empty();
        self.sent.push_str(&piece);
        answer_chunk(piece, append, last)
    }
}

/// Returns a chunk of the answer artifact.
pub(super) fn answer_chunk(text: String, append: bool, last: bool) -> TaskStep {
    let artifact = Artifact {
        name: Some(ANSWER_ARTIFACT.to_owned()),
        ..Artifact::text(ArtifactId::new(ANSWER_ARTIFACT), text)
    };
    TaskStep::Artifact {
        artifact,
        append,
        last,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(steps: Vec<Option<TaskStep>>) -> Vec<(String, bool, bool)> {
        let chunk = |step| match step {
            TaskStep::Artifact {
                artifact,
                append,
                last,
            } => (
                artifact.parts[0].as_text().unwrap().to_owned(),
                append,
                last,
            ),
            other => panic!("{other:?}"),
        };
        steps.into_iter().flatten().map(chunk).collect()
    }

    #[test]
    fn chunks_add_up_to_the_answer_and_the_last_is_marked() {
        let mut buffer = AnswerBuffer::default();
        let steps = vec![
            buffer.push("안녕"),
            buffer.push(", "),
            buffer.push("Welt"),
            buffer.finish("안녕, Welt"),
        ];
        let expected = [
            ("안녕", false, false),
            (", ", true, false),
            ("Welt", true, true),
        ];
        assert_eq!(
            chunks(steps),
            expected.map(|(text, append, last)| (text.to_owned(), append, last))
        );
    }

    #[test]
    fn replaces_streamed_text_that_differs_from_the_answer() {
        for (pieces, answer) in [(vec!["a", "b"], "x"), (vec![], "x"), (vec!["x", ""], "x")] {
            let mut buffer = AnswerBuffer::default();
            for piece in pieces {
                buffer.push(piece);
            }
            assert_eq!(
                chunks(vec![buffer.finish(answer)]),
                [(answer.to_owned(), false, true)]
            );
        }
        let mut buffer = AnswerBuffer::default();
        buffer.push("let me look");
        buffer.push("…");
        buffer.reset();
        buffer.push("it");
        let steps = vec![buffer.push("'s 4"), buffer.finish("it's 4")];
        assert_eq!(
            chunks(steps),
            [
                ("it".to_owned(), false, false),
                ("'s 4".to_owned(), true, true)
            ]
        );
    }
}
