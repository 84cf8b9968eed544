//! The description of the API is true.

use std::path::Path;

use lango_gateway::openapi_document;
use lango_testkit::golden;

use crate::client::Request;
use crate::house::{Admin, House};

#[test]
fn the_description_is_as_committed() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    golden::check(&page, &format!("{:#}\n", openapi_document()));
}

#[tokio::test]
async fn everything_that_is_described_is_there() {
    let house = House::open("root always says hi").await;
    let token = house.token("ann", &[Admin]).await;
    let document = openapi_document();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let method = match method.as_str() {
                "get" => "GET",
                "post" => "POST",
                "delete" => "DELETE",
                other => panic!("{other}"),
            };
            let place = path.replace("{session}", "none").replace("{model}", "lango");
            let request = Request { method, ..Request::get(&place) };
            let reply = request.by(&token).send(house.address).await;
            let is_there = reply.status != 405 && !reply.body.contains("there is nothing at");
            assert!(is_there, "{method} {place}: {} {}", reply.status, reply.body);
        }
    }
    let counted = house.get("/metrics", &token).await.body;
    assert!(
        counted.contains("lango_requests_total{route=\"/api/sessions/{session}\",status=\"404\"}"),
        "{counted}"
    );
}
