// Reads content of a page: what a person sees, without what is hidden.
(() => {
  const L = globalThis.langoPage;
  const KEPT = ["href", "alt", "class", "id", "role", "lang", "colspan", "start", "cite"];
  const SKIPPED = new Set(["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "IFRAME", "OBJECT", "EMBED", "LINK", "META", "SVG", "svg", "SELECT", "TEXTAREA", "INPUT", "BUTTON"]);
  const escape = (text) => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" }[c]));
  const scope = (ref) => (ref ? L.element(ref) : document.body || document.documentElement);

  L.html = ({ ref, cap }) => {
    const root = scope(ref);
    if (!root) return L.stale(ref);
    let out = "", nodes = 0;
    const visit = (node, depth, outer) => {
      if (out.length > cap || ++nodes > 80000 || depth > 300) return;
      if (node.nodeType === 3) { out += escape(node.data); return; }
      if (node.nodeType !== 1 || SKIPPED.has(node.tagName)) return;
      const style = getComputedStyle(node);
      const opacity = outer * +style.opacity;
      if (style.display === "none" || opacity < 0.05) return;
      const rect = node.getBoundingClientRect();
      if (style.display !== "contents" && (rect.right + scrollX <= 0 || rect.bottom + scrollY <= 0) && rect.width > 0) return;
      if (rect.width <= 1 && rect.height <= 1 && style.overflow !== "visible") return;
      const hidesOwn = style.visibility !== "visible" || ([...node.childNodes].some((one) => one.nodeType === 3 && /\S/.test(one.data)) && L.hidesText(node, style));
      const tag = node.tagName.toLowerCase().replace(/[^a-z0-9]/g, "");
      const name = node.tagName.includes("-") ? "div" : tag;
      out += "<" + name;
      for (const attr of KEPT) if (node.hasAttribute(attr)) out += ` ${attr}="${escape(attr === "href" ? node.href?.baseVal ?? node.href ?? "" : node.getAttribute(attr))}"`;
      out += ">";
      const children = node.tagName === "SLOT" ? node.assignedNodes({ flatten: true }) : (node.shadowRoot || node).childNodes;
      for (const child of children) if (!(hidesOwn && child.nodeType === 3)) visit(child, depth + 1, opacity);
      if (!["br", "hr", "img", "wbr"].includes(name)) out += `</${name}>`;
    };
    visit(root, 0, 1);
    return { html: `<html><head><title>${escape(document.title)}</title></head><body>${out}</body></html>`, url: location.href };
  };

  L.links = ({ ref, next }) => {
    L.next = Math.max(L.next, next);
    const root = scope(ref);
    if (!root) return L.stale(ref);
    const seen = new Set(), links = [];
    for (const el of root.querySelectorAll("a[href]")) {
      const text = L.nameOf(el, "link");
      if (!/^https?:/.test(el.href) || seen.has(el.href) || !text || !L.isShown(el)) continue;
      seen.add(el.href);
      links.push({ ref: L.refOf(el), text, url: el.href });
      L.described.set(L.refOf(el), { role: "link", name: text });
      if (links.length >= 2000) break;
    }
    return { links, next: L.next };
  };

  L.tables = ({ ref, next }) => {
    L.next = Math.max(L.next, next);
    const root = scope(ref);
    if (!root) return L.stale(ref);
    const own = root.matches("table, [role=table], [role=grid]") ? [root] : [...root.querySelectorAll("table, [role=table], [role=grid]")].filter((one) => L.isShown(one) && !one.querySelector("table"));
    const tables = own.slice(0, 20).map((table) => {
      const rows = [...table.querySelectorAll("tr, [role=row]")].filter(L.isShown);
      const cells = (row) => [...row.querySelectorAll("td, th, [role=cell], [role=gridcell], [role=columnheader], [role=rowheader]")].map((one) => L.textOf(one, 200));
      return { ref: L.refOf(table), caption: L.clean(table.caption?.textContent || table.getAttribute("aria-label") || "", 100), rows: rows.slice(0, 500).map(cells).filter((row) => row.some(Boolean)), total: rows.length };
    }).filter((table) => table.rows.length);
    return { tables, next: L.next };
  };

  L.forms = ({ ref, next }) => {
    L.next = Math.max(L.next, next);
    const root = scope(ref);
    if (!root) return L.stale(ref);
    const own = root.matches("form") ? [root] : [...root.querySelectorAll("form")];
    const describe = (fields) => fields.filter((one) => L.roleOf(one) && (L.isShown(one) || L.labelsOf(one).some(L.isShown))).slice(0, 60).map((one) => L.describe(one));
    const forms = own.slice(0, 10).map((form) => ({ ref: L.refOf(form), name: L.clean(form.getAttribute("aria-label") || form.name || form.id || "", 60), method: form.method, action: form.action, fields: describe([...form.elements]) })).filter((form) => form.fields.length);
    const loose = describe([...root.querySelectorAll("input, select, textarea, [contenteditable]")].filter((one) => !one.form));
    if (loose.length) forms.push({ ref: 0, name: "", method: "", action: "", fields: loose });
    return { forms, next: L.next };
  };

  L.summary = () => ({
    description: L.clean(document.querySelector("meta[name=description], meta[property='og:description']")?.content || "", 300),
    headings: [...document.querySelectorAll("h1, h2, h3")].filter(L.isShown).slice(0, 40).map((one) => "#".repeat(+one.tagName[1]) + " " + L.textOf(one, 120)),
    links: document.links.length, forms: document.forms.length, tables: document.querySelectorAll("table").length, fields: document.querySelectorAll("input:not([type=hidden]), select, textarea").length,
  });

  // Results of a search page: headings that are links, or links with a heading, each with the text around it.
  L.results = ({ ref, next }) => {
    L.next = Math.max(L.next, next);
    const root = scope(ref);
    if (!root) return L.stale(ref);
    const results = [], seen = new Set();
    const own = root.querySelectorAll("h1 a[href], h2 a[href], h3 a[href], h4 a[href], a[href] h2, a[href] h3, a[href] h4, a.result__a, a.result-link, [class*=result] a[href], li > a[href], article a[href]");
    for (const found of own) {
      const link = found.closest("a");
      const url = target(link);
      if (!url || seen.has(url) || !L.isShown(link) || link.closest(".result--ad, [class*=advert], nav, header, footer")) continue;
      const title = L.textOf(found, 150);
      if (title.length < 3) continue;
      seen.add(url);
      let box = link;
      while (box.parentElement && box.parentElement !== root && box.parentElement.querySelectorAll("a[href]").length <= 4 && box.textContent.length < 600) box = box.parentElement;
      let text = L.textOf(box, 500);
      if (text.startsWith(title)) text = text.slice(title.length).trim();
      results.push({ ref: L.refOf(link), title, url, text: L.clean(text, 300) });
      L.described.set(L.refOf(link), { role: "link", name: title });
      if (results.length >= 50) break;
    }
    return { results, next: L.next };
  };
  // Search engines link through themselves, with the real address in a parameter.
  const target = (link) => {
    try {
      const url = new URL(link.href);
      const inner = url.searchParams.get("uddg") || (url.pathname === "/url" && url.searchParams.get("q"));
      const real = inner ? new URL(inner) : url;
      return /^https?:$/.test(real.protocol) && (inner || url.host !== location.host || url.pathname !== location.pathname) ? real.href : null;
    } catch { return null; }
  };

  // Turns fields that hold a secret into grey boxes for a screenshot. A filter covers what is inside, wherever it is.
  let covered = [];
  L.coverSecrets = () => {
    covered = [...L.secrets].filter((el) => el.isConnected).map((el) => [el, el.getAttribute("style")]);
    for (const [el] of covered) for (const [name, value] of [["transition", "none"], ["animation", "none"], ["background", "#808080"], ["filter", "contrast(0)"]]) el.style.setProperty(name, value, "important");
    return { covered: covered.length };
  };
  L.uncoverSecrets = () => {
    for (const [el, style] of covered) style === null ? el.removeAttribute("style") : el.setAttribute("style", style);
    covered = [];
    return {};
  };
  // All text of the document, with the values of fields that are not covered.
  L.allText = () => {
    let text = "";
    const visit = (node) => {
      if (node.nodeType === 3) text += node.data;
      if (L.secrets.has(node) || ["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE"].includes(node.tagName)) return;
      if (["INPUT", "TEXTAREA"].includes(node.tagName) && node.type !== "password" && node.type !== "hidden") text += ` ${node.value} `;
      for (const child of node.childNodes) visit(child);
      if (node.shadowRoot) visit(node.shadowRoot);
    };
    visit(document);
    return { text };
  };

  // Draws references next to their elements, for a screenshot.
  L.decorate = ({ refs, next }) => {
    L.next = Math.max(L.next, next);
    const host = document.createElement("div");
    host.style.cssText = "position:fixed;inset:0;pointer-events:none;z-index:2147483647";
    const root = host.attachShadow({ mode: "closed" });
    const draw = (el, css, text) => {
      const rect = el.getBoundingClientRect();
      if (rect.bottom < 0 || rect.top > innerHeight || rect.width === 0) return;
      const box = document.createElement("div");
      box.style.cssText = `position:fixed;left:${rect.left}px;top:${rect.top}px;width:${rect.width}px;height:${rect.height}px;box-sizing:border-box;${css}`;
      if (text) {
        const tag = document.createElement("span");
        tag.textContent = text;
        tag.style.cssText = "position:absolute;left:0;top:-2px;font:bold 11px sans-serif;background:#c00;color:#fff;padding:0 3px";
        box.append(tag);
      }
      root.append(box);
    };
    if (refs) for (const [ref, weak] of L.byRef) { const el = weak.deref(); if (el?.isConnected && L.isShown(el) && el.tagName !== "IFRAME") draw(el, "border:1px solid #c00", `e${ref}`); }
    if (!root.childNodes.length) return { drawn: false };
    document.documentElement.append(host);
    L.decoration = host;
    return { drawn: true };
  };
  L.undecorate = () => { L.decoration?.remove(); L.decoration = null; return {}; };

  L.boxOf = ({ ref }) => {
    const el = L.element(ref);
    if (!el) return L.stale(ref);
    el.scrollIntoView({ block: "nearest", behavior: "instant" });
    const rect = el.getBoundingClientRect();
    return { x: rect.left, y: rect.top, width: rect.width, height: rect.height, scrollX, scrollY };
  };
  L.pageSize = () => { const page = document.scrollingElement || document.documentElement; return { width: page.scrollWidth, height: page.scrollHeight }; };
})();
