//! PDF files for tests.

/// Returns a PDF file with the content stream of each page.
pub fn pdf(pages: &[&str]) -> Vec<u8> {
    let kids: String = (0..pages.len())
        .map(|page| format!("{} 0 R ", 4 + 2 * page))
        .collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Kids [{kids}] /Count {} >>", pages.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_owned(),
    ];
    for (index, content) in pages.iter().enumerate() {
        let resources = "/Resources << /Font << /F1 3 0 R >> >> /MediaBox [0 0 612 792]";
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R {resources} /Contents {} 0 R >>",
            5 + 2 * index
        ));
        objects.push(format!(
            "<< /Length {} >>\nstream\n{content}\nendstream",
            content.len()
        ));
    }
    objects.push("<< /Title (A small file) >>".to_owned());
    let mut file = String::from("%PDF-1.4\n");
    let mut table = String::from("0000000000 65535 f \n");
    for (index, object) in objects.iter().enumerate() {
        table.push_str(&format!("{:010} 00000 n \n", file.len()));
        file.push_str(&format!("{} 0 obj\n{object}\nendobj\n", index + 1));
    }
    let (count, start) = (objects.len() + 1, file.len());
    let info = objects.len();
    file.push_str(&format!(
        "xref\n0 {count}\n{table}trailer\n<< /Size {count} /Root 1 0 R /Info {info} 0 R >>\nstartxref\n{start}\n%%EOF\n"
    ));
    file.into_bytes()
}
