//! Passages are followed over the graph: content, not bare names.

use std::sync::Arc;

use lango_domain::documents::NewDocument;
use lango_domain::event::Principal;
use lango_knowledge::document_index::{DocumentIndex, chunk_text};
use lango_knowledge::graph::LazyGraph;
use lango_knowledge::{GraphExpansion, Lazy, embedding::HashedEmbedder};
use serde_json::{Value, json};

use super::{GraphHarness, graph, me};
use crate::tool_calls::context;

pub fn lazy(desk: &GraphHarness) -> LazyGraph {
    let store = desk.store.clone();
    LazyGraph::new(move || Ok(Arc::new(graph(&store))))
}

async fn document_index(desk: &GraphHarness) -> DocumentIndex {
    let library = DocumentIndex::new(
        Arc::new(desk.store.clone()),
        desk.folder.path().join("words"),
        Some(Arc::new(HashedEmbedder::default())),
    );
    let document = |of: &Principal, name: &str, text: &str| {
        let document = NewDocument {
            collection: "notes".to_owned(),
            source: name.to_owned(),
            root: name.to_owned(),
            title: name.to_owned(),
            hash: name.to_owned(),
            session: None,
            chunks: chunk_text(text),
        };
        let (library, of) = (library.clone(), of.clone());
        async move { library.ingest_documents(&of, vec![document]).await.unwrap() }
    };
    document(
        &me(),
        "people.md",
        "Ann Lee is the gardener of the tower.\n",
    )
    .await;
    document(
        &me(),
        "plants.md",
        "Basil and mint grow best in half shade, says Quarry House.\n",
    )
    .await;
    document(&me(), "boats.md", "A boat needs wind.\n").await;
    document(
        &Principal::new("bob"),
        "bob.md",
        "Quarry House is where Bob hides.\n",
    )
    .await;
    library
}

async fn retrieve(desk: &GraphHarness, along: GraphExpansion, query: &str) -> Value {
    let library = document_index(desk).await;
    let tools = lango_knowledge::tools(
        &Lazy::new(move || Ok(Arc::new(library.clone()))),
        along,
        None,
    );
    let output = tools[0]
        .call(context(), json!({ "query": query, "limit": 1 }))
        .await
        .unwrap();
    serde_json::from_str(&output.text).unwrap()
}

#[tokio::test]
async fn a_passage_leads_to_passages_about_what_is_connected() {
    let desk = GraphHarness::new();
    desk.add_facts("ann lee | lives in | Quarry House").await;
    let found = retrieve(
        &desk,
        GraphExpansion::On(lazy(&desk)),
        "who is the gardener",
    )
    .await;
    let items = found["items"].as_array().unwrap();
    assert_eq!(
        (items[0]["source"].as_str(), items.len()),
        (Some("people.md"), 2),
        "{found}"
    );
    assert_eq!(items[1]["source"], "plants.md");
    assert!(items[1]["text"].as_str().unwrap().contains("half shade"));
    assert_eq!(items[1]["why"]["graph"], "ann lee lives in Quarry House");
    assert_eq!(found["facts"][0]["object"], "Quarry House");
    assert!(!found.to_string().contains("Bob hides"), "B74");
}

#[tokio::test]
async fn without_the_graph_and_without_facts_passages_stay_alone() {
    let desk = GraphHarness::new();
    let along = GraphExpansion::On(lazy(&desk));
    let found = retrieve(&desk, along, "who is the gardener").await;
    assert_eq!(
        (found["items"].as_array().unwrap().len(), found.get("facts")),
        (1, None)
    );
    desk.add_facts("Ann Lee | lives in | Quarry House").await;
    assert_eq!(
        retrieve(&desk, GraphExpansion::Off, "who is the gardener").await["items"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}
