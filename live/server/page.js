"use strict";
const EVERY_MS = 5000, SVG = "http://www.w3.org/2000/svg";
const WIDTH = 300, BAR = 14, LEFT = 34, RIGHT = 290, TOP = 12, BOTTOM = 86;
const at = (id) => document.getElementById(id);
const percent = (share) => `${Math.round(100 * share)} %`;
const gpus = (number) => `${Math.round(number * 10) / 10}`;

let token = sessionStorage.getItem("token") || "";
let asked = sessionStorage.getItem("job") || "";
const cards = new Map();

/* An element; whatever comes from the server enters the page as text alone. */
function made(name, attributes = {}, text = "") {
  const svg = ["svg", "rect", "path", "line", "text", "title"].includes(name);
  const element = svg ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.textContent = text;
  return element;
}

async function ask(path) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch(path, { headers, cache: "no-store" });
  if (answer.status === 401) {
    token = "";
    sessionStorage.removeItem("token");
    at("token-form").hidden = false;
    throw new Error("this token is nobody's; give yours");
  }
  return { status: answer.status, body: await answer.json() };
}

function clock(text) {
  const then = new Date(text), now = new Date();
  const time = then.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return then.toDateString() === now.toDateString() ? time : `${then.toLocaleDateString()} ${time}`;
}

const between = (when) => `${clock(when.p50)} (90 %: ${clock(when.p5)} to ${clock(when.p95)})`;

function showJob(job) {
  const facts = [["Pool", job.pool], ["GPUs", `${job.gpus}`], ["State", job.state]];
  if (job.started) facts.push(["Started", clock(job.started)]);
  if (job.start) facts.push(["Starts", between(job.start)]);
  if (job.end) facts.push(["Ends", between(job.end)]);
  if (job.ended) facts.push(["Ended", clock(job.ended)]);
  if (job.why) facts.push([job.start ? "Waits" : "Note", job.why]);
  if (job.futures_age_s !== null) facts.push(["By", `futures under ${job.policy}, run times of ${job.sizes}, ${Math.round(job.futures_age_s)} s ago`]);
  at("job-line").textContent = `Job ${job.job_id}`;
  at("job-facts").replaceChildren(...facts.flatMap(([name, value]) => [made("dt", {}, name), made("dd", {}, value)]));
}

async function lookUp() {
  if (!asked) return;
  const { status, body } = await ask(`/v1/jobs/${encodeURIComponent(asked)}/eta`);
  if (status === 200) return showJob(body);
  at("job-facts").replaceChildren();
  const unknown = body.detail === "unknown job" ? "nobody has heard of it, or it is not yours to see" : body.detail;
  at("job-line").textContent = status === 404 ? `Job ${asked}: ${unknown}.` : "This cannot be answered now.";
}

/* GPUs of a pool, side by side. */
function bar(pool) {
  const parts = [["held", pool.held - pool.lent], ["lent", pool.lent], ["reserved", pool.reserved], ["idle", pool.idle - pool.reserved]];
  const all = Math.max(1, parts.reduce((sum, [, count]) => sum + Math.max(0, count), 0));
  let x = 0;
  return parts.map(([name, count]) => {
    const width = WIDTH * Math.max(0, count) / all;
    const part = made("rect", { class: name, x, y: 0, width, height: BAR });
    x += width;
    return part;
  });
}

/* Quantiles of the load that is forecast to come, by window. */
function bands(pool) {
  const windows = Object.entries(pool.forecasts), levels = windows.map(([, one]) => Object.values(one.load_quantiles_gpus));
  const most = Math.max(1, pool.quota, ...levels.flat());
  const x = (place) => LEFT + (RIGHT - LEFT) * (windows.length > 1 ? place / (windows.length - 1) : 0.5);
  const y = (value) => BOTTOM - (BOTTOM - TOP) * value / most;
  const line = (rank) => levels.map((row, place) => `${x(place)},${y(row[rank])}`);
  const path = `M${line(0).join("L")}L${line(levels[0].length - 1).reverse().join("L")}Z`;
  const anchor = (place) => (place === 0 ? "start" : place === windows.length - 1 ? "end" : "middle");
  return [
    made("line", { class: "quota", x1: LEFT, x2: RIGHT, y1: y(pool.quota), y2: y(pool.quota) }),
    made("path", { class: "band", d: path }),
    made("path", { class: "middle", d: `M${line(1).join("L")}` }),
    made("text", { x: 0, y: TOP + 4 }, gpus(most)),
    made("text", { x: 0, y: BOTTOM }, "0"),
    ...windows.map(([name], place) => made("text", { x: x(place), y: BOTTOM + 16, "text-anchor": anchor(place) }, name)),
  ];
}

function card(name) {
  if (!cards.has(name)) {
    const parts = { box: made("article", { class: "pool" }), head: made("h3", {}, name), text: made("p", { class: "small" }) };
    parts.bar = made("svg", { viewBox: `0 0 ${WIDTH} ${BAR}`, role: "img" });
    parts.chart = made("svg", { viewBox: `0 0 ${WIDTH} ${BOTTOM + 22}`, role: "img" });
    parts.next = made("p", { class: "small" });
    parts.box.append(parts.head, parts.text, parts.bar, parts.chart, parts.next);
    cards.set(name, parts);
    at("pools").append(parts.box);
  }
  return cards.get(name);
}

function showPools(pools) {
  for (const [name, pool] of Object.entries(pools)) {
    const parts = card(name);
    const counted = `${gpus(pool.idle)} of ${pool.quota} GPUs idle, ${gpus(pool.reserved)} of them kept back; ${gpus(pool.held)} held, ${gpus(pool.lent)} of them lent; ${gpus(pool.pending)} asked for by jobs that wait`;
    const next = Object.entries(pool.forecasts).map(([window, one]) => `${window}: ${percent(one.probability)}, up to ${gpus(one.load_quantiles_gpus["0.9"])} GPUs`).join(" · ");
    parts.text.textContent = counted;
    parts.next.textContent = `Jobs to come (90 %) within ${next}`;
    parts.bar.replaceChildren(made("title", {}, counted), ...bar(pool));
    parts.chart.replaceChildren(made("title", {}, parts.next.textContent), ...bands(pool));
  }
  for (const [name, parts] of cards) {
    if (!(name in pools)) {
      parts.box.remove();
      cards.delete(name);
    }
  }
}

function table(id, heads, rows) {
  const line = (cells, kind) => {
    const row = made("tr");
    row.append(...cells.map((cell) => made(kind, kind === "th" ? { scope: "col" } : {}, cell)));
    return row;
  };
  at(id).hidden = rows.length === 0;
  at(id).replaceChildren(line(heads, "th"), ...rows.map((row) => line(row, "td")));
}

function showLeases(leases) {
  at("leases-line").textContent = leases === null ? "Nobody lends here: jobs keep to their pools' quotas." : leases.length ? "" : "Nothing is lent now.";
  const until = (one) => (one.outlived_forecast ? `${clock(one.until)}, longer than expected` : clock(one.until));
  table("leases", ["job", "user", "pool", "GPUs", "state", "until"], (leases || []).map((one) => [
    one.job_id, one.user, one.pool, gpus(one.gpus), one.state, until(one),
  ]));
}

function showPromises(kinds) {
  const due = kinds.filter((one) => one.due_90 > 0);
  at("promises-line").textContent = due.length ? "Of the 90 % intervals that were told in the last 7 days and are due:" : "Of what was told in the last 7 days nothing is due yet.";
  table("promises", ["of jobs'", "due", "held", "too early", "too late"], due.map((one) => [
    `${one.kind}s`, `${one.due_90}`, percent(one.coverage_90_pct / 100), `${one.broken_low}`, `${one.broken_high}`,
  ]));
}

function showDegraded(lines) {
  at("degraded").hidden = lines.length === 0;
  /* Only what changed: it is read aloud. */
  if (at("degraded").dataset.lines !== lines.join("\n")) at("degraded").replaceChildren(...lines.map((one) => made("li", {}, one)));
  at("degraded").dataset.lines = lines.join("\n");
}

async function refresh() {
  if (document.documentElement.dataset.tokens === "yes" && !token) {
    at("token-form").hidden = false;
    at("as-of").textContent = "Give your token to see the cluster.";
    return;
  }
  try {
    const { body } = await ask("/v1/overview");
    at("token-form").hidden = true;
    const versions = Object.entries(body.versions).map(([name, number]) => `${name} ${number}`).join(", ");
    at("as-of").textContent = `As of ${new Date(body.as_of).toLocaleTimeString()}, ${versions || "no versions"}`;
    showDegraded(body.degraded);
    showPools(body.pools);
    showLeases(body.leases);
    showPromises(body.promises);
    await lookUp();
  } catch (error) {
    showDegraded([`What is shown may be old: ${error.message}`]);
  }
}

at("job").value = asked;
at("job-form").addEventListener("submit", (event) => {
  event.preventDefault();
  asked = at("job").value.trim();
  sessionStorage.setItem("job", asked);
  at("job-line").textContent = "";
  at("job-facts").replaceChildren();
  lookUp().catch((error) => showDegraded([error.message]));
});
at("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  token = at("token").value.trim();
  at("token").value = "";
  sessionStorage.setItem("token", token);
  refresh().then(() => { if (token) at("job").focus(); });
});
refresh();
setInterval(refresh, EVERY_MS);
