//! Condensing: many observations become few reflections, and each still says where it comes from.

use std::collections::{BTreeMap, BTreeSet};

use lango_domain::Label;
use lango_domain::memory::{
    Memory, MemoryId, MemoryNote, MemoryOrigin, MemoryPriority, MemorySpeaker, MemoryWrite,
    NewReflection, NewReflections,
};
use lango_domain::model::Model;
use lango_domain::session::SessionKey;
use lango_domain::session::StoreError;

use super::model_writer::{self, MemoryWriteError, WriteTask, WrittenMemory};
use super::{ObservationalMemory, Observer, digest};

/// Reflections hold at most this share of what observations may.
const REFLECTION_BUDGET_DIVISOR: usize = 4;
/// A model that gives no usable answer so often leaves it to the rules.
const MAX_UNUSABLE: u32 = 3;

impl ObservationalMemory {
    pub(super) async fn reflect_if_due(&self, of: &SessionKey) -> Result<(), StoreError> {
        let progress = self.memories().progress(of).await?;
        if progress.tokens < self.settings().observation_tokens() {
            return Ok(());
        }
        let told = self.memories().digest_memories(of).await?;
        self.condense(of, told).await.map(drop)
    }

    /// Condenses everything that is known of a session, however little; whether anything was.
    pub async fn reflect(&self, of: &SessionKey) -> Result<bool, StoreError> {
        let turn = self.session_lock(of);
        let _turn = turn.lock().await;
        self.observe(of, 0).await?;
        let reflections = self.memories().digest_memories(of).await?.into_iter();
        let mut all: Vec<Memory> = reflections.filter(|memory| memory.generation > 0).collect();
        let fresh = self.memories().uncondensed_memories(of).await?;
        if fresh.is_empty() {
            return Ok(!all.is_empty());
        }
        all.extend(fresh);
        self.condense(of, all).await
    }

    async fn condense(&self, of: &SessionKey, told: Vec<Memory>) -> Result<bool, StoreError> {
        let progress = self.memories().progress(of).await?;
        if self.is_backing_off(&progress) {
            return Ok(false);
        }
        let unusable = progress
            .backoff
            .as_ref()
            .map_or(0, |setback| setback.unusable);
        let (origin, mut reflections) = match self.observer() {
            Observer::Model { model, name } if unusable < MAX_UNUSABLE => {
                match self.reflect_with_model(&**model, of, &told).await? {
                    Ok(reflections) => (MemoryOrigin::Model(name.clone()), reflections),
                    Err(failure) => {
                        self.back_off(of, &progress, &failure).await?;
                        return Ok(false);
                    }
                }
            }
            Observer::Rules | Observer::Model { .. } => {
                (MemoryOrigin::Rules, reflect_by_rules(&told))
            }
        };
        reflections.retain(|new| !self.is_secret(&new.note.text));
        let room = self.settings().observation_tokens() / REFLECTION_BUDGET_DIVISOR;
        let reflections = fit_to_budget(reflections, room);
        let condensed = told.iter().filter_map(|memory| match memory.id {
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
        Ok(self.memories().save_reflections(of, new).await? == MemoryWrite::Written)
    }

    async fn reflect_with_model(
        &self,
        model: &dyn Model,
        of: &SessionKey,
        told: &[Memory],
    ) -> Result<Result<Vec<NewReflection>, MemoryWriteError>, StoreError> {
        let turn = lango_domain::event::TurnId::new(format!("reflection of {}", of.session));
        let room = model_writer::request_budget(model);
        let (mut reflections, mut rest) = (Vec::new(), told);
        while !rest.is_empty() {
            let mut used = 0;
            let fitting = rest.iter().take_while(|memory| {
                used += digest::estimate_tokens(&memory.note.text);
                used <= room
            });
            let (part, behind) = rest.split_at(fitting.count().max(1));
            rest = behind;
            let lines: Vec<(String, String)> = part
                .iter()
                .map(|memory| (memory.id.to_string(), digest::memory_text(memory)))
                .collect();
            let (written, usage) =
                model_writer::write_memories(model, WriteTask::Reflect, &lines).await;
            if let Some(usage) = usage {
                self.memories()
                    .record_usage(of, turn.clone(), usage)
                    .await?;
            }
            match written {
                Ok(written) => reflections.extend(
                    written
                        .into_iter()
                        .filter_map(|line| reflection(line, part)),
                ),
                Err(failure) => return Ok(Err(failure)),
            }
        }
        Ok(Ok(reflections))
    }
}

fn reflection(line: WrittenMemory, part: &[Memory]) -> Option<NewReflection> {
    let made_of: Vec<&Memory> = part
        .iter()
        .filter(|memory| line.cites.contains(&memory.id.to_string()))
        .collect();
    let at = made_of.iter().map(|memory| memory.note.at).max()?;
    let is_own = made_of
        .iter()
        .all(|memory| memory.note.speaker == MemorySpeaker::User);
    let words = if is_own {
        MemorySpeaker::User
    } else {
        MemorySpeaker::Others
    };
    // The model read the whole part, and any of it may have chosen these words.
    let label = part.iter().fold(Label::default(), |label, memory| {
        label.joined(&memory.note.label)
    });
    let note = MemoryNote {
        text: line.text,
        kind: line.kind,
        priority: line.priority,
        speaker: words,
        label,
        at,
    };
    Some(NewReflection {
        note,
        condenses: observation_ids(&made_of),
    })
}

/// Down to the observations: a reflection of reflections cites what those cite.
fn observation_ids(made_of: &[&Memory]) -> Vec<u64> {
    let mut ids = BTreeSet::new();
    for memory in made_of {
        match memory.id {
            MemoryId::Observation(id) => _ = ids.insert(id),
            MemoryId::Reflection(_) => ids.extend(&memory.condenses),
        }
    }
    ids.into_iter().collect()
}

/// Without a model the same words are told once, and what matters little is left out.
fn reflect_by_rules(told: &[Memory]) -> Vec<NewReflection> {
    let mut groups: BTreeMap<String, Vec<&Memory>> = BTreeMap::new();
    for memory in told {
        let words: Vec<String> = super::rules::normalize_words(&memory.note.text);
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

/// As many as there is room for: what matters most and is newest stays, in the order that it had.
fn fit_to_budget(reflections: Vec<NewReflection>, room: usize) -> Vec<NewReflection> {
    let mut order: Vec<usize> = (0..reflections.len()).collect();
    let weight = |at: usize| {
        let note = &reflections[at].note;
        let worth = match note.priority {
            MemoryPriority::High => 2,
            MemoryPriority::Medium => 1,
            MemoryPriority::Low => 0,
        };
        (worth, note.at)
    };
    order.sort_by_key(|at| std::cmp::Reverse(weight(*at)));
    let mut used = 0;
    let fits = |at: &usize| {
        used += digest::estimate_tokens(&reflections[*at].note.text);
        used <= room
    };
    let first = order.first().copied();
    let kept: BTreeSet<usize> = order.into_iter().take_while(fits).chain(first).collect();
    let numbered = reflections.into_iter().enumerate();
    numbered
        .filter(|(at, _)| kept.contains(at))
        .map(|(_, reflection)| reflection)
        .collect()
}
