//! Graph expansion of search results returns passages, not only names.

use std::sync::Arc;

use lango_documents::document_index::{DocumentIndex, chunk_text};
use lango_documents::embedding::HashedEmbedder;
use lango_domain::documents::{NewDocument, PassageExpander};
use lango_domain::event::Principal;
use lango_domain::lazy::Lazy;
use lango_graph::GraphExpander;
use lango_graph::LazyGraph;
use serde_json::{Value, json};

use super::{GraphHarness, graph, me};
use lango_testkit::tool_context as context;

pub fn lazy(harness: &GraphHarness) -> LazyGraph {
    let store = harness.store.clone();
    LazyGraph::new(move || Ok(Arc::new(graph(&store))))
}

async fn document_index(harness: &GraphHarness) -> DocumentIndex {
    let documents = DocumentIndex::new(
        Arc::new(harness.store.clone()),
        harness.folder.path().join("words"),
        Some(Arc::new(HashedEmbedder::default())),
    );
    let document = |principal: &Principal, name: &str, text: &str| {
        let document = NewDocument {
            collection: "notes".to_owned(),
            source: name.to_owned(),
            root: name.to_owned(),
            title: name.to_owned(),
            hash: name.to_owned(),
            session: None,
            chunks: chunk_text(text),
        };
        let (documents, principal) = (documents.clone(), principal.clone());
        async move {
            documents
                .ingest_documents(&principal, vec![document])
                .await
                .unwrap()
        }
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
    documents
}

async fn retrieve(
    harness: &GraphHarness,
    expander: Option<Arc<dyn PassageExpander>>,
    query: &str,
) -> Value {
    let documents = document_index(harness).await;
    let tools = lango_documents::tools(
        &Lazy::new(move || Ok(Arc::new(documents.clone()))),
        expander,
        None,
    );
    let output = tools[0]
        .call(context(), json!({ "query": query, "limit": 1 }))
        .await
        .unwrap();
    serde_json::from_str(&output.content.text).unwrap()
}

#[tokio::test]
async fn adds_passages_about_connected_names() {
    let harness = GraphHarness::new();
    harness.add_facts("ann lee | lives in | Quarry House").await;
    let found = retrieve(
        &harness,
        Some(Arc::new(GraphExpander(lazy(&harness)))),
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
async fn adds_nothing_without_the_graph_or_without_facts() {
    let harness = GraphHarness::new();
    let expander: Arc<dyn PassageExpander> = Arc::new(GraphExpander(lazy(&harness)));
    let found = retrieve(&harness, Some(expander), "who is the gardener").await;
    assert_eq!(
        (found["items"].as_array().unwrap().len(), found.get("facts")),
        (1, None)
    );
    harness.add_facts("Ann Lee | lives in | Quarry House").await;
    assert_eq!(
        retrieve(&harness, None, "who is the gardener").await["items"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}
