// The page: the user, the open view, and the single event stream.
import { $, h, count, size, micros, page, post, call, plain, list, isError, show, problem, tell, Refused } from "./lib.js";
import { redraw } from "./plot.js";
import { history, add, keep, restore } from "./history.js";
import overview from "./overview.js";
import clients from "./clients.js";
import slow from "./slow.js";
import keys from "./keys.js";
import search from "./search.js";
import { pressure, atom, spiderq, skein, perper } from "./systems.js";
import group from "./group.js";
import shell from "./shell.js";

// A view has a title, its topics, and mount(root, param), which fills root. mount returns on (handlers of events by
// topic), query (parameters of the stream), and end.
const views = { overview, clients, slow, keys, search, pressure, atom, spiderq, skein, perper, group, shell };

const systems = ["search", "pressure", "atom", "spiderq", "skein", "perper", "group"];

const root = $("#view");
let open = { name: "", mounted: null };

// The address has the view and its parameter after #.
function where() {
  const [name, param = ""] = location.hash.replace(/^#\/?/, "").split("/");
  try {
    return { name: views[name] ? name : "overview", param: decodeURIComponent(param) };
  } catch {
    return { name: "overview", param: "" }; // the user has typed the address
  }
}

export const go = (name, param = "") => { location.hash = "#/" + name + (param ? "/" + encodeURIComponent(param) : ""); };

function navigate() {
  const { name, param } = where();
  if (open.mounted?.moved && open.name === name) return open.mounted.moved(param);
  open.mounted?.end?.();
  for (const a of document.querySelectorAll("nav a")) {
    if (a.dataset.view === name) {
      a.setAttribute("aria-current", "page");
      a.hidden = false;
    } else a.removeAttribute("aria-current");
  }
  $('nav [aria-current="page"]').scrollIntoView({ block: "nearest", inline: "nearest" });
  document.title = views[name].title + " · atomredis";
  root.replaceChildren();
  root.className = name;
  open = { name, mounted: views[name].mount(root, param, { listen, go }) };
  listen();
}

// One stream has the events for the view and for the header.

let stream = null;

function listen() {
  stream?.close();
  stream = null;
  if (document.hidden || !page.user) return;
  const view = views[open.name];
  const query = new URLSearchParams(open.mounted.query?.() || {});
  query.set("db", page.db);
  const topics = new Set(["overview", "systems", ...(view.topics || [])]);
  for (const t of topics) query.append("topic", t);
  const mine = new EventSource("events?" + query);
  stream = mine;
  for (const topic of topics) {
    mine.addEventListener(topic, (e) => {
      if (mine !== stream) return;
      const sample = JSON.parse(e.data);
      if (topic === "overview" && !isError(sample)) {
        add(sample);
        status();
      }
      if (topic === "systems") offer(sample);
      open.mounted.on?.[topic]?.(sample);
    });
  }
  mine.addEventListener("end", () => { if (mine === stream) begin(); });
  mine.onerror = () => {
    $("#status").classList.add("lost");
    if (mine.readyState === EventSource.CLOSED && mine === stream) setTimeout(() => mine === stream && begin(), 1000);
  };
  mine.onopen = () => $("#status").classList.remove("lost");
}

// offer shows the systems in the menu that have data, and the group of a server that belongs to one, or all if the user may not ask.
function offer(sample) {
  for (const a of document.querySelectorAll("nav a")) {
    const name = a.dataset.view;
    if (systems.includes(name)) a.hidden = !isError(sample) && !sample.found.includes(name) && open.name !== name;
  }
}

function status() {
  const i = history.info, now = history.now;
  if (!i) return;
  const parts = [["role", i.role], ["commands/s", now ? count(now.ops) : "…"], ["p99", now ? micros(now.p99) : "…"],
    ["memory", size(i.used_memory)],
    ["clients", count(Number(i.connected_clients))]];
  $("#status").replaceChildren(...parts.map(([k, v]) => h("span", null, h("i", null, k), " ", v)));
}

// Logging in.

const dialog = $("#login");

// begin continues an existing session, or logs in without a password if none is needed; otherwise it asks for one.
async function begin() {
  try {
    await entered(await post("session", {}));
  } catch (err) {
    if (err instanceof Refused) ask(err.message.startsWith("NOAUTH") ? "" : err.message);
    else setTimeout(begin, 2000); // the server does not answer
  }
}

function ask(why) {
  stream?.close();
  const error = $(".error", dialog);
  error.hidden = !why;
  error.textContent = why;
  $("[name=cancel]", dialog).hidden = !page.user;
  if (!dialog.open) dialog.showModal();
  $(page.user ? "[name=user]" : "[name=password]", dialog).focus();
}

dialog.addEventListener("cancel", (e) => { if (!page.user) e.preventDefault(); });
$("[name=cancel]", dialog).addEventListener("click", () => { dialog.close(); listen(); });
$("form", dialog).addEventListener("submit", async (e) => {
  e.preventDefault();
  const f = e.target.elements, password = f.password.value;
  f.password.value = "";
  try {
    const answer = await post("session", { user: f.user.value, password });
    dialog.close();
    await entered(answer);
  } catch (err) {
    ask(err.message);
  }
});

async function entered({ user }) {
  page.user = user;
  const b = $("#user");
  b.textContent = user;
  b.hidden = false;
  if (dialog.open) dialog.close();
  navigate();
  const select = $("#db");
  if (select.options.length) return;
  const databases = await call("CONFIG", "GET", "databases").then((r) => Number(plain(list(r)[1])), () => 16);
  select.replaceChildren(...Array.from({ length: Math.min(databases, 256) }, (_, n) => h("option", { value: n }, String(n))));
  select.parentElement.hidden = false;
}

page.onLost = () => begin();

$("#user").addEventListener("click", () => tell(
  h("h2", null, "User ", show(page.user)),
  h("p", { class: "dim" }, "What this page shows and does is what the ACL lets this user do."),
  h("p", { class: "buttons" },
    h("button", { onclick: () => { page.user = ""; $("#message").close(); ask(""); } }, "Log in as another user"),
    h("button", { onclick: async () => {
      await post("logout", {});
      stream?.close();
      page.user = "";
      $("#user").hidden = true;
      $("#message").close();
      root.replaceChildren();
      open.mounted?.end?.();
      open = { name: "", mounted: null };
      ask("");
    } }, "Log out"))));

$("#db").addEventListener("change", (e) => choose(Number(e.target.value)));

function choose(db) {
  page.db = db;
  $("#db").value = db;
  open.mounted?.end?.();
  open = { name: "", mounted: null };
  navigate();
}
page.choose = choose;

// Theme, keys, and events of the page.

$("#theme").addEventListener("click", () => {
  const dark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  localStorage.setItem("theme", dark ? "light" : "dark");
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  redraw();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

const help = () => tell(h("h2", null, "Keys"), h("dl", { class: "facts" },
  ...Object.values(views).slice(0, 10).map((v, i) => [h("dt", null, h("kbd", null, String((i + 1) % 10))), h("dd", null, v.title)]),
  ...[["/", "search or filter"], [":", "command line"], ["t", "dark or light"], ["?", "this list"],
    ["↑ ↓ Enter", "rows of tables and trees"], ["Esc", "leave a field or a dialog"]]
    .map(([k, v]) => [h("dt", null, h("kbd", null, k)), h("dd", null, v)])));
$("#help").addEventListener("click", help);

document.addEventListener("keydown", (e) => {
  const typing = e.target.closest("input, textarea, select");
  if (e.key === "Escape" && typing) return e.target.blur();
  if (typing || e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]")) return;
  const names = Object.keys(views);
  const act = /^[0-9]$/.test(e.key) ? () => go(names[(Number(e.key) + 9) % 10])
    : { "/": () => $("[data-search]")?.focus(), ":": () => go("shell"), t: () => $("#theme").click(), "?": help }[e.key];
  if (act) {
    e.preventDefault();
    act();
  }
});

$("nav").append(...Object.entries(views).map(([name, v]) => h("a",
  { href: "#/" + name, "data-view": name, hidden: systems.includes(name) }, v.title)));
addEventListener("hashchange", () => page.user && navigate());
document.addEventListener("visibilitychange", () => page.user && listen());
addEventListener("pagehide", () => {
  keep();
  stream?.close();
  // The session of a closed page ends soon, unless another page continues it.
  if (page.user) navigator.sendBeacon("leave", new Blob(["{}"], { type: "application/json" }));
});
addEventListener("pageshow", (e) => { if (e.persisted) begin(); });
addEventListener("unhandledrejection", (e) => { if (e.reason instanceof Refused) tell(problem(e.reason)); });

restore();
begin();
