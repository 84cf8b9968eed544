// Every visible element with its place and size, also boxes, icons and shapes without text.
(() => {
  const L = globalThis.langoPage;
  const SHAPES = "text, circle, rect, polygon, path, ellipse, line, [onclick], [tabindex]";
  const SHAPE_CAP = 40, NODE_CAP = 20000;
  const SKIPPED = new Set(["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "HEAD", "META", "LINK", "DATALIST", "OPTION", "BR"]);

  const round = (number) => Math.round(number * 10) / 10;
  L.sizeOf = (rect) => `${round(rect.width)}x${round(rect.height)}`;
  const placeOf = (rect, origin) => `${round(rect.left - origin.left)},${round(rect.top - origin.top)} ${L.sizeOf(rect)}`;

  L.shapesOf = (svg) => [...svg.querySelectorAll(SHAPES)].filter((part) => L.isShown(part) || part.tagName === "line").slice(0, SHAPE_CAP);

  L.describeShape = (el, origin) => {
    const text = L.clean(el.textContent, 20), style = getComputedStyle(el);
    const paint = el.getAttribute("fill") || (style.fill !== "none" ? style.fill : style.stroke);
    L.described.set(L.refOf(el), { role: el.tagName, name: text });
    return `[e${L.refOf(el)} ${el.tagName}${text ? ` "${text}"` : ""} ${paint} ${placeOf(el.getBoundingClientRect(), origin)}]`;
  };

  // Returns a color as #rrggbb, or nothing for one that cannot be seen.
  const hex = (color) => {
    const parts = color.match(/^rgba?\((\d+), (\d+), (\d+)(?:, ([\d.]+))?\)$/);
    if (!parts || parts[4] < 0.05) return "";
    return "#" + parts.slice(1, 4).map((part) => (+part).toString(16).padStart(2, "0")).join("");
  };
  const hasText = (el) => [...el.childNodes].some((node) => node.nodeType === 3 && /\S/.test(node.data));
  const hasBorder = (style) => ["Top", "Right", "Bottom", "Left"].some((side) => style[`border${side}Style`] !== "none" && parseFloat(style[`border${side}Width`]) > 0);
  const scrolls = (el, style) => /auto|scroll/.test(style.overflow) && (el.scrollHeight > el.clientHeight + 4 || el.scrollWidth > el.clientWidth + 4);

  const describe = (el, style, role, rect) => {
    const paint = hex(style.backgroundColor);
    const kind = role || (L.pictureOf(style) ? "image" : el.tagName.toLowerCase());
    L.describe(el, kind);
    const own = role ? L.describe(el, role).slice(1, -1) : `e${L.refOf(el)} ${kind}${nameOf(el, kind)}`;
    const room = scrolls(el, style) ? ` scrolls ${Math.round(el.scrollTop)}/${el.scrollHeight - el.clientHeight}` : "";
    return `[${own}${paint ? " " + paint : ""}${room} ${placeOf(rect, { left: 0, top: 0 })}]`;
  };
  const nameOf = (el, kind) => {
    const text = hasText(el) && !L.secrets.has(el) ? L.textOf(el, 120) : "";
    const name = text || (kind === "image" ? L.nameOf(el, kind) : L.clean(el.getAttribute("aria-label") || el.getAttribute("title") || el.getAttribute("class") || "", 40));
    return name ? ` "${name}"` : "";
  };

  L.elements = ({ next }) => {
    L.next = Math.max(L.next, next);
    const lines = [];
    let nodes = 0;
    const visit = (el, outer) => {
      if (++nodes > NODE_CAP || SKIPPED.has(el.tagName)) return;
      const style = getComputedStyle(el), opacity = outer * +style.opacity;
      if (style.display === "none" || opacity < 0.05) return;
      const rect = el.getBoundingClientRect();
      const isSeen = style.visibility === "visible" && rect.width >= 2 && rect.height >= 2 && rect.bottom > 0 && rect.right > 0 && rect.top < innerHeight && rect.left < innerWidth;
      if (el.tagName === "svg") {
        if (isSeen) lines.push(`[e${L.refOf(el)} drawing ${placeOf(rect, { left: 0, top: 0 })}] ${L.shapesOf(el).map((part) => L.describeShape(part, rect)).join(" ")}`.trim());
        return;
      }
      const role = L.roleOf(el), isPage = el === document.body || el === document.documentElement;
      const isBox = hex(style.backgroundColor) !== "" || hasBorder(style) || L.pictureOf(style) !== "" || el.tagName === "IMG" || scrolls(el, style);
      if (isSeen && !isPage && (role || isBox || (hasText(el) && !L.hidesText(el, style)))) lines.push(describe(el, style, role, rect));
      if (["SELECT", "TEXTAREA", "IFRAME"].includes(el.tagName) || L.secrets.has(el)) return;
      const children = el.tagName === "SLOT" ? el.assignedElements({ flatten: true }) : (el.shadowRoot || el).children;
      for (const child of children) visit(child, opacity);
    };
    if (document.body) visit(document.body, 1);
    const scroller = document.scrollingElement || document.documentElement;
    return {
      lines, frames: [], next: L.next, above: 0, below: 0, truncated: nodes > NODE_CAP, title: L.clean(document.title, 150), url: location.href,
      scroll: Math.round(scrollY), height: scroller.scrollHeight, viewport: innerHeight,
    };
  };
})();
