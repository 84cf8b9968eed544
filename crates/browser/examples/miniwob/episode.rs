//! One episode of a task, and what a policy does in it: it calls the tools and reads their text.

use std::time::{Duration, Instant};

use lango_domain::{Tool, ToolContext};
use serde_json::{Value, json};

use super::element::{Element, parse_elements};

pub type Outcome = Result<(), String>;

/// Time to wait for something that appears late.
const PATIENCE: Duration = Duration::from_secs(5);

/// Attempts for a click that fails.
const RETRIES: u32 = 3;

pub struct Episode<'a> {
    pub tools: &'a [Tool],
    pub context: ToolContext,
    /// The task in words.
    pub task: String,
}

impl Episode<'_> {
    pub async fn call(&self, tool: &str, args: Value) -> Result<String, String> {
        let tool = self.tools.iter().find(|one| one.name == tool);
        let tool = tool.ok_or_else(|| "no such tool".to_owned())?;
        let output = tool.call(self.context.clone(), args).await;
        output
            .map(|output| output.content.text)
            .map_err(|error| error.0)
    }

    pub async fn act(&self, args: Value) -> Result<String, String> {
        self.call("browser_action", args).await
    }

    pub async fn outline(&self) -> Result<String, String> {
        self.call("browser_observe", json!({ "limit": 200 })).await
    }

    /// Returns the controls of the outline.
    pub async fn controls(&self) -> Result<Vec<Element>, String> {
        Ok(parse_elements(&self.outline().await?))
    }

    /// Returns all visible elements below the task's words and left of the score.
    pub async fn elements(&self) -> Result<Vec<Element>, String> {
        let all = self.all_elements().await?;
        let is_task = |one: &Element| one.top >= 50.0 && one.left < 165.0;
        Ok(all.into_iter().filter(is_task).collect())
    }

    pub async fn all_elements(&self) -> Result<Vec<Element>, String> {
        let (mut elements, mut offset) = (Vec::new(), 0);
        loop {
            let args = json!({ "region": "elements", "limit": 200, "offset": offset });
            let text = self.call("browser_observe", args).await?;
            elements.extend(parse_elements(&text));
            let more = text.split("browser_observe with offset ").nth(1);
            match more.and_then(|rest| rest.split_whitespace().next()?.parse().ok()) {
                Some(next) => offset = next,
                None => return Ok(elements),
            }
        }
    }

    /// Returns the element that has exactly this name.
    pub async fn element(&self, name: &str) -> Result<Element, String> {
        let mut elements = self.elements().await?.into_iter();
        let found = elements.find(|one| one.name == name);
        found.ok_or_else(|| format!("no element \"{name}\""))
    }

    /// Returns the shapes of the drawing, whose places are those inside of it, and the drawing.
    pub async fn drawing(&self) -> Result<(Element, Vec<Element>), String> {
        let outline = self.outline().await?;
        let lines: Vec<&str> = outline.lines().collect();
        let at = lines.iter().position(|line| line.contains(" drawing "));
        let drawing = &lines[at.ok_or("no drawing")?..];
        // Many shapes take several lines.
        let more = drawing.iter().skip(1);
        let more = more.take_while(|line| line.starts_with("[e") && !line.contains(" canvas "));
        let lines = 1 + more.count();
        let mut parts = drawing[..lines]
            .iter()
            .flat_map(|line| parse_elements(line));
        let drawing = parts.next().ok_or("no drawing")?;
        Ok((drawing, parts.collect()))
    }

    pub async fn find(&self, roles: &[&str], name: &str) -> Result<Element, String> {
        let controls = self.controls().await?;
        let is_role = |control: &&Element| {
            roles.is_empty() || roles.iter().any(|role| control.kind.starts_with(role))
        };
        let mut matching = controls.iter().filter(is_role);
        let exact = matching.clone().find(|control| control.name == name);
        let found = exact.or_else(|| {
            let name = name.to_lowercase();
            matching.find(|control| control.name.to_lowercase() == name)
        });
        let all = || {
            let texts = controls.iter().map(|one| one.text.as_str());
            texts.collect::<Vec<_>>()
        };
        found
            .cloned()
            .ok_or_else(|| format!("no {roles:?} \"{name}\" in {:?}", all()))
    }

    pub async fn click_on(&self, element: &Element) -> Outcome {
        let args = json!({ "action": "click", "ref": element.id });
        // What moves or is covered for a moment is tried again; a click that fails has clicked nothing.
        for _ in 0..RETRIES {
            if self.act(args.clone()).await.is_ok() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.act(args).await.map(drop)
    }

    pub async fn click_at(&self, element: &Element, x: f64, y: f64) -> Outcome {
        let args = json!({ "action": "click", "ref": element.id, "x": x, "y": y });
        self.act(args).await.map(drop)
    }

    pub async fn click(&self, roles: &[&str], name: &str) -> Outcome {
        let found = self.find(roles, name).await?;
        self.click_on(&found).await
    }

    pub async fn submit(&self) -> Outcome {
        self.click(&["button"], "Submit").await
    }

    /// Returns the control of a role at a position.
    pub async fn nth(&self, role: &str, at: usize) -> Result<Element, String> {
        let controls = self.controls().await?.into_iter();
        let mut matching = controls.filter(|one| one.kind.starts_with(role));
        matching
            .nth(at)
            .ok_or_else(|| format!("no {role} number {at}"))
    }

    pub async fn type_in(&self, element: &Element, text: &str) -> Outcome {
        let args = json!({ "action": "type", "ref": element.id, "text": text });
        self.act(args).await.map(drop)
    }

    pub async fn type_into(&self, role: &str, at: usize, text: &str) -> Outcome {
        self.type_in(&self.nth(role, at).await?, text).await
    }

    /// Presses keys in an element, or where the focus is.
    pub async fn press(&self, element: Option<&Element>, keys: &str) -> Result<String, String> {
        let id = element.map(|element| &element.id);
        self.act(json!({ "action": "press", "ref": id, "key": keys }))
            .await
    }

    /// Drags the mouse along points of an element.
    pub async fn drag_along(&self, element: &Element, points: &[(f64, f64)]) -> Outcome {
        let path: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let args = json!({ "action": "drag", "ref": element.id, "path": path.join(" ") });
        self.act(args).await.map(drop)
    }

    /// Looks at the page until something is there.
    pub async fn wait_for<T>(
        &self,
        what: &str,
        found: impl Fn(&[Element], &str) -> Option<T>,
    ) -> Result<T, String> {
        let start = Instant::now();
        loop {
            let outline = self.outline().await?;
            if let Some(found) = found(&parse_elements(&outline), &outline) {
                return Ok(found);
            }
            if start.elapsed() > PATIENCE {
                return Err(format!("{what} did not appear"));
            }
            tokio::time::sleep(Duration::from_millis(15)).await;
        }
    }

    /// Returns the texts in quotation marks of the task.
    pub fn quoted(&self) -> Vec<String> {
        let parts = self.task.split('"').skip(1).step_by(2);
        parts.map(|part| part.trim().to_owned()).collect()
    }

    pub fn first_quoted(&self) -> Result<String, String> {
        let first = self.quoted().into_iter().next();
        first.ok_or_else(|| self.unexpected())
    }

    /// Returns the task's text between two others.
    pub fn between(&self, before: &str, after: &str) -> Result<String, String> {
        let rest = self.task.split_once(before).map(|(_, rest)| rest);
        let part = rest.and_then(|rest| rest.split_once(after));
        part.map(|(part, _)| part.trim().to_owned())
            .ok_or_else(|| self.unexpected())
    }

    /// Returns the position that the task names as 1st, 2nd and so on, from 0.
    pub fn ordinal(&self, after: &str) -> Result<usize, String> {
        let rest = self.task.split_once(after).map(|(_, rest)| rest);
        let mut words = rest.unwrap_or(&self.task).split_whitespace();
        let number = words.find_map(|word| {
            let digits = word.trim_end_matches(|c: char| !c.is_ascii_digit());
            (digits.len() + 2 <= word.len())
                .then(|| digits.parse::<usize>().ok())
                .flatten()
        });
        number
            .and_then(|number| number.checked_sub(1))
            .ok_or_else(|| self.unexpected())
    }

    pub fn unexpected(&self) -> String {
        format!("unexpected task `{}`", self.task)
    }
}
