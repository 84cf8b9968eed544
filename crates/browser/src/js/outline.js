// The outline of a document: one line for each block, references in brackets.
(() => {
  const L = globalThis.langoPage;
  const NODE_CAP = 60000, DEPTH_CAP = 300, LINE_CAP = 500, TEXT_CAP = 1500, VALUE_CAP = 4000;
  const SKIPPED = new Set(["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "HEAD", "META", "LINK", "OBJECT", "EMBED", "DATALIST"]);
  const LEAVES = new Set(["link", "button", "textbox", "searchbox", "combobox", "listbox", "checkbox", "radio", "switch", "slider",
    "spinbutton", "file", "color", "menuitem", "menuitemcheckbox", "menuitemradio", "tab", "option", "video", "audio", "canvas"]);
  // Controls that may hold other controls.
  const HOLDERS = new Set(["link", "tab", "option", "menuitem", "menuitemcheckbox", "menuitemradio"]);

  L.outline = ({ region, ref, next, cap }) => {
    L.next = Math.max(L.next, next);
    const height = innerHeight, width = innerWidth;
    const all = region === "page" || region === "ref";
    const S = { lines: [], cur: "", prefix: "", nodes: 0, above: 0, below: 0, chars: 0, frames: [], truncated: false };

    const flush = () => {
      const text = S.cur.replace(/\s+/g, " ").trim();
      if (text) {
        S.lines.push(S.prefix + text);
        S.chars += text.length;
        S.prefix = "";
      }
      S.cur = "";
    };
    const add = (text) => {
      if (S.chars > cap) { S.truncated = true; return; }
      S.cur += text;
      if (S.cur.length > LINE_CAP) flush();
    };
    const isInside = (rect) => all || (rect.bottom > 0 && rect.top < height && rect.right > 0 && rect.left < width);
    const count = (rect) => { if (rect.bottom <= 0) S.above++; else if (rect.top >= height) S.below++; };
    // Nothing can be scrolled to the left of or above the page.
    const isOffPage = (rect) => rect.right + scrollX <= 0 || rect.bottom + scrollY <= 0;

    const visitText = (node, el, style, boxed, ctx) => {
      if (style.visibility !== "visible" || ctx.named) return;
      if (!/\S/.test(node.data)) { if (S.cur && !S.cur.endsWith(" ")) S.cur += " "; return; }
      let rect = el.getBoundingClientRect();
      if (!all && (rect.height > height * 1.5 || style.display === "contents")) {
        const range = document.createRange();
        range.selectNodeContents(node);
        rect = range.getBoundingClientRect();
      }
      if (!isInside(rect)) return;
      if (isOffPage(rect) && style.display !== "contents") return;
      if (boxed.hides === undefined) boxed.hides = L.hidesText(el, style);
      if (boxed.hides) return;
      const lead = /^\s/.test(node.data) ? " " : "", trail = /\s$/.test(node.data) ? " " : "";
      add(lead + L.clean(node.data, TEXT_CAP) + trail);
    };

    const visitChildren = (el, style, ctx) => {
      const boxed = {};
      const nodes = el.tagName === "SLOT" ? el.assignedNodes({ flatten: true }) : (el.shadowRoot || el).childNodes;
      const children = nodes.length || el.tagName !== "SLOT" ? nodes : el.childNodes;
      for (const child of children) {
        if (child.nodeType === 3) visitText(child, el, style, boxed, ctx);
        else if (child.nodeType === 1) visit(child, { ...ctx, depth: ctx.depth + 1, cursor: style.cursor });
      }
    };

    const visitControl = (el, role, rect, max) => {
      if (!isInside(rect)) { count(rect); return; }
      if (role === "frame") {
        flush();
        S.frames.push({ line: S.lines.length, ref: L.refOf(el) });
        add(`[e${L.refOf(el)} frame${el.title ? ` "${L.clean(el.title, 60)}"` : ""}]`);
        flush();
        return;
      }
      const gap = S.cur && !S.cur.endsWith(" ") ? " " : "";
      add(gap + L.describe(el, role, max));
    };

    // A control without a box of its own is operated through its label.
    const hasShownLabel = (el) => ["checkbox", "radio", "file"].includes(el.type) && L.labelsOf(el).some(L.isShown);

    const isRow = (el) =>
      el.tagName === "TR" && !el.querySelector("table, form, h1, h2, h3, p, ul, ol") && el.textContent.length < 400;

    const visit = (el, ctx) => {
      if (S.truncated || SKIPPED.has(el.tagName)) return;
      if (++S.nodes > NODE_CAP || ctx.depth > DEPTH_CAP) { S.truncated = true; return; }
      if (el.tagName === "svg") return visitSvg(el, ctx);
      const rect = el.getBoundingClientRect();
      const style = getComputedStyle(el);
      if (style.display === "none") {
        if (el.tagName === "INPUT" && hasShownLabel(el)) visitControl(el, L.roleOf(el), L.labelsOf(el).find(L.isShown).getBoundingClientRect());
        return;
      }
      const opacity = ctx.opacity * +style.opacity;
      const isSeen = opacity >= 0.05 && style.visibility === "visible";
      const role = L.roleOf(el);
      if (!isSeen && opacity < 0.05) {
        if (el.tagName === "INPUT" && hasShownLabel(el)) visitControl(el, role, rect);
        else if (el.tagName === "INPUT" && ["checkbox", "radio", "file"].includes(el.type) && rect.width > 3) visitControl(el, role, rect);
        return;
      }
      // A box without room hides what is in it.
      if (rect.width <= 1 && rect.height <= 1 && style.overflow !== "visible" && style.display !== "contents") return;
      if (isSeen && style.clipPath === "inset(50%)") return;
      const inner = { ...ctx, opacity };
      if (isSeen && role && rect.width > 0 && rect.height > 0 && !(isOffPage(rect))) {
        if (role === "frame" && (rect.width < 8 || rect.height < 8)) return;
        if (LEAVES.has(role) || role === "frame") {
          if (role === "option" && el.closest("select")) return;
          const block = !ctx.row && !style.display.startsWith("inline");
          if (block) flush();
          const wide = HOLDERS.has(role) && el.querySelector("button, input, select, textarea");
          visitControl(el, role, rect);
          if (block) flush();
          if (wide && isInside(rect)) for (const one of el.querySelectorAll("button, input, select, textarea")) if (L.isShown(one) && L.roleOf(one)) visitControl(one, L.roleOf(one), one.getBoundingClientRect());
          return;
        }
      }
      visitBox(el, style, rect, inner, isSeen);
    };

    // The text of a label is the name of its control, which stands for both.
    const isNameOfControl = (el) => {
      const control = el.tagName === "LABEL" && el.control, role = control && L.roleOf(control);
      if (!role || !(L.isShown(control) || hasShownLabel(control)) || !isInside(control.getBoundingClientRect())) return false;
      return L.nameOf(control, role) === L.textOf(el, 120);
    };

    // An icon inside of something that reacts to clicks may have an effect of its own.
    const isIcon = (el, style, rect) => style.cursor === "pointer" && rect.width >= 6 && rect.height >= 6 && rect.width <= 64 && rect.height <= 64 &&
      !el.childElementCount && !/\S/.test(el.textContent) && L.pictureOf(style) !== "";

    const visitBox = (el, style, rect, ctx, isSeen) => {
      const isBlock = !ctx.row && !style.display.startsWith("inline") && style.display !== "contents";
      const row = !ctx.row && isRow(el);
      if (isBlock || row) flush();
      const level = /^H[1-6]$/.test(el.tagName) ? +el.tagName[1] : el.getAttribute("role") === "heading" ? +(el.getAttribute("aria-level") || 2) : 0;
      if (isSeen && level && !ctx.row) S.prefix = "#".repeat(level) + " ";
      else if (isSeen && el.tagName === "LI" && !ctx.row && !S.prefix) S.prefix = "- ";
      if (isSeen && el.tagName === "IMG") {
        const alt = L.clean(el.getAttribute("alt") || "", 80);
        const clickable = L.isClickable(el, style, ctx.cursor);
        if (clickable && isInside(rect)) visitControl(el, "image", rect);
        else if (alt && isInside(rect) && rect.width > 24) add(` (image: ${alt}) `);
        return;
      }
      if (isSeen && isInside(rect) && isIcon(el, style, rect)) return visitControl(el, "image", rect);
      if (el.tagName === "BR") { if (!ctx.row) flush(); return; }
      const before = { lines: S.lines.length, cur: S.cur };
      const canClick = isSeen && rect.width > 0 && rect.height > 0 && el.tagName !== "LABEL" && el.tagName !== "BODY" && el.tagName !== "HTML" && L.isClickable(el, style, ctx.cursor);
      visitChildren(el, style, { ...ctx, row: ctx.row || row, named: ctx.named || isNameOfControl(el) });
      if (canClick && isInside(rect)) markClickable(el, before);
      else if (canClick) count(rect);
      if (ctx.row && (el.tagName === "TD" || el.tagName === "TH")) { if (!/\|\s*$/.test(S.cur)) S.cur += " | "; }
      if (row) S.cur = S.cur.replace(/\s*\|\s*$/, "");
      if (isBlock || row) { flush(); S.prefix = ""; }
    };

    // An element that reacts to clicks is named by the text that it added, unless that has references already.
    const markClickable = (el, before) => {
      const hasLines = S.lines.length > before.lines;
      const added = hasLines ? S.lines.slice(before.lines).join(" ") + S.cur : S.cur.slice(before.cur.length);
      const inner = added.match(/\[e\d[^\]]*\]/g) || [];
      const icons = inner.filter((one) => /^\[e\d+ image/.test(one));
      if (inner.length > icons.length || (inner.length && !L.textOf(el, 10))) return;
      const role = el.getAttribute("role") || "clickable";
      if (hasLines) { S.lines.length = before.lines; S.cur = before.cur; }
      else S.cur = before.cur;
      add((S.cur && !S.cur.endsWith(" ") ? " " : "") + [L.describe(el, role), ...icons].join(" ") + " ");
    };

    // Shapes have no text of their own, but may be clicked. Their places are those inside the drawing.
    const visitSvg = (el, ctx) => {
      const rect = el.getBoundingClientRect();
      if (!isInside(rect) || rect.width < 4) return;
      const isDrawing = rect.width >= 48 && rect.height >= 48;
      if (!isDrawing) { if (L.isClickable(el, getComputedStyle(el), ctx.cursor)) visitControl(el, "image", rect); return; }
      flush();
      L.described.set(L.refOf(el), { role: "drawing", name: "" });
      add(`[e${L.refOf(el)} drawing ${L.sizeOf(rect)}]`);
      for (const part of L.shapesOf(el)) add(" " + L.describeShape(part, rect));
      flush();
    };

    const root = region === "ref" ? L.element(ref) : document.body || document.documentElement;
    if (!root) return { missing: true };
    if (region === "ref") visitChildrenOfRoot(root); else visit(root, { opacity: 1, depth: 0, row: false, cursor: "auto" });
    function visitChildrenOfRoot(el) {
      const role = L.roleOf(el);
      if (role && LEAVES.has(role)) visitControl(el, role, el.getBoundingClientRect(), VALUE_CAP);
      else visitChildren(el, getComputedStyle(el), { opacity: 1, depth: 0, row: false });
    }
    flush();
    const scroller = document.scrollingElement || document.documentElement;
    return {
      lines: S.lines, frames: S.frames, next: L.next, above: S.above, below: S.below, truncated: S.truncated, title: L.clean(document.title, 150),
      url: location.href, scroll: Math.round(scrollY), height: scroller.scrollHeight, viewport: height, mutations: L.mutations.count,
    };
  };
})();
