"use strict";
// Marks by keyboard and by buttons. Everything is shown through textContent: a remark is never markup.
(() => {
  const page = document.getElementById("page");
  const live = page.dataset.live === "yes";
  const store = `likewise:${page.dataset.answer}:`;
  const signs = { right: "\u2713", wrong: "\u2717", unclear: "?", praise: "\u2605" };
  const byId = (id) => document.getElementById(id);
  const targets = [...document.querySelectorAll("[data-key]")];
  const byKey = new Map(targets.map((each) => [each.dataset.key, each]));
  const shown = new Map([...document.querySelectorAll("[data-mark-of]")].map((each) => [each.dataset.markOf, each]));
  const marks = new Map();
  let current = null;

  const keyOf = (mark) => (mark.column ? `${mark.line}:${mark.column}` : `${mark.line}`);
  const tell = (words) => { byId("told").textContent = words; };
  const isMark = (mark) =>
    mark !== null && typeof mark === "object" && mark.mark in signs && Number.isInteger(mark.line) && byKey.has(keyOf(mark));

  function setMark(key, mark) {
    if (mark) marks.set(key, mark); else marks.delete(key);
    draw(key);
  }

  function draw(key) {
    const place = shown.get(key);
    const mark = marks.get(key);
    if (!place) return;
    place.replaceChildren();
    place.hidden = !mark;
    place.className = mark ? `mark m-${mark.mark}` : "mark";
    if (!mark) return;
    const name = document.createElement("b");
    name.textContent = `${signs[mark.mark]} ${mark.mark}`;
    place.append(name);
    if (mark.tag) {
      const tag = document.createElement("i");
      tag.textContent = mark.tag;
      place.append(" ", tag);
    }
    if (mark.remark) place.append(`: ${mark.remark}`);
  }

  // The same comparison as Review.disagreements.
  function compare() {
    const list = byId("disagreements").querySelector("ul");
    list.replaceChildren();
    const counts = {};
    let refuted = 0, noticed = 0, labelled = false;
    for (const mark of marks.values()) counts[mark.mark] = (counts[mark.mark] || 0) + 1;
    for (const each of targets) {
      const verdict = each.dataset.verdict;
      if (!verdict) continue;
      const row = each.closest(".row");
      labelled ||= each.dataset.noticed !== "";
      if (verdict === "refuted") {
        refuted++;
        const here = [marks.get(each.dataset.key), row && marks.get(row.dataset.key)];
        if (each.dataset.noticed === "yes" || here.some((mark) => mark && mark.mark === "wrong")) noticed++;
      }
      const mark = marks.get(each.dataset.key) || (verdict === "refuted" && row ? marks.get(row.dataset.key) : null);
      if (!mark) continue;
      const praised = mark.mark === "right" || mark.mark === "praise";
      if (!(praised && verdict === "refuted") && !(mark.mark === "wrong" && verdict === "holds")) continue;
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.href = `#${each.id}`;
      link.textContent = `line ${each.dataset.line}`;
      const gist = each.querySelector(".gist > span");
      item.append(link, `: Marked ${mark.mark}, but ${verdict === "holds" ? "it holds" : "refuted"}${gist ? `: ${gist.textContent}` : "."}`);
      list.append(item);
    }
    byId("disagreements").hidden = !list.children.length;
    const given = Object.entries(counts).map(([name, count]) => `${count} ${name}`).join(", ");
    const differ = list.children.length;
    const words = given ? [`Marks: ${given}; on ${differ} statement${differ === 1 ? "" : "s"} person and run differ.`] : [];
    if (refuted && (given || labelled)) words.push(`Of the refuted, ${noticed} noticed, ${refuted - noticed} by nobody.`);
    byId("mark-words").textContent = words.join(" ");
  }

  function choose(target, scroll = true) {
    if (!target) return;
    if (current) current.classList.remove("current");
    current = target;
    byId("marking").classList.add("chosen");
    target.classList.add("current");
    const focus = target.querySelector(":scope > details > summary") || target;
    focus.focus({ preventScroll: true });
    if (scroll) target.scrollIntoView({ block: "nearest", behavior: "instant" });
    const passage = target.dataset.column === "0";
    const said = passage ? wordsOf(target.querySelector(".said")) : target.dataset.said;
    byId("place").textContent = `Line ${target.dataset.line}, ${passage ? "passage" : "statement"}: ${said.trim().replace(/\s+/g, " ").slice(0, 160)}`;
    if (byId("correct-line")) byId("correct-line").textContent = passage ? `What line ${target.dataset.line} says is a` : `This formula, line ${target.dataset.line}, is a`;
    fill();
  }

  function wordsOf(said) {
    const copy = said.cloneNode(true);
    for (const each of copy.querySelectorAll(".refs")) each.remove();
    return copy.textContent;
  }

  function fill() {
    const mark = current && marks.get(current.dataset.key);
    for (const button of document.querySelectorAll("#marking [data-mark]"))
      if (button.dataset.mark) button.setAttribute("aria-pressed", String(Boolean(mark) && mark.mark === button.dataset.mark));
    const tag = byId("tag");
    const given = (mark && mark.tag) || "";
    if (given && ![...tag.options].some((option) => option.value === given)) tag.add(new Option(given, given));
    tag.value = given;
    byId("remark").value = (mark && mark.remark) || "";
  }

  function step(by) {
    const visible = targets.filter((each) => each.isConnected);
    const at = current ? visible.indexOf(current) : by > 0 ? -1 : visible.length;
    choose(visible[Math.min(Math.max(at + by, 0), visible.length - 1)]);
  }

  // What a tab sends and the server has not answered yet waits its turn, so that revisions follow each other.
  let sending = Promise.resolve();
  const send = (work) => { sending = sending.then(work, work); return sending; };

  function put(change) {
    if (!current) { tell("Choose a passage first: j or k."); return; }
    const key = current.dataset.key;
    const before = marks.get(key);
    const name = "mark" in change ? change.mark : before ? before.mark : "unclear";
    const place = { line: Number(current.dataset.line), column: Number(current.dataset.column) };
    const after = name ? { remark: "", tag: "", source: "", ...before, ...place, ...change, mark: name } : null;
    setMark(key, after);
    compare();
    fill();
    tell(after ? `Line ${place.line}: ${name}.` : `Line ${place.line}: mark removed.`);
    if (live) send(() => post(key, place, change, before));
    else keep(key, after);
  }

  async function post(key, place, change, before) {
    const known = revisions.get(key) || 0;
    const mark = marks.get(key);
    const body = mark ? { put: { ...mark, ...place, revision: known } } : { remove: { ...place, revision: known } };
    if (!mark && !known) return;
    let answer;
    try {
      answer = await fetch("marks", { method: "POST", body: JSON.stringify(body) });
    } catch {
      tell("Not saved: the server does not answer. The mark stays on this page.");
      return;
    }
    const told = await answer.json().catch(() => ({}));
    if (answer.ok) {
      revisions.set(key, told.mark ? told.mark.revision : 0);
      if (told.mark && marks.get(key)) marks.get(key).source = told.mark.source;
    } else if (answer.status === 409) {
      revisions.set(key, told.current ? told.current.revision : 0);
      setMark(key, told.current || null);
      compare();
      fill();
      if (change.remark) byId("remark").value = change.remark;
      tell("Not saved: this mark was changed in another tab and is now shown as it is there. Mark again to replace it.");
    } else {
      setMark(key, before || null);
      compare();
      tell(`Not saved: ${told.error || answer.status}`);
    }
  }

  const revisions = new Map();
  async function load() {
    let told;
    try {
      const answer = await fetch("marks");
      told = await answer.json();
    } catch { return; }
    if (String(told.version) !== page.dataset.version) {
      if (!writing()) again("A reading was corrected in another tab.");
      else tell("A reading was corrected in another tab; this page is loaded anew once you leave the field.");
      return;
    }
    const found = new Map(told.marks.filter(isMark).map((mark) => [keyOf(mark), mark]));
    for (const key of new Set([...marks.keys(), ...found.keys()])) {
      const mark = found.get(key);
      if ((mark ? mark.revision : 0) === (revisions.get(key) || 0) && Boolean(mark) === marks.has(key)) continue;
      revisions.set(key, mark ? mark.revision : 0);
      setMark(key, mark || null);
    }
    compare();
    if (current && document.activeElement !== byId("remark")) fill();
  }

  const writing = () => Boolean(document.activeElement.closest("textarea, select, input"));

  // The page anew, in the same place, after something was read again.
  let leaving = false;  // what is asked until the page is gone must not replace the words that the next one shows
  function again(words) {
    if (leaving) return;
    leaving = true;
    const place = { words, key: current && current.dataset.key, top: scrollY, open: [...document.querySelectorAll(".finding details[open]")].map((each) => each.parentElement.dataset.key) };
    try { sessionStorage.setItem(store, JSON.stringify(place)); } catch { /* then it opens at its top */ }
    location.reload();
  }

  function resume() {
    let place = null;
    try {
      place = JSON.parse(sessionStorage.getItem(store));
      sessionStorage.removeItem(store);
    } catch { return; }
    if (!place) return;
    for (const key of place.open) {
      const details = byKey.has(key) && byKey.get(key).querySelector(":scope > details");
      if (details) details.open = true;
    }
    scrollTo({ top: place.top, behavior: "instant" });
    if (byKey.has(place.key)) choose(byKey.get(place.key));
    tell(place.words);
  }

  // A reading is corrected by its line (role, program) or by a name (type); the server checks again what that changes.
  async function correct(entries) {
    if (!entries.length) { tell("Choose a role, a name with its type, or a program."); return; }
    tell("Checking again ...");
    let words = "";
    for (const entry of entries) {
      let answer;
      try { answer = await fetch("readings", { method: "POST", body: JSON.stringify({ correct: entry }) }); }
      catch { tell("Not corrected: the server does not answer."); return; }
      const told = await answer.json().catch(() => ({}));
      if (!answer.ok) { tell(told.error || `Not corrected: ${answer.status}`); return; }
      words = told.words;
    }
    again(words);
  }

  function corrections() {
    const line = current ? Number(current.dataset.line) : 0;
    const [role, name, type, program] = ["role", "name", "type", "program"].map((each) => byId(`correct-${each}`));
    const found = [];
    const column = current ? Number(current.dataset.column) : 0;  // 0: a passage is chosen, and the role is for its line
    if (line && role.dataset.touched) found.push({ line, ...(column ? { column } : {}), role: role.value });
    if (name.value.trim() && type.value.trim()) found.push({ name: name.value.trim(), type: type.value.trim() });
    if (line && program.value.trim()) found.push({ line, program: program.value.trim() });
    return found;
  }

  function keep(key, mark) {
    try {
      localStorage.setItem(store + key, JSON.stringify(mark));  // null says that a mark of the file was removed
    } catch { tell("This browser keeps nothing for this page: save the marks to a file."); }
  }

  function recall() {
    try {
      for (let place = 0; place < localStorage.length; place++) {
        const name = localStorage.key(place);
        if (name.startsWith(store)) restore(name.slice(store.length), localStorage.getItem(name));
      }
    } catch { /* no storage: the marks of the file are shown */ }
  }

  function restore(key, text) {
    if (!byKey.has(key)) return;
    let mark = null;
    try { mark = JSON.parse(text); } catch { return; }
    if (mark === null || (isMark(mark) && keyOf(mark) === key)) setMark(key, mark);
  }

  function save(kind) {
    const list = [...marks.values()].sort((a, b) => a.line - b.line || a.column - b.column);
    const sourced = list.map((mark) => ({ ...mark, revision: 0 }));
    const text = kind === "json" ? JSON.stringify({ schema: 1, revision: 0, marks: sourced }, null, 1) : markdown(list);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: kind === "json" ? "application/json" : "text/markdown" }));
    link.download = `${page.dataset.name.replace(/\.[^.]*$/, "").replace(/[^\w.-]/g, "_") || "answer"}.marks.${kind}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  // As to_markdown writes it.
  function markdown(list) {
    const escape = (text) => text.replace(/[\\`*_{}[\]<>#&!|~$^@:/]/g, "\\$&");
    const parts = [`# Marks on ${escape(page.dataset.name)}\n`];
    for (const mark of list) {
      const tag = mark.tag ? ` (${escape(mark.tag)})` : "";
      parts.push(`### line ${mark.line}${mark.column ? `, column ${mark.column}` : ""}: ${mark.mark}${tag}\n`);
      if (mark.remark) parts.push(mark.remark.split("\n").map((line) => `> ${escape(line)}\n`).join(""));
    }
    return parts.join("\n");
  }

  // As from_markdown and from_json_lines read it.
  function fromMarkdown(text) {
    const plain = (words) => words.replace(/\\([!-/:-@[-`{-~])/g, "$1");
    const found = [];
    let fence = "", mark = null;
    for (const line of text.split(/\r?\n/)) {
      const head = /^### line (\d+)(?:, column (\d+))?: (\w+)(?: \((.*)\))?$/.exec(line);
      if (fence) { if (line === fence) fence = ""; }
      else if (head) {
        mark = { line: Number(head[1]), column: Number(head[2] || 0), mark: head[3], tag: plain(head[4] || ""), remark: [] };
        found.push(mark);
      } else if (mark && /^`{3,}text$/.test(line)) fence = line.slice(0, -4);
      else if (mark && line.startsWith(">")) mark.remark.push(plain(line.slice(2)));
    }
    return found.map((each) => ({ ...each, remark: each.remark.join("\n") }));
  }

  const fromLines = (text) => text.split("\n").filter((line) => line.trim()).flatMap((line) => JSON.parse(line).marks);
  const readers = { md: fromMarkdown, jsonl: fromLines, json: (text) => JSON.parse(text).marks };

  async function open(file) {
    let list;
    try { list = (readers[file.name.split(".").pop().toLowerCase()] || readers.json)(await file.text()); } catch { list = null; }
    if (!Array.isArray(list) || !list.length) { tell("These are no marks: a file that likewise wrote is needed."); return; }
    const fit = list.filter(isMark);
    const back = current;
    for (const mark of fit) {
      current = byKey.get(keyOf(mark));
      put({ mark: mark.mark, tag: String(mark.tag || "").slice(0, 80), remark: String(mark.remark || "").slice(0, 4000) });
    }
    current = back;
    fill();
    tell(`${fit.length} of ${list.length} marks opened; the others have no place here.`);
  }

  // Points of a part: one number at a time, with the revision it was read at.
  async function grade(field) {
    const body = { points: { part: field.dataset.part, points: Number(field.value), revision: Number(field.dataset.revision) } };
    if (field.value === "" || !field.checkValidity()) { tell("Not saved: points are a number from 0 on."); return; }
    let answer;
    try { answer = await fetch("marks", { method: "POST", body: JSON.stringify(body) }); }
    catch { tell("Not saved: the server does not answer."); return; }
    const told = await answer.json().catch(() => ({}));
    const saved = answer.ok ? told.points : told.current;
    if (saved) { field.dataset.revision = saved.revision; field.value = saved.points; }
    if (answer.ok) byId("asked-words").textContent = told.words;
    if (answer.ok) tell(`Points for ${field.dataset.part}: ${field.value}.`);
    else tell(answer.status === 409 ? "Not saved: changed in another tab, and now shown as it is there." : `Not saved: ${told.error || answer.status}`);
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.closest("textarea, select, input");
    if (event.key === "Escape" && typing) { if (current) choose(current, false); return; }
    if (typing) return;
    const names = { y: "right", n: "wrong", "?": "unclear", p: "praise", x: "" };
    if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (event.key in names) put({ mark: names[event.key] });
    else if (event.key === "r") byId("remark").focus();
    else if (event.key === "t") byId("tag").focus();
    else if (event.key === "c" && byId("correct")) { byId("correct").open = true; byId("correct-role").focus(); }
    else if (event.key === "Enter" && event.target === current && current.dataset.column === "0") {
      const first = current.querySelector(".finding");
      if (first) { first.querySelector("details").open = true; choose(first); }
    } else return;
    event.preventDefault();
  });

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a.ref, .jumps a, #disagreements a");
    if (link) {
      const found = byId(link.hash.slice(1).replace("-read", ""));
      const details = found && found.querySelector(":scope > details");
      if (details) { event.preventDefault(); details.open = true; choose(found); }
      return;
    }
    const button = event.target.closest("[data-mark], [data-export], [data-copy], [data-correct], [data-undo]");
    if (button && button.matches("button")) {
      if ("correct" in button.dataset) send(() => correct(corrections()));
      else if ("undo" in button.dataset) send(() => correct([JSON.parse(button.dataset.undo)]));
      else if ("export" in button.dataset) save(button.dataset.export);
      else if ("copy" in button.dataset)
        navigator.clipboard.writeText(["found", "mark", "asked"].map((name) => byId(`${name}-words`).textContent).filter(Boolean).join(" "))
          .then(() => tell("The summary is copied."), () => tell("This browser does not let pages copy."));
      else put({ mark: button.dataset.mark });
      return;
    }
    if (event.target.closest("a, #marking, summary, pre")) {
      const summary = event.target.closest(".finding summary");
      if (summary) choose(summary.closest(".finding"), false);
      return;
    }
    const target = event.target.closest(".finding, .row");
    if (target && !String(getSelection())) choose(target, false);
  });

  for (const field of document.querySelectorAll(".points"))
    field.addEventListener("change", () => send(() => grade(field)));
  byId("tag").addEventListener("change", (event) => put({ tag: event.target.value }));
  byId("remark").addEventListener("change", (event) => put({ remark: event.target.value }));
  if (byId("correct")) {
    byId("correct-role").addEventListener("change", (event) => { event.target.dataset.touched = "yes"; });
    byId("correct").addEventListener("keydown", (event) => {
      if (event.key === "Enter" && event.target.matches("input")) { event.preventDefault(); send(() => correct(corrections())); }
    });
  }
  byId("import").addEventListener("change", (event) => { if (event.target.files[0]) open(event.target.files[0]); });

  for (const mark of JSON.parse(byId("marks").textContent)) {
    if (!isMark(mark)) continue;
    marks.set(keyOf(mark), mark);
    revisions.set(keyOf(mark), mark.revision);
  }
  byId("marking").hidden = false;
  if (live) {
    resume();
    load();
    addEventListener("focus", load);
    setInterval(() => { if (!document.hidden) send(load); }, 3000);
  } else {
    const redraw = () => { compare(); if (!writing()) fill(); };  // a remark that is being typed stays
    recall();
    addEventListener("focus", () => { recall(); redraw(); });
    addEventListener("storage", (event) => {
      if (event.key && event.key.startsWith(store)) { restore(event.key.slice(store.length), event.newValue); redraw(); }
    });
  }
  compare();
})();
