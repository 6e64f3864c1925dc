"use strict";
/* The trajectory browser. Everything said by a policy or a tool enters the page as text nodes. */
(() => {
  const source = document.getElementById("data");
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const $ = (id) => document.getElementById(id);
  const list = $("list"), open = $("open"), tip = $("tip");
  const all = data.trajectories;
  const options = [];
  let shown = [], current = -1;

  // Small builders.
  function make(tag, className, text) {
    const node = document.createElement(tag);
    if (className) node.className = className;
    if (text !== undefined && text !== null) node.textContent = text;
    return node;
  }
  const figure = (value) => (value === null || value === undefined ? "–" : String(+value.toFixed(3)));
  const time = (s) => (s < 0.001 ? "< 1 ms" : s < 1 ? `${Math.round(s * 1000)} ms` : `${s} s`);
  const count = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;

  function placeName(index) {
    const [stage, iteration, split, mode] = data.places[index];
    return split === "train"
      ? `training, ${stage} ${iteration}` : `${split}, ${mode}, ${stage} ${iteration}`;
  }
  const isTrained = (one) => data.places[one.place][2] === "train" && one.total !== null;

  function textOf(passage = "") {
    if (typeof passage === "string") return passage;
    return passage.map((n) => (n < 0 ? " … " : data.pieces[n])).join("")
      .replace(/(?:⟨(?:[0-9a-f]{2})+⟩){2,}/g, joined);
  }
  function joined(bytes) { // a character that several tokens make up
    const text = new TextDecoder().decode(
      Uint8Array.from(bytes.match(/[0-9a-f]{2}/g), (byte) => parseInt(byte, 16)));
    return text.includes("\ufffd") ? bytes : text;
  }
  function wordsOf(one) {
    one.words ??= [one.task, one.answer, (one.gold || []).join(" "), data.runs[one.run],
      ...one.turns.flatMap((t) => [textOf(t.prompt), textOf(t.action), textOf(t.observation)])]
      .join(" ").toLowerCase();
    return one.words;
  }

  // Filters.
  function fill(select, choices) {
    for (const [value, name] of choices) {
      const option = make("option", "", name);
      option.value = value;
      select.append(option);
    }
  }
  const tally = (keys) => keys.reduce((m, k) => m.set(k, (m.get(k) || 0) + 1), new Map());

  function rewardBins() {
    const known = all.map((one) => one.total).filter((value) => value !== null);
    const distinct = [...new Set(known)].sort((a, b) => b - a);
    if (distinct.length <= 8) return distinct.map((value) => [value, value]);
    const low = distinct[distinct.length - 1], step = (distinct[0] - low) / 5;
    return [4, 3, 2, 1, 0].map((i) => [low + i * step, i === 4 ? distinct[0] : low + (i + 1) * step]);
  }
  const bins = rewardBins();
  const binOf = (one) => (one.total === null ? "null"
    : String(bins.findIndex(([low, high]) => low <= one.total && one.total <= high)));

  function prepareFilters() {
    const places = tally(all.map((one) => one.place));
    const runs = data.runs.length > 1 ? data.runs.map((run, i) => [`run:${i}`, `run ${run}`]) : [];
    fill($("by-place"), [["", "everywhere"], ...runs,
      ...[...places].map(([p, n]) => [String(p), `${placeName(p)} (${n})`])]);
    const rewards = tally(all.map(binOf));
    const names = bins.map(([low, high], i) =>
      [String(i), low === high ? figure(low) : `${figure(low)} to ${figure(high)}`]);
    fill($("by-reward"), [["", "any"], ...[...names, ["null", "could not be computed"]]
      .filter(([key]) => rewards.has(key)).map(([key, name]) => [key, `${name} (${rewards.get(key)})`])]);
    const stops = [...tally(all.map((one) => one.stop))].sort((a, b) => b[1] - a[1]);
    fill($("by-stop"), [["", "any way"], ...stops.map(([stop, n]) => [stop, `${stop} (${n})`])]);
    for (const id of ["by-place", "by-reward", "by-stop"]) $(id).addEventListener("change", filter);
    $("by-text").addEventListener("input", filter);
    list.parentElement.parentElement.querySelector("form")
      .addEventListener("submit", (event) => event.preventDefault());
  }

  function filter() {
    const place = $("by-place").value, reward = $("by-reward").value;
    const stop = $("by-stop").value, words = $("by-text").value.trim().toLowerCase();
    shown = [];
    all.forEach((one, i) => {
      const here = place === "" || (place.startsWith("run:")
        ? one.run === +place.slice(4) : one.place === +place);
      const fits = here && (reward === "" || binOf(one) === reward)
        && (stop === "" || one.stop === stop) && (words === "" || wordsOf(one).includes(words));
      options[i].hidden = !fits;
      if (fits) shown.push(i);
    });
    $("count").textContent = shown.length === all.length
      ? count(all.length, "trajectory").replace("trajectorys", "trajectories")
      : `${shown.length.toLocaleString("en")} of ${all.length.toLocaleString("en")}`;
    if (shown.length === 0) {
      select(-1);
      open.replaceChildren(make("p", "note", "No trajectory fits these filters."));
    } else if (!shown.includes(current)) select(shown[0]);
  }

  // The list.
  function badge(one) {
    const node = make("span", "reward", figure(one.total));
    const sign = one.total === null ? "null" : one.total > 0 ? "up" : one.total < 0 ? "down" : "zero";
    node.classList.add(sign);
    return node;
  }
  function option(one, index) {
    const node = make("div", "option");
    node.id = `t${index}`;
    node.setAttribute("role", "option");
    node.setAttribute("aria-selected", "false");
    node.append(badge(one), make("b", "", one.task), make("span", "answer", one.answer ?? `no answer: ${one.stop}`),
      make("small", "", `${placeName(one.place)} · ${count(one.turns.length, "turn")}`));
    node.addEventListener("click", () => { select(index); if (narrow()) open.scrollIntoView(); });
    return node;
  }
  const narrow = () => matchMedia("(max-width: 52rem)").matches;

  function select(index) {
    if (current >= 0) options[current].setAttribute("aria-selected", "false");
    current = index;
    if (index < 0) { list.removeAttribute("aria-activedescendant"); return; }
    const node = options[index];
    node.setAttribute("aria-selected", "true");
    list.setAttribute("aria-activedescendant", node.id);
    const top = node.offsetTop - list.offsetTop;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + node.offsetHeight > list.scrollTop + list.clientHeight)
      list.scrollTop = top + node.offsetHeight - list.clientHeight;
    show(all[index]);
  }
  list.addEventListener("keydown", (event) => {
    const at = shown.indexOf(current), last = shown.length - 1;
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: last,
      PageDown: at + 10, PageUp: at - 10 }[event.key];
    if (to !== undefined && shown.length) select(shown[Math.max(0, Math.min(last, to))]);
    else if (event.key === "Enter") (open.querySelector(".tokens[tabindex]") || open).focus();
    else return;
    event.preventDefault();
  });

  // The conversation.
  function fact(name, value) {
    const node = make("div");
    node.append(make("dt", "", name), make("dd", "", value));
    return node;
  }
  function show(one) {
    tip.hidden = true;
    const head = make("header");
    head.append(make("h3", "", one.task),
      make("p", "note", `${placeName(one.place)}, attempt ${one.attempt}`
        + (data.runs.length > 1 ? `, ${data.runs[one.run]}` : "")));
    const facts = make("dl", "facts");
    facts.append(fact("reward", figure(one.total)),
      ...Object.entries(one.parts).map(([name, value]) => fact(name, figure(value))),
      fact("advantage", figure(one.advantage)), fact("ended", one.stop),
      fact("answer", one.answer ?? "–"), fact("gold", (one.gold || []).join(" · ") || "–"),
      fact("policy version", String(one.version)),
      fact("time", one.seconds === null ? "–" : time(one.seconds)));
    head.append(facts, ...siblings(one));
    const turns = make("ol", "turns");
    one.turns.forEach((turn, i) => turns.append(...said(one, turn, i)));
    if (!one.turns.length) turns.append(make("li", "note", "No turn was recorded."));
    open.replaceChildren(head, legend(one), turns);
    open.scrollTop = 0;
  }
  function siblings(one) {
    const same = all.map((other, i) => [other, i]).filter(([other]) => other.group === one.group
      && other.run === one.run && other.place === one.place);
    if (same.length < 2) return [];
    const row = make("div", "siblings");
    row.append(make("span", "note", "Attempts of this group:"));
    for (const [other, i] of same) {
      const button = make("button", "", figure(other.total));
      button.type = "button";
      button.setAttribute("aria-label", `attempt ${other.attempt}, reward ${figure(other.total)}`);
      if (other === one) button.setAttribute("aria-current", "true");
      button.addEventListener("click", () => {
        if (options[i].hidden) {
          for (const id of ["by-place", "by-reward", "by-stop", "by-text"]) $(id).value = "";
          filter();
        }
        select(i);
        open.querySelector('[aria-current="true"]')?.focus();
      });
      row.append(button);
    }
    return [row];
  }
  function legend(one) {
    const row = make("p", "token-legend note");
    row.append(make("span", isTrained(one) ? "tok trained" : "tok sampled",
      isTrained(one) ? "trained on" : "sampled, not trained on"));
    const scale = make("span", "scale");
    for (const share of [0, 0.25, 0.5, 0.75, 1]) {
      const step = make("i");
      step.style.setProperty("--surprise", share);
      scale.append(step);
    }
    const surprise = make("span", "", "the stronger, the less likely");
    surprise.append(scale);
    row.append(surprise, make("span", "", "hover, tap or focus a token for its figures"));
    return row;
  }
  function said(one, turn, index) {
    const found = [];
    if (turn.fork) found.push(make("li", "fork note", "The context was edited here: a new row starts."));
    if (turn.tokens[0]) {
      const name = index === 0 || turn.fork ? "Prompt" : "Template";
      found.push(bubble(name === "Prompt" ? "prompt" : "template", name, turn.tokens[0], plain(turn.prompt, turn.tokens[0])));
    }
    const notes = [turn.invalid ? "invalid" : "", turn.total ? `reward ${figure(turn.total)}` : "",
      turn.engine ? `${time(turn.engine)} sampling` : ""].filter(Boolean);
    found.push(bubble("policy", `Policy, turn ${index + 1}`, turn.tokens[1], sampled(one, turn, index), notes));
    if (turn.observation) {
      const took = turn.tool ? [`${time(turn.tool)} in tools`] : [];
      found.push(bubble("observation", "Observation", turn.tokens[2], plain(turn.observation, turn.tokens[2]), took));
    }
    return found;
  }
  function bubble(kind, name, tokens, body, notes = []) {
    const item = make("li", `said ${kind}`);
    const head = make("div", "who");
    head.append(make("b", "", name), make("small", "", [count(tokens, "token"), ...notes].join(" · ")));
    item.append(head, body);
    return item;
  }
  function plain(passage, tokens) {
    const body = make("p", "text");
    body.textContent = textOf(passage).replace(/^\n+|\n+$/g, "") || `${count(tokens, "token")}; the run has no tokenizer to show them with`;
    return body;
  }
  function sampled(one, turn, index) {
    if (typeof turn.action === "string") {
      return make("p", `text ${isTrained(one) ? "trained" : "sampled"}`, turn.action);
    }
    const body = make("p", "text tokens");
    body.tabIndex = 0;
    body.setAttribute("role", "group");
    body.setAttribute("aria-label", `Turn ${index + 1}: ${textOf(turn.action)}`);
    turn.action.forEach((piece, at) => {
      if (piece < 0) { body.append(make("span", "cut", ` … ${count(-piece, "token")} left out … `)); return; }
      const node = make("span", `tok ${isTrained(one) ? "trained" : "sampled"}`, data.pieces[piece]);
      const surprise = turn.surprise?.[at] ?? null;
      node.style.setProperty("--surprise", surprise === null ? 0 : Math.min(1, surprise / 40000).toFixed(2));
      const own = turn.advantages?.length === 1 ? turn.advantages[0] : turn.advantages?.[at];
      node.figures = [data.pieces[piece], data.ids[piece], surprise, own, one];
      body.append(node);
    });
    return body;
  }

  // What a token says when it is hovered, tapped or reached by the arrow keys.
  function tell(node) {
    open.querySelector(".tok.on")?.classList.remove("on");
    if (!node?.figures) { tip.hidden = true; return; }
    node.classList.add("on");
    const [piece, id, surprise, own, one] = node.figures;
    const logp = -surprise / 10000;
    const lines = [make("b", "", JSON.stringify(piece)), make("small", "", `token ${id}`)];
    lines.push(make("span", "", surprise === null ? "log-probability –"
      : `log-probability ${logp.toFixed(4)} (p = ${(100 * Math.exp(logp)).toPrecision(3)} %)`));
    const mean = one.advantage === null ? "–" : `${figure(one.advantage)}, the trajectory's mean`;
    lines.push(make("span", "", isTrained(one)
      ? `advantage ${own === undefined || own === null ? mean : figure(own)}` : "not trained on"));
    tip.replaceChildren(...lines);
    tip.hidden = false;
    place(node);
  }
  function place(node) {
    const box = node.getClientRects()[0] ?? node.getBoundingClientRect();
    tip.hidden = box.bottom < 0 || box.top > innerHeight;
    const above = box.top - tip.offsetHeight - 8;
    tip.style.left = `${Math.max(8, Math.min(box.left, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${above > 8 ? above : box.bottom + 8}px`;
  }
  open.addEventListener("pointerover", (event) => tell(event.target));
  open.addEventListener("click", (event) => tell(event.target));
  open.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") tell(null); });
  open.addEventListener("focusin", (event) => {
    if (event.target.classList.contains("tokens") && event.target.matches(":focus-visible"))
      tell(event.target.querySelector(".tok"));
  });
  open.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { tell(null); list.focus(); return; }
    if (!event.target.classList.contains("tokens")) return;
    const tokens = [...event.target.querySelectorAll(".tok")];
    const at = tokens.findIndex((node) => node.classList.contains("on"));
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tokens.length - 1 }[event.key];
    if (to === undefined) return;
    tell(tokens[Math.max(0, Math.min(tokens.length - 1, to))]);
    event.preventDefault();
  });
  addEventListener("scroll", () => {
    const node = open.querySelector(".tok.on");
    if (node) place(node);
  }, { passive: true, capture: true });

  $("browser").hidden = false;
  $("no-script").hidden = true;
  all.forEach((one, index) => options.push(option(one, index)));
  list.append(...options);
  prepareFilters();
  filter();
})();
