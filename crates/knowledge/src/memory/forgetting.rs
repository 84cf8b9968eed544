//! Forgetting: everywhere, and for good.

use lango_domain::event::Principal;
use lango_domain::memory::{Memory, MemoryId};
use lango_domain::session::StoreError;

use super::Chronicle;
use super::recall::Care;
use super::rules::plain_words;

/// More than this is forgotten in several goes.
const MOST_AT_ONCE: usize = 1_000;
/// Who wants to forget everything has to say so.
const EVERYTHING: [&str; 6] = ["everything", "all", "alles", "todo", "tout", "tutto"];

impl Chronicle {
    /// What is meant by ids, or by words that nearly all stand in it.
    pub async fn meant(&self, of: &Principal, what: &str) -> Result<Vec<Memory>, StoreError> {
        let parts: Vec<&str> = what.split([',', ' ']).filter(|part| !part.is_empty()).collect();
        let ids: Result<Vec<MemoryId>, _> = parts.iter().map(|part| part.parse()).collect();
        if let Ok(ids) = ids {
            let mut found = Vec::new();
            for id in ids {
                found.extend(self.memories().memory(of, id).await?);
            }
            return Ok(found);
        }
        let words = plain_words(what);
        let is_everything = words.iter().any(|word| EVERYTHING.contains(&word.as_str()));
        let found = self.recall(of, what, Care::Forgetting, MOST_AT_ONCE).await?;
        let question = super::question::Question::read(what);
        if question.is_general() && !is_everything {
            return Ok(Vec::new());
        }
        Ok(found.into_iter().map(|recalled| recalled.memory).collect())
    }

    /// Takes memories out, with all that was made of them; first where else they are known. Gives what is gone.
    pub async fn forget(&self, of: &Principal, memories: &[Memory]) -> Result<Vec<Memory>, StoreError> {
        let mut gone = memories.to_vec();
        for memory in memories {
            for id in &memory.condenses {
                gone.extend(self.memories().memory(of, MemoryId::Observation(*id)).await?);
            }
        }
        for forgets in &self.parts().forgets {
            forgets.forget(of, &gone).await?;
        }
        let ids = memories.iter().map(|memory| memory.id).collect();
        self.memories().forget(of, ids).await
    }
}
