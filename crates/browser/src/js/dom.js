// Roles, names, states, visibility and references of elements. Runs in an isolated world of each frame:
// the page can neither see nor change it.
(() => {
  const L = (globalThis.langoPage = {});
  L.byRef = new Map();
  L.refs = new WeakMap();
  // Fields that hold a secret: outlines and screenshots do not show their values.
  L.secrets = new Set();
  // What each reference was shown as, to find its successor.
  L.described = new Map();
  L.next = 1;

  // A reference belongs to one element for ever. It is never given to another one.
  L.refOf = (el) => {
    let ref = L.refs.get(el);
    if (!ref) {
      ref = L.next++;
      L.refs.set(el, ref);
      L.byRef.set(ref, new WeakRef(el));
    }
    return ref;
  };

  L.element = (ref) => {
    const el = L.byRef.get(ref)?.deref();
    return el && el.isConnected && el.ownerDocument === document ? el : null;
  };

  L.clean = (text, max) => {
    text = text.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ue000-\uf8ff\ufeff\u{e0000}-\u{e0fff}\s]+/gu, " ").trim();
    if (max && text.length > max) text = text.slice(0, max - 1).trimEnd() + "…";
    return text.isWellFormed ? text.toWellFormed() : text;
  };

  const INPUT_ROLES = {
    button: "button", submit: "button", reset: "button", image: "button", checkbox: "checkbox", radio: "radio",
    range: "slider", number: "spinbutton", file: "file", color: "color", search: "searchbox",
  };
  const TAG_ROLES = {
    BUTTON: "button", TEXTAREA: "textbox", SUMMARY: "disclosure", OPTION: "option", IFRAME: "frame", FRAME: "frame",
    VIDEO: "video", AUDIO: "audio", CANVAS: "canvas",
  };
  const ACTION_ROLES = new Set([
    "button", "link", "checkbox", "radio", "switch", "textbox", "searchbox", "combobox", "listbox", "option",
    "menuitem", "menuitemcheckbox", "menuitemradio", "tab", "treeitem", "slider", "spinbutton", "gridcell",
  ]);

  L.roleOf = (el) => {
    const explicit = el.getAttribute("role")?.trim().split(/\s+/)[0];
    if (explicit && ACTION_ROLES.has(explicit)) return explicit;
    switch (el.tagName) {
      case "A": return el.hasAttribute("href") ? "link" : null;
      case "INPUT": {
        if (el.type === "hidden") return null;
        return INPUT_ROLES[el.type] || (el.list ? "combobox" : "textbox");
      }
      case "SELECT": return el.multiple || el.size > 1 ? "listbox" : "combobox";
      case "AREA": return el.hasAttribute("href") ? "link" : null;
      case "OPTION": return null;
    }
    if (TAG_ROLES[el.tagName]) return TAG_ROLES[el.tagName];
    if (el.isContentEditable && !el.parentElement?.isContentEditable) return "textbox";
    return null;
  };

  // Returns true for elements without a role that react to clicks.
  L.isClickable = (el, style, parentCursor) =>
    el.hasAttribute("onclick") || (el.tabIndex >= 0 && el.hasAttribute("tabindex")) || el.getAttribute("draggable") === "true" ||
    (style.cursor === "pointer" && (parentCursor !== "pointer" || el.tagName === "LI")) ||
    (el.tagName === "A" && (el.title !== "" || Object.keys(el.dataset).length > 0));

  L.parentOf = (node) => node.assignedSlot || node.parentElement || node.getRootNode().host || null;

  L.isShown = (el) => {
    if (!el.checkVisibility || !el.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true })) return false;
    for (let at = el; at; at = L.parentOf(at)) if (+getComputedStyle(at).opacity < 0.05) return false;
    const rect = el.getBoundingClientRect();
    return rect.width > 0 && rect.height > 0;
  };

  const rgb = (color) => {
    const parts = color.match(/^rgba?\(([\d.]+), ([\d.]+), ([\d.]+)(?:, ([\d.]+))?\)$/);
    return parts ? [+parts[1], +parts[2], +parts[3], parts[4] === undefined ? 1 : +parts[4]] : null;
  };

  // Returns true if a person cannot see text of this element: no size, no contrast.
  L.hidesText = (el, style) => {
    if (parseFloat(style.fontSize) < 3) return true;
    if (Math.abs(parseFloat(style.textIndent)) > 2000) return true;
    const color = rgb(style.webkitTextFillColor || style.color);
    if (!color || style.webkitBackgroundClip === "text") return false;
    if (color[3] < 0.05) return true;
    for (let at = el; at; at = L.parentOf(at)) {
      const layer = at === el ? style : getComputedStyle(at);
      if (layer.backgroundImage !== "none" || layer.position === "fixed" || layer.position === "absolute") return false;
      const back = rgb(layer.backgroundColor);
      if (!back) return false;
      if (back[3] > 0.9) return Math.max(...[0, 1, 2].map((i) => Math.abs(back[i] - color[i]))) < 10;
      if (back[3] > 0.05) return false;
    }
    return Math.min(color[0], color[1], color[2]) > 245;
  };

  // Returns text below an element; text that is not shown only if there is no other.
  const textBelow = (el, max, shownOnly) => {
    let text = "";
    const visit = (node) => {
      if (text.length > max) return;
      if (node.nodeType === 3) text += node.data;
      else if (node.nodeType === 1 && !["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "SELECT", "TEXTAREA"].includes(node.tagName)) {
        if (shownOnly && !L.isShown(node) && getComputedStyle(node).display !== "contents") return;
        if (node.tagName === "IMG" || node.tagName === "svg") text += " " + (node.getAttribute("alt") || node.getAttribute("aria-label") || "");
        const inner = node.shadowRoot || node;
        for (const child of node.tagName === "SLOT" ? node.assignedNodes({ flatten: true }) : inner.childNodes) visit(child);
        if (getComputedStyle(node).display !== "inline") text += " ";
      }
    };
    for (const child of (el.shadowRoot || el).childNodes) visit(child);
    return L.clean(text, max);
  };
  L.textOf = (el, max) => textBelow(el, max, true);

  const byIds = (el, ids) =>
    ids.split(/\s+/).map((id) => el.getRootNode().getElementById?.(id)).filter(Boolean).map((one) => textBelow(one, 120, false)).join(" ");

  L.labelsOf = (el) => (el.labels ? [...el.labels] : []);

  // Text right before a field that has no label of its own.
  const nearbyText = (el) => {
    for (let at = el.previousSibling, n = 0; at && n < 4; at = at.previousSibling, n++) {
      const text = at.nodeType === 3 ? L.clean(at.data, 60) : at.nodeType === 1 && !L.roleOf(at) ? L.textOf(at, 60) : "";
      if (text) return text;
      if (at.nodeType === 1 && L.roleOf(at)) break;
    }
    const cell = el.closest("td");
    return cell?.previousElementSibling ? L.textOf(cell.previousElementSibling, 60) : "";
  };

  L.nameOf = (el, role) => {
    const attr = (name) => L.clean(el.getAttribute(name) || "", 120);
    const labelledby = el.getAttribute("aria-labelledby");
    if (labelledby) {
      const name = L.clean(byIds(el, labelledby), 120);
      if (name) return name;
    }
    if (attr("aria-label")) return attr("aria-label");
    const isField = ["INPUT", "SELECT", "TEXTAREA"].includes(el.tagName);
    if (isField) {
      if (["submit", "button", "reset"].includes(el.type) && el.tagName === "INPUT") return L.clean(el.value, 120) || el.type;
      const label = L.labelsOf(el).map((one) => L.textOf(one, 120) || textBelow(one, 120, false)).join(" ");
      return L.clean(label, 120) || attr("placeholder") || attr("title") || attr("alt") || nearbyText(el) || attr("name");
    }
    if (role === "image") return attr("title") || attr("alt") || L.iconName(el) || attr("id");
    if (role === "textbox") return attr("placeholder") || attr("title") || nearbyText(el);
    return L.textOf(el, 120) || attr("title") || attr("alt") || textBelow(el, 120, false) || attr("data-placeholder") ||
      (el.querySelector("img[alt]")?.getAttribute("alt") ?? "") || (role === "link" ? L.clean(el.href?.replace(/^.*\/(?=.)/, "") ?? "", 40) : attr("id")) || L.iconName(el);
  };

  // Returns the picture that an element shows by its style, if any.
  L.pictureOf = (style) => `${style.content} ${style.backgroundImage} ${style.maskImage}`.match(/url\("?([^")]*)/)?.[1] || "";

  // Names what has no text by its classes and the file of its picture: icons are often called so.
  L.iconName = (el) => {
    const classes = L.clean(el.getAttribute("class") || "", 40), style = getComputedStyle(el);
    const file = el.getAttribute("src") || style.content.match(/url\("?([^")]*)/)?.[1] || (classes ? "" : L.pictureOf(style));
    const stem = /^data:/.test(file) ? "" : L.clean(file.replace(/[?#].*$/, "").replace(/^.*\//, "").replace(/\.\w+$/, ""), 40);
    return classes.includes(stem) ? classes : `${classes} ${stem}`.trim();
  };

  L.valueOf = (el, role, max = 200) => {
    if (L.secrets.has(el)) return "hidden";
    if (el.tagName === "INPUT" && el.type === "password") return el.value ? "•".repeat(Math.min(el.value.length, 8)) : "";
    if (el.tagName === "SELECT") return [...el.selectedOptions].map((one) => L.clean(one.label, 60)).join(", ");
    if (el.tagName === "INPUT" && el.type === "file") return [...el.files].map((one) => one.name).join(", ");
    if (["checkbox", "radio", "switch", "button"].includes(role)) return "";
    if ("value" in el && ["INPUT", "TEXTAREA"].includes(el.tagName)) return L.clean(el.value, max);
    if (role === "textbox" && el.isContentEditable) return L.textOf(el, max);
    return L.clean(el.getAttribute("aria-valuetext") || el.getAttribute("aria-valuenow") || "", 60);
  };

  L.statesOf = (el, role) => {
    const states = [];
    const aria = (name) => el.getAttribute("aria-" + name);
    const isChecked = "checked" in el && ["checkbox", "radio"].includes(el.type) ? el.checked : aria("checked") === "true";
    if (el.indeterminate || aria("checked") === "mixed") states.push("mixed");
    else if (["checkbox", "radio", "switch", "menuitemcheckbox", "menuitemradio"].includes(role)) states.push(isChecked ? "checked" : "unchecked");
    if (el.matches(":disabled") || aria("disabled") === "true") states.push("disabled");
    if (aria("expanded")) states.push(aria("expanded") === "true" ? "expanded" : "collapsed");
    else if (role === "disclosure") states.push(el.parentElement?.open ? "expanded" : "collapsed");
    if (aria("selected") === "true" || (aria("current") && aria("current") !== "false")) states.push("selected");
    if (aria("pressed") === "true") states.push("pressed");
    if (el.required || aria("required") === "true") states.push("required");
    if (el.readOnly && role !== "button") states.push("readonly");
    if (el.matches(":user-invalid") || aria("invalid") === "true") states.push("invalid");
    if (el === el.getRootNode().activeElement && !["link", "button"].includes(role)) states.push("focused");
    return states;
  };

  const OPTION_CAP = 12;
  // Describes an element in one line, as outlines and errors show it.
  L.describe = (el, role, max) => {
    role = role || L.roleOf(el) || el.getAttribute("role") || "element";
    const name = L.nameOf(el, role);
    L.described.set(L.refOf(el), { role, name });
    let kind = role;
    if (el.tagName === "INPUT" && !INPUT_ROLES[el.type] && el.type !== "text") kind = `${role}(${el.type})`;
    const value = L.valueOf(el, role, max);
    let text = `e${L.refOf(el)} ${kind}`;
    if (name) text += ` "${name}"`;
    if (value && value !== name) text += ` = "${value}"`;
    for (const state of L.statesOf(el, role)) text += ` ${state}`;
    if (el.tagName === "SELECT") {
      const options = [...el.options].slice(0, OPTION_CAP).map((one) => L.clean(one.label, 40));
      text += `; options: ${options.join(" / ")}`;
      if (el.options.length > OPTION_CAP) text += ` / … ${el.options.length} in all`;
    }
    return `[${text}]`;
  };

  // Describes any element for an error: what a person would call it.
  L.describeAny = (el) => {
    if (!el) return "nothing";
    const role = L.roleOf(el);
    if (role) return L.describe(el, role);
    const dialog = el.closest("dialog, [role=dialog], [role=alertdialog], [aria-modal=true]");
    const text = L.textOf(dialog || el, 60);
    return `${dialog ? "a dialog" : `<${el.tagName.toLowerCase()}>`}${text ? ` "${text}"` : ""}`;
  };

  // The number of changes of the document, and when the last one happened.
  L.mutations = { count: 0, at: performance.now() };
  new MutationObserver((records) => {
    L.mutations.count += records.length;
    L.mutations.at = performance.now();
  }).observe(document, { subtree: true, childList: true, attributes: true, characterData: true });

  // Resolves when nothing has changed for `quiet` ms, or after `limit` ms.
  L.quiet = ({ quiet, limit }) =>
    new Promise((resolve) => {
      const start = performance.now();
      const check = () => {
        const now = performance.now();
        const wait = Math.max(L.mutations.at, start) + quiet - now;
        if (wait <= 0 || now - start >= limit) resolve(L.mutations.count);
        else setTimeout(check, Math.min(wait, start + limit - now) + 1);
      };
      check();
    });
})();
