//! Condenses observations to reflections. Each reflection cites the observations that it comes from.

use std::collections::{BTreeMap, BTreeSet};

use lango_domain::Label;
use lango_domain::StoreError;
use lango_domain::memory::{
    Memory, MemoryId, MemoryNote, MemoryOrigin, MemoryPriority, MemorySpeaker, MemoryWrite,
    NewReflection, NewReflections,
};
use lango_domain::model::Model;
use lango_domain::session::SessionKey;

use super::model_writer::{self, MemoryWriteError, WriteTask, WrittenMemory};
use super::{ObservationalMemory, Observer, digest};

/// Reflections may use the token threshold of observations divided by this.
const REFLECTION_BUDGET_DIVISOR: usize = 4;
/// Number of unusable answers after which rules replace the model.
const MAX_UNUSABLE: u32 = 3;

impl ObservationalMemory {
    pub(super) async fn reflect_if_due(&self, key: &SessionKey) -> Result<(), StoreError> {
        let progress = self.memories().progress(key).await?;
        if progress.tokens < self.settings().observation_tokens() {
            return Ok(());
        }
        let memories = self.memories().digest_memories(key).await?;
        self.condense(key, memories).await.map(drop)
    }

    /// Condenses all observations of a session, however few. Returns true if it has reflections.
    pub async fn reflect(&self, key: &SessionKey) -> Result<bool, StoreError> {
        let lock = self.session_lock(key);
        let _guard = lock.lock().await;
        self.observe(key, 0).await?;
        let reflections = self.memories().digest_memories(key).await?.into_iter();
        let mut all: Vec<Memory> = reflections.filter(|memory| memory.generation > 0).collect();
        let uncondensed = self.memories().uncondensed_memories(key).await?;
        if uncondensed.is_empty() {
            return Ok(!all.is_empty());
        }
        all.extend(uncondensed);
        self.condense(key, all).await
    }

    async fn condense(&self, key: &SessionKey, memories: Vec<Memory>) -> Result<bool, StoreError> {
        let progress = self.memories().progress(key).await?;
        if self.is_backing_off(&progress) {
            return Ok(false);
        }
        let unusable = progress
            .backoff
            .as_ref()
            .map_or(0, |backoff| backoff.unusable);
        let (origin, mut reflections) = match self.observer() {
            Observer::Model { model, name } if unusable < MAX_UNUSABLE => {
                match self.reflect_with_model(&**model, key, &memories).await? {
                    Ok(reflections) => (MemoryOrigin::Model(name.clone()), reflections),
                    Err(error) => {
                        self.back_off(key, &progress, &error).await?;
                        return Ok(false);
                    }
                }
            }
            Observer::Rules | Observer::Model { .. } => {
                (MemoryOrigin::Rules, reflect_by_rules(&memories))
            }
        };
        reflections.retain(|new| !self.is_secret(&new.note.text));
        let budget = self.settings().observation_tokens() / REFLECTION_BUDGET_DIVISOR;
        let reflections = fit_to_budget(reflections, budget);
        let condensed = memories.iter().filter_map(|memory| match memory.id {
            MemoryId::Observation(id) => Some(id),
            MemoryId::Reflection(_) => None,
        });
        let condensed = condensed.collect();
        let new = NewReflections {
            base_generation: progress.generation,
            origin,
            condensed,
            reflections,
        };
        Ok(self.memories().save_reflections(key, new).await? == MemoryWrite::Written)
    }

    async fn reflect_with_model(
        &self,
        model: &dyn Model,
        key: &SessionKey,
        memories: &[Memory],
    ) -> Result<Result<Vec<NewReflection>, MemoryWriteError>, StoreError> {
        let turn = lango_domain::event::TurnId::new(format!("reflection of {}", key.session));
        let budget = model_writer::request_budget(model);
        let (mut reflections, mut remaining) = (Vec::new(), memories);
        while !remaining.is_empty() {
            let mut used = 0;
            let fitting = remaining.iter().take_while(|memory| {
                used += digest::estimate_tokens(&memory.note.text);
                used <= budget
            });
            let (part, rest) = remaining.split_at(fitting.count().max(1));
            remaining = rest;
            let lines: Vec<(String, String)> = part
                .iter()
                .map(|memory| (memory.id.to_string(), digest::memory_text(memory)))
                .collect();
            let (written, usage) =
                model_writer::write_memories(model, WriteTask::Reflect, &lines).await;
            if let Some(usage) = usage {
                self.memories()
                    .record_usage(key, turn.clone(), usage)
                    .await?;
            }
            match written {
                Ok(written) => reflections.extend(
                    written
                        .into_iter()
                        .filter_map(|line| reflection(line, part)),
                ),
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Ok(reflections))
    }
}

fn reflection(line: WrittenMemory, part: &[Memory]) -> Option<NewReflection> {
    let sources: Vec<&Memory> = part
        .iter()
        .filter(|memory| line.cites.contains(&memory.id.to_string()))
        .collect();
    let at = sources.iter().map(|memory| memory.note.at).max()?;
    let is_own = sources
        .iter()
        .all(|memory| memory.note.speaker == MemorySpeaker::User);
    let speaker = if is_own {
        MemorySpeaker::User
    } else {
        MemorySpeaker::Others
    };
    // The model has read the whole part, so any of it may have influenced the text.
    let label = part.iter().fold(Label::default(), |label, memory| {
        label.joined(&memory.note.label)
    });
    let note = MemoryNote {
        text: line.text,
        kind: line.kind,
        priority: line.priority,
        speaker,
        label,
        at,
    };
    Some(NewReflection {
        note,
        condenses: observation_ids(&sources),
    })
}

/// Returns the cited observations. A reflection of reflections cites what those cite.
fn observation_ids(sources: &[&Memory]) -> Vec<u64> {
    let mut ids = BTreeSet::new();
    for memory in sources {
        match memory.id {
            MemoryId::Observation(id) => _ = ids.insert(id),
            MemoryId::Reflection(_) => ids.extend(&memory.condenses),
        }
    }
    ids.into_iter().collect()
}

/// Merges observations with equal words. Less important ones are dropped later by the budget.
fn reflect_by_rules(memories: &[Memory]) -> Vec<NewReflection> {
    let mut groups: BTreeMap<String, Vec<&Memory>> = BTreeMap::new();
    for memory in memories {
        let words: Vec<String> = lango_text::normalize_words(&memory.note.text);
        groups.entry(words.join(" ")).or_default().push(memory);
    }
    let mut reflections: Vec<NewReflection> = groups
        .into_values()
        .filter_map(|group| {
            let newest = group.iter().max_by_key(|memory| memory.note.at)?;
            Some(NewReflection {
                note: newest.note.clone(),
                condenses: observation_ids(&group),
            })
        })
        .collect();
    reflections.sort_by_key(|reflection| (reflection.note.at, reflection.condenses.clone()));
    reflections
}

/// Selects the most important and newest reflections that fit, in their original order.
fn fit_to_budget(reflections: Vec<NewReflection>, budget: usize) -> Vec<NewReflection> {
    let mut order: Vec<usize> = (0..reflections.len()).collect();
    let weight = |at: usize| {
        let note = &reflections[at].note;
        let importance = match note.priority {
            MemoryPriority::High => 2,
            MemoryPriority::Medium => 1,
            MemoryPriority::Low => 0,
        };
        (importance, note.at)
    };
    order.sort_by_key(|at| std::cmp::Reverse(weight(*at)));
    let mut used = 0;
    let fits_budget = |at: &usize| {
        used += digest::estimate_tokens(&reflections[*at].note.text);
        used <= budget
    };
    let first = order.first().copied();
    let selected: BTreeSet<usize> = order
        .into_iter()
        .take_while(fits_budget)
        .chain(first)
        .collect();
    let numbered = reflections.into_iter().enumerate();
    numbered
        .filter(|(at, _)| selected.contains(at))
        .map(|(_, reflection)| reflection)
        .collect()
}
