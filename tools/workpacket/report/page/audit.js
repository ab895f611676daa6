"use strict";
// Draws what is not in the page from the start: other rows of the table, and one packet at a time. All that comes from
// the repository is set as text, never as markup. The page stays readable where no script runs.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const ROWS = 100;
  const byId = (id) => document.getElementById(id);
  const index = JSON.parse(byId("index").textContent);
  const position = new Map(index.rows.map((row, number) => [row[0], number]));
  const [WAITS, CODES] = [3, 10];
  const words = index.rows.map((row) => [row[0], row[1], row[2], ...row.slice(7, CODES)].join(" ").toLowerCase());
  const codes = index.rows.map((row) => new Set(row[CODES].split(" ")));
  const chunks = new Map();
  let found = index.rows.map((_, number) => number);
  let page = 0;
  let sorted = { column: -1, down: false };

  function make(name, attributes, ...children) {
    return fill(document.createElement(name), attributes, children);
  }

  function draw(name, attributes, ...children) {
    return fill(document.createElementNS(SVG, name), attributes, children);
  }

  function fill(element, attributes, children) {
    for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
    for (const child of children.flat()) {
      if (child !== null && child !== undefined && child !== "") element.append(child);
    }
    return element;
  }

  const code = (text) => make("code", {}, text);
  const forge = index.head.forge;
  const elsewhere = (address, ...shown) => make("a", { href: forge + address }, ...shown);
  const named = (run) => (run.page ? make("a", { href: run.page }, run.run) : run.run);
  const commitLink = (id) => (forge && id ? elsewhere("/commit/" + id, code(id.slice(0, 12))) : code(id.slice(0, 12)));
  // A file that is not committed is not on the forge as it is here.
  function fileLink(path, line, pending) {
    const shown = code(line ? `${path}:${line}` : path);
    if (!forge || !index.head.head || pending) return shown;
    const steps = path.split("/").map(encodeURIComponent).join("/");
    return elsewhere(`/blob/${index.head.head.id}/${steps}${line ? "#L" + line : ""}`, shown);
  }
  const link = (name) => (position.has(name) ? make("a", { href: "#" + name }, name) : name);
  const day = (moment) => moment.slice(0, 10);
  const moment = (text) => make("time", {}, text.replace("T", " "));

  function details(name) {
    const number = position.get(name);
    const chunk = Math.floor(number / index.chunk);
    if (!chunks.has(chunk)) chunks.set(chunk, JSON.parse(byId("chunk-" + chunk).textContent));
    return chunks.get(chunk)[number % index.chunk];
  }

  // --- the table of packets ---

  function find(query) {
    const wanted = query.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (word, number) =>
      word.startsWith("code:") ? codes[number].has(word.slice(5)) : words[number].includes(word);
    const waits = byId("waits").value;
    found = index.rows.map((_, number) => number).filter((number) =>
      wanted.every((word) => fits(word, number)) && (!waits || index.rows[number][WAITS] === waits));
    if (sorted.column >= 0) found.sort(byColumn);
    page = 0;
    showRows();
    byId("found").textContent = wanted.length || waits ? `${found.length} of ${index.rows.length} packets` : "";
  }

  // What is blank comes last in both directions.
  function byColumn(one, other) {
    const [a, b] = [index.rows[one][sorted.column], index.rows[other][sorted.column]];
    if (!a || !b) return (a ? 0 : 1) - (b ? 0 : 1) || one - other;
    const order = typeof a === "number" ? a - b : a < b ? -1 : a > b ? 1 : 0;
    return (sorted.down ? -order : order) || one - other;
  }

  function sortBy(column) {
    // Numbers begin with the largest, because that is what a reader looks for.
    const numbers = typeof index.rows[0]?.[column] === "number";
    sorted = { column, down: sorted.column === column ? !sorted.down : numbers };
    [...byId("list").tHead.rows[0].cells].forEach((cell, number) => {
      if (number === column) cell.setAttribute("aria-sort", sorted.down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
    find(byId("query").value);
  }

  function showRows() {
    const body = byId("list").tBodies[0];
    const rows = found.slice(page * ROWS, (page + 1) * ROWS).map((number) => tableRow(index.rows[number]));
    body.replaceChildren(...rows);
    const last = Math.max(Math.ceil(found.length / ROWS) - 1, 0);
    byId("pages").hidden = last === 0;
    byId("page").textContent = `Page ${page + 1} of ${last + 1}`;
    byId("before").disabled = page === 0;
    byId("after").disabled = page === last;
  }

  // A name that no signature proves is marked.
  function person(who) {
    const claimed = who.endsWith(CLAIMED);
    return claimed ? [who.slice(0, -CLAIMED.length), " ", make("span", { class: "claimed" }, "claimed")] : who;
  }

  const CLAIMED = " (claimed)";

  function tableRow([name, lane, title, waits, errors, warnings, since, ...people]) {
    return make("tr", {},
      make("th", { scope: "row" }, link(name)),
      make("td", { class: "lane-" + lane }, lane),
      make("td", {}, title),
      make("td", {}, waits),
      make("td", {}, errors ? String(errors) : ""),
      make("td", {}, warnings ? String(warnings) : ""),
      make("td", {}, day(since)),
      people.slice(0, 3).map((who) => make("td", {}, person(who))));
  }

  // --- one packet ---

  function packetView(packet) {
    return [
      make("p", { class: "back" }, make("a", { href: "#packets" }, "Back to all packets")),
      make("h2", { tabindex: "-1", id: "packet-title" }, packet.id),
      packet.title ? make("p", {}, packet.title) : null,
      packet.why ? make("p", {}, packet.why) : null,
      facts(packet),
      ...part("Why it does not go on", packet.obstacles.length ? [why(packet)] : []),
      ...part("Findings", packet.matters.length ? [matters(packet)] : []),
      ...part("Approvals", [approvals(packet)]),
      ...part("Changed since the approval", packet.rewritten.length ? [rewritten(packet)] : []),
      ...part("What it rests on, and what it led to", [trace(packet), criteria(packet)]),
      ...part("Timeline", [timeline(packet)]),
    ];
  }

  function part(title, content) {
    return content.length ? [make("h3", {}, title), ...content] : [];
  }

  function facts(packet) {
    const rows = [
      ["Lane", packet.since ? `${packet.lane} since ${packet.since.replace("T", " ")}` : packet.lane || "without a log"],
      ["Waits for", packet.waits_for],
      ["Held by", packet.holder],
      ["Approved by", packet.approved_by],
      ["Judged by", packet.judged_by ? [person(packet.judged_by)].flat() : []],
      ["Branch", packet.branch],
      ["Files", packet.files.map((path) => make("div", {}, fileLink(path, 0, false)))],
      ["Revisions", others(packet)],
      ["Runs", packet.runs.map((run) => make("div", {}, named(run), `: ${run.closed ? run.outcome : "not closed"}`))],
      ["Log heads", packet.heads.map((head) => make("div", {}, code(head)))],
    ].filter(([, value]) => value.length);
    return make("dl", { class: "facts" }, rows.map(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]).flat());
  }

  function others(packet) {
    const revisions = index.rows.map((row) => row[0]).filter((name) => name !== packet.id && baseOf(name) === packet.base);
    return revisions.sort().map((name) => make("div", {}, link(name), ` ${index.rows[position.get(name)][1]}`));
  }

  const baseOf = (name) => name.replace(/-v[1-9][0-9]*$/, "");

  function why(packet) {
    return make("div", { class: "why" }, packet.obstacles.map((line) => make("p", {}, line)));
  }

  function matters(packet) {
    return make("ul", {}, packet.matters.map((one) => make("li", { class: one.severity },
      make("span", { class: "severity" }, one.severity), ` ${one.message} `,
      fileLink(one.path, one.line, one.pending),
      ` (${one.code}; ${one.pending ? "not committed; " : one.since ? "since " + day(one.since) + "; " : ""}to act: ${one.who})`)));
  }

  function table(label, heads, rows) {
    return wide(label, make("table", {},
      make("thead", {}, make("tr", {}, heads.map((head) => make("th", { scope: "col" }, head)))),
      make("tbody", {}, rows.map((cells) => make("tr", {}, cells.map((cell) => make("td", {}, cell)))))));
  }

  // What is wider than the window can be scrolled, by keyboard too.
  function wide(label, content) {
    return make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": label }, content);
  }

  function approvals(packet) {
    if (!packet.decisions.length) return make("p", {}, "Nobody has signed anything.");
    return table("Approvals", ["Gate", "Decision", "By", "Signature", "Issued", "Used by", "Key and envelope"],
      packet.decisions.map((one) => [
        one.gate,
        one.decision,
        `${one.approver} (${one.role})`,
        verdict(one, packet.doubted),
        moment(one.issued),
        one.used_by ? code(one.used_by.slice(0, 12)) : "nothing yet",
        [code(one.key), make("br"), code(one.envelope.slice(0, 16))],
      ]));
  }

  function rewritten(packet) {
    return table("Changed since the approval", ["Part", "Approved", "Now"],
      packet.rewritten.map((one) => [one.part, make("del", {}, one.before || "nothing"), make("ins", {}, one.after || "nothing")]));
  }

  function verdict(decision, doubted) {
    if (!decision.refusals.length && doubted) return make("span", { class: "verdict-maybe" }, "verified, but see the findings");
    if (!decision.refusals.length) return make("span", { class: "verdict-yes" }, "verified");
    return [make("span", { class: "verdict-no" }, "does not count"),
      make("ul", {}, decision.refusals.map((one) => make("li", {}, `${one.message} (${one.code})`)))];
  }

  function criteria(packet) {
    const rows = packet.criteria.map((one) => [
      String(one.number), one.text, one.evidence.length ? one.evidence.map(proof) : "none yet",
    ]);
    const anchors = packet.anchors.map((one) => make("li", {},
      `${one.name || one.path}, lines ${one.first} to ${one.last}: ${ANCHORS[one.state]}${one.why ? " (" + one.why + ")" : ""} `,
      one.path ? fileLink(one.path, one.first, false) : "", quoted("What it says now", one.excerpt)));
    const commits = packet.commits.map((one) => make("li", {}, `${one.role}: `, one.known ? commitLink(one.id) : code(one.id.slice(0, 12)),
      one.known ? ` ${one.title}, ${one.on_target ? "on the target branch" : "not on the target branch"}` : " not in this clone"));
    return make("div", {},
      anchors.length ? [make("h4", {}, "Requirements"), make("ul", {}, anchors)] : [],
      rows.length ? [make("h4", {}, "Criteria and evidence"), table("Criteria and evidence", ["No.", "Criterion", "Evidence"], rows)] : [],
      packet.strays.length ? [make("h4", {}, "Evidence for no criterion"),
        make("ul", {}, packet.strays.map((one) => make("li", {}, `${one.criterion}: `, proof(one))))] : [],
      commits.length ? [make("h4", {}, "Commits"), make("ul", {}, commits)] : []);
  }

  function quoted(label, text) {
    return text ? make("details", {}, make("summary", {}, label), make("pre", {}, text)) : null;
  }

  const ANCHORS = {
    holds: "says what was refined", moved: "stands elsewhere, unchanged", changed: "was changed",
    unread: "cannot be read",
  };

  function proof(one) {
    const ended = one.exit_code === null ? "" : `, exit code ${one.exit_code}`;
    const by = one.by ? `, ${one.by} ${one.at.replace("T", " ")}` : "";
    const at = one.commit ? [" at ", commitLink(one.commit)] : "";
    return make("div", {}, make("span", { class: one.result === "not_met" ? "verdict-no" : "verdict-yes" },
      one.result.replace("_", " ")), " ", code(one.what), ended + by, at, quoted("Output", one.output),
      one.suspect ? make("div", { class: "verdict-maybe" }, "suspect: " + one.suspect) : null);
  }

  function timeline(packet) {
    if (!packet.events.length) return make("p", {}, "It has no log.");
    return make("ol", {}, packet.events.map((one) => make("li", {}, moment(one.at),
      make("strong", {}, one.type), one.to ? ` ${one.from || "new"} \u2192 ${one.to}` : "",
      ` by ${one.actor} (${one.kind}${one.signed ? ", with an approval" : ""})`, one.proven ? "" : [" ", make("span", { class: "claimed" }, "claimed")],
      one.said.length ? make("div", {}, one.said.map(([key, value]) => `${key}: ${value}`).join("; ")) : null,
      make("div", {}, code(one.id.slice(0, 16))))));
  }

  // --- the trace as a drawing: four columns, a line for each link ---

  // In these lanes a criterion without evidence is a gap; before, it is work that is not done yet.
  const FINISHED = new Set(["IN_REVIEW", "MERGE_PENDING", "VALIDATED"]);

  function trace(packet) {
    const columns = [
      ["Requirement", packet.anchors.map((one) => [one.name || one.path, ANCHORS[one.state],
        one.state === "changed" ? "suspect" : one.state === "unread" ? "missing" : ""])],
      ["Criterion", packet.criteria.map((one) => [`${one.number} ${one.text}`, "",
        one.evidence.length ? "" : FINISHED.has(packet.lane) ? "missing" : "open"])],
      ["Evidence", packet.criteria.flatMap((one) => one.evidence.map((each) => [each.what, each.result.replace("_", " "),
        each.suspect ? "suspect" : each.result === "not_met" ? "missing" : ""]))],
      ["Commit", packet.commits.map((one) => [one.id.slice(0, 12), one.role, one.known ? "" : "missing"])],
    ];
    if (columns.every(([, nodes]) => !nodes.length)) return make("p", {}, "It rests on nothing that is recorded.");
    const rows = Math.max(...columns.map(([, nodes]) => nodes.length));
    const height = 34 + rows * 50;
    const picture = draw("svg", { class: "trace", viewBox: `0 0 960 ${height}`, role: "img",
      "aria-label": "Trace of " + packet.id + "; the lists below hold the same" });
    const at = (column, row, count) => [column * 240 + 4, 30 + (row + (rows - count) / 2) * 50];
    links(packet).forEach(([column, from, to]) => {
      const [x1, y1] = at(column, from, columns[column][1].length);
      const [x2, y2] = at(column + 1, to, columns[column + 1][1].length);
      picture.append(draw("path", { d: `M${x1 + 206},${y1 + 20} C${x1 + 222},${y1 + 20} ${x2 - 18},${y2 + 20} ${x2},${y2 + 20}` }));
    });
    columns.forEach(([head, nodes], column) => {
      picture.append(draw("text", { class: "head", x: column * 240 + 4, y: 16 }, head));
      nodes.forEach((node, row) => picture.append(box(node, ...at(column, row, nodes.length))));
    });
    return wide("Trace", picture);
  }

  function links(packet) {
    const made = [];
    packet.criteria.forEach((one, number) => packet.anchors.forEach((_, anchor) => made.push([0, anchor, number])));
    let proofs = 0;
    packet.criteria.forEach((one, number) => one.evidence.forEach((each) => {
      made.push([1, number, proofs]);
      packet.commits.forEach((commit, place) => { if (commit.id === each.commit) made.push([2, proofs, place]); });
      proofs += 1;
    }));
    return made;
  }

  function box([title, below, state], x, y) {
    const short = title.length > 30 ? title.slice(0, 29) + "\u2026" : title;
    return draw("g", { class: state }, draw("title", {}, below ? `${title}: ${below}` : title),
      draw("rect", { x, y, width: 206, height: 40, rx: 3 }),
      draw("text", { x: x + 8, y: y + (below ? 17 : 25) }, short),
      below ? draw("text", { class: "head", x: x + 8, y: y + 33 }, below.slice(0, 32)) : null);
  }

  // --- where the reader is ---

  function go() {
    let place = "";
    try { place = decodeURIComponent(location.hash.slice(1)); } catch { place = ""; }
    const known = position.has(place);
    byId("overview").hidden = known;
    const article = byId("packet");
    article.hidden = !known;
    if (known) {
      article.setAttribute("aria-labelledby", "packet-title");
      article.replaceChildren(...packetView(details(place)).filter((element) => element !== null));
      document.title = place;
      window.scrollTo(0, 0);
      byId("packet-title").focus({ preventScroll: true });
      return;
    }
    document.title = heading;
    if (place.startsWith("find=")) {
      byId("query").value = place.slice(5);
      find(place.slice(5));
      byId("packets").scrollIntoView();
      byId("query").focus({ preventScroll: true });
    } else if (place && byId(place)) {
      const target = byId(place);
      if (target.tagName === "DETAILS") target.open = true;
      target.scrollIntoView();
    }
  }

  const heading = document.title;
  byId("search").hidden = false;
  byId("search").addEventListener("submit", (event) => event.preventDefault());
  byId("waits").addEventListener("change", () => find(byId("query").value));
  [...byId("list").tHead.rows[0].cells].forEach((cell, column) => {
    const button = make("button", { type: "button", class: "sort" }, cell.textContent);
    button.addEventListener("click", () => sortBy(column));
    cell.replaceChildren(button);
  });
  byId("query").addEventListener("input", () => find(byId("query").value));
  byId("before").addEventListener("click", () => { page -= 1; showRows(); });
  byId("after").addEventListener("click", () => { page += 1; showRows(); });
  window.addEventListener("hashchange", go);
  showRows();
  go();
})();
