// Keeps a page up to date, and adds keys. Every page works without it: then a reload shows what is new.
"use strict";
(() => {
  const body = document.body, said = document.getElementById("said");
  document.documentElement.classList.add("scripted");

  // The paths of the pages begin with a part that every server makes up: an address without it, or with that of an earlier
  // server, leads to the same page of this server if the board is open in this browser.
  const home = body.dataset.home;
  if (home) localStorage.setItem("board", home);
  else {
    const known = localStorage.getItem("board") || "";
    if (/^\/[0-9a-f]{16}$/.test(known) && !location.pathname.startsWith(`${known}/`)) {
      location.replace(known + location.pathname.replace(/^\/[0-9a-f]{16}(?=\/)/, "") + location.search + location.hash);
      return;
    }
  }
  let version = Number(body.dataset.version || 0), wanted = version, busy = false;

  // Times, as how long ago or how soon.
  const words = new Intl.RelativeTimeFormat("en", { numeric: "always", style: "narrow" });
  const units = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
  function tell() {
    for (const time of document.querySelectorAll("time")) {
      const seconds = (Date.parse(time.dateTime) - Date.now()) / 1000;
      if (Number.isNaN(seconds)) continue;
      const [unit, size] = units.find(([, size]) => Math.abs(seconds) >= size) || units[3];
      time.title = time.dateTime;
      const far = words.format(Math.trunc(seconds / size), unit);
      const text = time.className === "ends" ? `${seconds > 0 ? "ends" : "ended"} ${far}` : far;
      if (time.textContent !== text) time.textContent = text;
    }
  }
  tell();
  setInterval(tell, 15000);

  // What unfolds on a card is fetched when it is opened.
  async function load(details) {
    const place = details.querySelector("div");
    try {
      const answer = await fetch(details.dataset.load);
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      place.replaceChildren(...(fresh.getElementById("part") || fresh.querySelector("main") || fresh.body).childNodes);
    } catch { place.textContent = "The server does not answer."; }
  }
  document.addEventListener("toggle", (event) => {
    if (event.target.open && event.target.dataset.load) load(event.target);
  }, true);

  // A list keeps every card that is still the same, so that focus, scrolling and what is open stay as they are.
  function merge(old, fresh, marked) {
    const known = new Map([...old.children].map((card) => [card.id, card]));
    const had = document.activeElement;
    const card = had && old.contains(had) ? had.closest(".card") : null;
    const place = card ? [...card.querySelectorAll("a, summary")].indexOf(had) : -1;
    let at = old.firstElementChild;
    for (const next of [...fresh.children]) {
      const same = known.get(next.id);
      let use = next;
      if (same && same.dataset.digest === next.dataset.digest) use = same;
      else {
        if (marked) use.classList.add("fresh");
        const open = same && same.querySelector("details[open]");
        if (open) { const details = use.querySelector("details"); details.open = true; }
        if (same) { if (at === same) at = same.nextElementSibling; same.remove(); }
      }
      known.delete(next.id);
      if (use === at) at = at.nextElementSibling;
      else old.insertBefore(use, at);
    }
    for (const gone of known.values()) gone.remove();
    if (card && !card.isConnected) {
      const again = document.getElementById(card.id);
      const focus = again && [...again.querySelectorAll("a, summary")][Math.max(place, 0)];
      if (focus) focus.focus({ preventScroll: true });
    }
  }

  function mergeBoard(fresh, marked) {
    const board = document.getElementById("board"), next = fresh.getElementById("board");
    const count = document.getElementById("count"), told = fresh.getElementById("count");
    if (count && told && count.textContent !== told.textContent) count.textContent = told.textContent;
    const heads = (from) => [...from.querySelectorAll("h2")].map((head) => head.firstChild.textContent).join("\n");
    if (heads(board) !== heads(next)) { board.replaceChildren(...next.childNodes); return; }
    const lanes = [...next.children];
    [...board.children].forEach((lane, number) => {
      const other = lanes[number];
      lane.className = other.className;
      lane.querySelector(".number").textContent = other.querySelector(".number").textContent;
      merge(lane.querySelector("ul"), other.querySelector("ul"), marked);
      const more = lane.querySelector(".more"), left = other.querySelector(".more");
      if (more) more.remove();
      if (left) lane.append(left);
    });
  }

  function typing() {
    return [...document.querySelectorAll("main details[open] form :is(input, textarea)")]
      .some((field) => field.type !== "hidden" && (field.value || field === document.activeElement));
  }

  async function show(address, marked) {
    if (busy) return;
    busy = true;
    try {
      while (address) {
        const goal = wanted, answer = await fetch(address);
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        if (!answer.ok && answer.status === 401) { end(); return; }
        if (document.getElementById("board") && fresh.getElementById("board")) mergeBoard(fresh, marked);
        else if (typing()) said.textContent = "This page has changed; reload it when you are done.";
        else {
          const open = [...document.querySelectorAll("main details[open][id]")].map((each) => each.id);
          document.querySelector("main").replaceChildren(...fresh.querySelector("main").childNodes);
          for (const id of open) { const each = document.getElementById(id); if (each) each.open = true; }
        }
        tell();
        version = Number(fresh.body.dataset.version || goal);
        address = wanted > version ? location.href : null;
      }
    } catch { said.textContent = "The server does not answer."; } finally { busy = false; }
  }

  // One page of a browser listens for all of them: a browser opens few connections to one server.
  function heard(number) {
    if (said.textContent.startsWith("The server")) said.textContent = "";
    if (number === wanted && number === version) return;
    wanted = number;
    if (wanted !== version) show(location.href, true);
  }
  function end() { said.textContent = "The server has ended, or no longer knows this browser."; }
  if (body.dataset.changes) {
    const others = new BroadcastChannel(body.dataset.changes);
    others.onmessage = (event) => heard(event.data);
    const listen = () => new Promise(() => {
      const source = new EventSource(body.dataset.changes);
      source.onmessage = (event) => { heard(Number(event.data)); others.postMessage(Number(event.data)); };
      source.onerror = () => { if (source.readyState === EventSource.CLOSED) end(); else said.textContent = "The server does not answer."; };
    });
    if (navigator.locks) navigator.locks.request(body.dataset.changes, listen); else listen();
  }

  // An action is sent without leaving the page, and only once; its answer takes the place of the content.
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.closest(".act")) return;
    event.preventDefault();
    const button = form.querySelector("button");
    if (button.disabled) return;
    button.disabled = busy = true;
    try {
      const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) });
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html"), main = document.querySelector("main");
      document.title = fresh.title;
      history.pushState(null, "", answer.redirected ? answer.url : location.href);
      main.replaceChildren(...fresh.querySelector("main").childNodes);
      main.focus();
      scrollTo(0, 0);
      tell();
    } catch { said.textContent = "The server does not answer."; button.disabled = false; } finally { busy = false; }
  });
  addEventListener("popstate", () => location.reload());

  // The filter works while one types.
  const find = document.getElementById("find");
  if (find) {
    let timer = 0;
    const filter = () => {
      const query = new URLSearchParams(new FormData(find));
      for (const [name, value] of [...query]) if (!value) query.delete(name);
      const text = query.toString();
      history.replaceState(null, "", text ? `?${text}` : location.pathname);
      show(location.href, false);
    };
    find.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(filter, 120); });
    find.addEventListener("submit", (event) => { event.preventDefault(); filter(); });
  }

  // Keys: / searches, arrows go from card to card, Escape leaves the search.
  const cards = (lane) => [...lane.querySelectorAll(".card > .title")];
  function go(lane, row) {
    const all = lane ? cards(lane) : [];
    const target = all[Math.min(Math.max(row, 0), all.length - 1)];
    if (target) { target.focus(); target.scrollIntoView({ block: "nearest", inline: "nearest" }); }
    return Boolean(target);
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !find) return;
    const q = document.getElementById("q");
    if (event.target === q && event.key === "Escape") { q.value = ""; q.blur(); find.dispatchEvent(new Event("input")); return; }
    if (event.target.closest("input, select, textarea")) return;
    if (event.key === "/") { event.preventDefault(); q.focus(); q.select(); return; }
    const lanes = [...document.querySelectorAll(".lane")];
    const link = event.target.closest(".card") ? event.target.closest(".card").querySelector(".title") : null;
    const lane = link ? lanes.indexOf(link.closest(".lane")) : -1;
    const row = link ? cards(lanes[lane]).indexOf(link) : 0;
    const steps = { ArrowDown: [0, 1], ArrowUp: [0, -1], ArrowRight: [1, 0], ArrowLeft: [-1, 0] }[event.key];
    if (!steps || (event.target !== document.body && !link && !event.target.closest("main"))) return;
    event.preventDefault();
    if (lane < 0) { lanes.some((each) => go(each, 0)); return; }
    if (steps[1]) { go(lanes[lane], row + steps[1]); return; }
    for (let next = lane + steps[0]; next >= 0 && next < lanes.length; next += steps[0]) if (go(lanes[next], row)) return;
  });
})();
