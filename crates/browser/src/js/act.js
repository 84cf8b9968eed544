// Finds the point of an element, checks what is there, and watches that input reaches it.
(() => {
  const L = globalThis.langoPage;
  const frame = () => new Promise((resolve) => { const timer = setTimeout(resolve, 50); requestAnimationFrame(() => { clearTimeout(timer); resolve(); }); });

  const deepest = (x, y) => {
    let el = document.elementFromPoint(x, y);
    while (el?.shadowRoot) {
      const inner = el.shadowRoot.elementFromPoint(x, y);
      if (!inner || inner === el) break;
      el = inner;
    }
    return el;
  };
  const contains = (outer, node) => {
    for (let at = node; at; at = L.parentOf(at)) if (at === outer) return true;
    return false;
  };
  // Input on the label of a control, or on what covers exactly the control inside its label, reaches the control.
  const reaches = (el, hit) => contains(el, hit) || L.labelsOf(el).some((label) => contains(label, hit)) ||
    (el.tagName === "OPTION" && contains(el.closest("select"), hit)) || (el.tagName === "AREA" && hit?.tagName === "IMG" && hit.useMap);

  // Returns what replaced an element that is gone, if it looks the same.
  L.stale = (ref) => {
    const old = L.described.get(ref);
    if (!old) return { stale: `e${ref} is not an element of this page` };
    const was = `e${ref} was ${old.role}${old.name ? ` "${old.name}"` : ""}, which is no longer on the page`;
    const found = [];
    const visit = (root) => {
      for (const el of root.querySelectorAll("*")) {
        if (el.shadowRoot) visit(el.shadowRoot);
        if (found.length < 3 && L.roleOf(el) === old.role && L.isShown(el) && L.nameOf(el, old.role) === old.name) found.push(L.describe(el));
      }
    };
    visit(document);
    return { stale: found.length ? `${was}; now there is ${found.join(", ")}` : was };
  };

  L.find = (selector) => {
    let found;
    try { found = document.querySelectorAll(selector); } catch { return { error: `\`${selector}\` is not a CSS selector` }; }
    if (found.length !== 1) return { error: `the selector matches ${found.length} elements; it must match exactly one` };
    const ref = L.refOf(found[0]);
    L.describe(found[0]);
    return { ref, next: L.next };
  };

  // Finds a control by its visible name. More than one is an error that names them.
  L.byName = ({ name }) => {
    const plain = (text) => L.clean(text).toLowerCase().replace(/^["'“]|["'”.]$/g, "");
    const wanted = plain(name), exact = [], partial = [];
    const visit = (root) => {
      for (const el of root.querySelectorAll("*")) {
        if (el.shadowRoot) visit(el.shadowRoot);
        const role = L.roleOf(el);
        if (!role || role === "frame" || !(L.isShown(el) || L.labelsOf(el).some(L.isShown))) continue;
        const own = plain(L.nameOf(el, role));
        if (own === wanted || `${own} ${role}` === wanted) exact.push(el);
        else if (wanted.length > 2 && own.includes(wanted)) partial.push(el);
      }
    };
    visit(document);
    const found = exact.length ? exact : partial;
    if (found.length === 1) { L.describe(found[0]); return { ref: L.refOf(found[0]) }; }
    if (!found.length) return { error: `no control is named "${L.clean(name, 60)}"; look at the page with browser_observe` };
    return { error: `${found.length} controls are named so; use one of the references ${found.slice(0, 5).map((el) => L.describe(el)).join(", ")}` };
  };

  L.fieldKind = ({ ref }) => {
    const el = L.element(ref);
    if (!el) return L.stale(ref);
    return { kind: ["date", "time", "datetime-local", "month", "week", "color", "range"].includes(el.type) ? "picker" : "text" };
  };
  L.fileField = ({ ref }) => {
    const el = L.element(ref);
    if (!el) return L.stale(ref);
    const field = el.closest("input[type=file]") ?? el.control ?? el.querySelector("input[type=file]");
    return field?.type === "file" ? {} : { error: `${L.describeAny(el)} is no file field` };
  };
  L.hasText = ({ text }) => ({ found: L.clean(document.body?.innerText || "").toLowerCase().includes(L.clean(text).toLowerCase()) });
  // Asks for a file as a click on a link would, with the cookies of the page.
  L.startDownload = ({ url, name }) => {
    const link = document.createElement("a");
    link.href = url;
    link.download = name;
    link.click();
    return {};
  };
  L.scrollPosition = () => ({ x: scrollX, y: scrollY });

  const boxOf = (el) => {
    if (L.isShown(el) || !L.labelsOf(el).length) return el;
    return L.labelsOf(el).find(L.isShown) || el;
  };
  const isInView = (rect) => rect.top >= 0 && rect.left >= 0 && rect.bottom <= innerHeight && rect.right <= innerWidth;

  // Waits until an element that is animated stays in its place.
  const settled = async (box) => {
    let rect = box.getBoundingClientRect();
    if (!document.getAnimations().some((one) => one.playState === "running")) return rect;
    for (let n = 0, still = 0; n < 60; n++) {
      await frame();
      const now = box.getBoundingClientRect();
      still = Math.abs(now.top - rect.top) + Math.abs(now.left - rect.left) < 1 ? still + 1 : 0;
      rect = now;
      if (still >= 2) return rect;
    }
    return null;
  };

  // Returns a control that lies in an element at the place of a hit: what is asked for must be what is clicked.
  const controlBetween = (hit, el) => {
    if (!contains(el, hit)) return null;
    for (let at = hit; at && at !== el; at = L.parentOf(at)) if (L.roleOf(at)) return at;
    return null;
  };

  // Returns the point of an element at which input reaches it, or what is in its way. A box around the element may
  // hide it although it lies in the viewport: then it is scrolled to and looked at again.
  L.point = async ({ ref, x, y, anyHit }) => {
    const el = L.element(ref);
    if (!el) return L.stale(ref);
    const box = boxOf(el);
    if (box.tagName !== "AREA" && !L.isShown(box)) return { error: `${L.describeAny(el)} is not visible` };
    if (!anyHit && el.matches(":disabled, [aria-disabled=true]")) return { error: `${L.describeAny(el)} is disabled` };
    const center = () => box.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
    if (!isInView(box.getBoundingClientRect())) center();
    const found = await reachablePoint(el, box, { x, y, anyHit });
    if (!found.error || !found.isCovered) return found;
    center();
    return reachablePoint(el, box, { x, y, anyHit });
  };

  const reachablePoint = async (el, box, { x, y, anyHit }) => {
    const rect = await settled(box);
    if (!rect) return { error: `${L.describeAny(el)} keeps moving` };
    const at = (px, py) => ({ x: px, y: py });
    const hasPlace = x !== null && x !== undefined;
    const rects = [...box.getClientRects()].filter((one) => one.width > 0 && one.height > 0);
    const first = rects[0] || rect;
    const points = hasPlace ? [at(rect.left + x, rect.top + y)] : [
      at(first.left + first.width / 2, first.top + first.height / 2), at(rect.left + rect.width / 2, rect.top + rect.height / 2),
      at(first.left + Math.min(5, first.width / 2), first.top + Math.min(5, first.height / 2)),
      at(first.right - Math.min(5, first.width / 2), first.bottom - Math.min(5, first.height / 2)),
    ];
    let blocker = null;
    for (const point of points) {
      if (point.x < 0 || point.y < 0 || point.x >= innerWidth || point.y >= innerHeight) continue;
      const hit = deepest(point.x, point.y);
      const inner = hasPlace && !anyHit ? controlBetween(hit, el) : null;
      if (inner) return { error: `at this place of ${L.describeAny(el)} is ${L.describe(inner)}; use its reference`, next: L.next };
      if (anyHit || reaches(el, hit)) return { ...point, width: rect.width, height: rect.height };
      blocker = blocker || hit;
    }
    return { error: blocker ? `${L.describeAny(el)} is covered by ${L.describeAny(blocker)}` : `${L.describeAny(el)} cannot be scrolled into view`, isCovered: true, next: L.next };
  };

  // Returns the position of the content of a frame element, if the point is not covered in this document.
  L.frameOffset = (el) => {
    const rect = el.getBoundingClientRect(), style = getComputedStyle(el);
    return { x: rect.left + el.clientLeft + parseFloat(style.paddingLeft), y: rect.top + el.clientTop + parseFloat(style.paddingTop) };
  };
  L.frameHit = (el, x, y) => {
    const hit = deepest(x, y);
    return hit === el ? null : `the frame is covered by ${L.describeAny(hit)}`;
  };

  // Lets the next press through only if it reaches the element. Everything else of that gesture is stopped.
  let armed = null;
  const watch = (event) => {
    if (!armed || !event.isTrusted) return;
    if (armed.passed === undefined) {
      const hit = event.composedPath()[0];
      armed.passed = reaches(armed.el, hit) || armed.any;
      armed.hit = hit;
    }
    if (!armed.passed) {
      event.preventDefault();
      event.stopImmediatePropagation();
    }
  };
  for (const type of ["pointerdown", "mousedown", "pointerup", "mouseup", "click", "auxclick", "dblclick", "contextmenu"]) window.addEventListener(type, watch, { capture: true, passive: false });
  L.arm = ({ ref, any }) => {
    const el = L.element(ref);
    if (!el) return L.stale(ref);
    armed = { el, any };
    return {};
  };
  L.disarm = () => {
    const was = armed;
    armed = null;
    if (was && was.passed === false) return { error: `something moved in the way: ${L.describeAny(was.hit)}; nothing was clicked`, next: L.next };
    return { passed: was?.passed ?? null };
  };

  const setValue = (el, value) => {
    const prototype = el.tagName === "TEXTAREA" ? HTMLTextAreaElement.prototype : el.tagName === "SELECT" ? HTMLSelectElement.prototype : HTMLInputElement.prototype;
    Object.getOwnPropertyDescriptor(prototype, "value").set.call(el, value);
  };
  const changed = (el) => {
    el.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
    el.dispatchEvent(new Event("change", { bubbles: true }));
  };

  // Prepares a field for typed text: focus, with its content selected. Fields with pickers get the value.
  L.prepareField = ({ ref, text, secret }) => {
    const el = L.element(ref);
    if (!el) return L.stale(ref);
    const isField = ["INPUT", "TEXTAREA"].includes(el.tagName);
    const field = isField || el.isContentEditable ? el : el.querySelector("input:not([type=hidden]), textarea, [contenteditable]");
    if (!field) return { error: `${L.describeAny(el)} takes no text`, next: L.next };
    if (field.matches(":disabled") || field.readOnly) return { error: `${L.describeAny(field)} cannot be changed`, next: L.next };
    if (["checkbox", "radio", "submit", "button", "file", "image", "reset"].includes(field.type)) return { error: `${L.describeAny(field)} takes no text`, next: L.next };
    if (secret) L.secrets.add(el).add(field);
    field.focus({ preventScroll: false });
    if (["date", "time", "datetime-local", "month", "week", "color", "range"].includes(field.type)) {
      setValue(field, text);
      if (text && field.value !== text) return { error: `\`${text}\` is not a value of a ${field.type} field; expected for example ${{ date: "2026-01-31", time: "13:45", "datetime-local": "2026-01-31T13:45", month: "2026-01", week: "2026-W05", color: "#ff0000", range: `a number from ${field.min || 0} to ${field.max || 100}` }[field.type]}` };
      changed(field);
      return { done: true };
    }
    if (field.select && isField) field.select();
    else {
      const range = document.createRange();
      range.selectNodeContents(field);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
    }
    return { done: false, isEmpty: "value" in field ? !field.value : !field.textContent };
  };

  // Finds text in an element or the page, and returns where it begins and ends. Text of a field is selected at once.
  L.textPlaces = ({ ref, text }) => {
    const root = ref ? L.element(ref) : document.body;
    if (!root) return L.stale(ref);
    const wanted = L.clean(text || "").toLowerCase();
    if (["INPUT", "TEXTAREA"].includes(root.tagName)) {
      const from = wanted ? root.value.toLowerCase().indexOf(wanted) : 0;
      if (from < 0) return { error: `"${L.clean(text, 60)}" is not in ${L.describeAny(root)}`, next: L.next };
      root.focus();
      root.setSelectionRange(from, wanted ? from + wanted.length : root.value.length);
      return { done: true };
    }
    const range = rangeOf(root, wanted);
    if (!range) return { error: `"${L.clean(text || "", 60)}" is not on the page, or more than once; name an element that has it only once`, next: L.next };
    const box = range.commonAncestorContainer.nodeType === 1 ? range.commonAncestorContainer : range.commonAncestorContainer.parentElement;
    box.scrollIntoView({ block: "nearest", behavior: "instant" });
    const rects = [...range.getClientRects()].filter((one) => one.width > 0);
    if (!rects.length) return { error: "this text is not visible" };
    selected = range;
    const first = rects[0], last = rects[rects.length - 1];
    return { ref: L.refOf(box), from: { x: first.left + 0.5, y: first.top + first.height / 2 }, to: { x: last.right - 0.5, y: last.top + last.height / 2 }, next: L.next };
  };
  let selected = null;
  // Returns the only place of a text, with spaces as a reader sees them. Without a text, all of the element.
  const rangeOf = (root, wanted) => {
    const range = document.createRange();
    if (!wanted) { range.selectNodeContents(root); return range; }
    const places = [], walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    let all = "";
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (!node.parentElement.checkVisibility() || ["SCRIPT", "STYLE"].includes(node.parentElement.tagName)) continue;
      for (let at = 0; at < node.data.length; at++) {
        const char = /\s/.test(node.data[at]) ? " " : node.data[at].toLowerCase();
        if (char === " " && (!all || all.endsWith(" "))) continue;
        all += char[0];
        places.push([node, at]);
      }
    }
    const from = all.indexOf(wanted);
    if (from < 0 || all.indexOf(wanted, from + 1) >= 0) return null;
    range.setStart(...places[from]);
    range.setEnd(places[from + wanted.length - 1][0], places[from + wanted.length - 1][1] + 1);
    return range;
  };
  // Sets what the mouse could not select exactly.
  L.keepSelection = () => {
    const current = getSelection();
    if (selected && L.clean(current.toString()) !== L.clean(selected.toString())) {
      current.removeAllRanges();
      current.addRange(selected);
    }
    selected = null;
    return {};
  };

  L.focus = ({ ref }) => {
    const el = L.element(ref);
    if (!el) return L.stale(ref);
    if (!contains(el, el.getRootNode().activeElement)) el.focus();
    return {};
  };

  L.select = ({ ref, choices }) => {
    const el = L.element(ref);
    if (!el) return L.stale(ref);
    if (el.tagName !== "SELECT") return { error: `${L.describeAny(el)} is not a list of options; click it and then its option`, next: L.next };
    if (el.matches(":disabled")) return { error: `${L.describeAny(el)} is disabled`, next: L.next };
    const plain = (text) => L.clean(text).toLowerCase();
    const wanted = choices.map((choice) => [...el.options].find((one) => plain(one.label) === plain(choice)) || [...el.options].find((one) => one.value === choice));
    const missing = choices[wanted.indexOf(undefined)];
    if (missing !== undefined) return { error: `no option \`${missing}\` in ${L.describeAny(el)}`, next: L.next };
    if (!el.multiple && wanted.length !== 1) return { error: `${L.describeAny(el)} takes one option`, next: L.next };
    for (const one of el.options) one.selected = wanted.includes(one);
    changed(el);
    return {};
  };

  L.isChecked = ({ ref }) => {
    const el = L.element(ref);
    if (!el) return L.stale(ref);
    const role = L.roleOf(el);
    if (!["checkbox", "radio", "switch", "menuitemcheckbox", "menuitemradio"].includes(role)) return { error: `${L.describeAny(el)} cannot be checked`, next: L.next };
    return { checked: L.statesOf(el, role).includes("checked") };
  };

  L.scroll = ({ ref, direction }) => {
    const el = ref ? L.element(ref) : null;
    if (ref && !el) return L.stale(ref);
    if (el && !direction) { el.scrollIntoView({ block: "center", behavior: "instant" }); return {}; }
    const canScroll = (one) => (one.scrollHeight > one.clientHeight + 4 || one.scrollWidth > one.clientWidth + 4) && /auto|scroll/.test(getComputedStyle(one).overflow);
    let box = el;
    while (box && !canScroll(box)) box = L.parentOf(box);
    const page = document.scrollingElement || document.documentElement;
    if (!box && !el && page.scrollHeight <= page.clientHeight + 4) box = [...document.querySelectorAll("*")].find((one) => canScroll(one) && one.clientHeight > innerHeight / 2);
    box = box || page;
    const before = [box.scrollTop, box.scrollLeft], step = Math.max(100, box.clientHeight * 0.85);
    const moves = { down: [0, step], up: [0, -step], left: [-box.clientWidth * 0.85, 0], right: [box.clientWidth * 0.85, 0], top: [0, -1e9], bottom: [0, 1e9] };
    box.scrollBy({ left: moves[direction][0], top: moves[direction][1], behavior: "instant" });
    return { moved: box.scrollTop !== before[0] || box.scrollLeft !== before[1] };
  };

  const SEARCH = "[role=search], search";
  // Describes what acting on an element would do, for the question to the user.
  L.intent = ({ ref, key }) => {
    const el = ref ? L.element(ref) : document.activeElement;
    if (!el) return ref ? L.stale(ref) : { description: "the page" };
    const owner = el.closest("button, input, select, textarea, a, label") || el;
    const control = owner.tagName === "LABEL" && owner.control ? owner.control : owner;
    const form = control.form || control.closest?.("form");
    const isButton = ["submit", "image"].includes(control.type) && (control.tagName === "BUTTON" || control.tagName === "INPUT");
    const keys = (key || "").trim().split(/\s+/);
    const hasKey = (names) => keys.some((one) => names.test(one)) || (key === " " && names.test("space"));
    const isEnter = hasKey(/(^|\+)(enter|return)$/i) && control.tagName !== "TEXTAREA" && control.tagName !== "A";
    const fields = form ? [...form.elements].filter((one) => one.name && one.type !== "hidden" && !["submit", "button", "fieldset"].includes(one.type) && (!["checkbox", "radio"].includes(one.type) || one.checked)) : [];
    return {
      description: L.describe(control), name: L.nameOf(control, L.roleOf(control)), role: L.roleOf(control) || "",
      submits: !!form && (isButton || !!isEnter), activates: hasKey(/(^|\+)(enter|return|space|spacebar)$/i) && !["textbox", "searchbox", "spinbutton"].includes(L.roleOf(control)),
      search: !!(form?.closest(SEARCH) || form?.querySelector("input[type=search]") || control.type === "search") && !fields.some((one) => one.type === "password"),
      password: control.type === "password" || fields.some((one) => one.type === "password"), payment: !!form?.querySelector("[autocomplete^=cc-], [name*=cardnumber i], [name*=card_number i], [name*=cvc i], [name*=iban i]"),
      fields: fields.slice(0, 20).map((one) => ({ name: L.clean(L.nameOf(one, L.roleOf(one)) || one.name, 60), value: L.clean(L.valueOf(one, L.roleOf(one)) || (one.checked ? "yes" : ""), 100) })),
      target: form ? form.action : control.href || "", file: control.type === "file", next: L.next,
    };
  };
})();
