"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const charts = [];        // all plots of the page
  const hidden = new Set(); // keys of lines that are toggled off, in all plots

  // Each setting has its lists ready to draw. Lines are steps, one a bin, so they
  // get a last point where the last bin ends.
  const step = data.step || 1;
  const closed = list => list.concat(list.slice(-1));
  const total = list => { let sum = 0; return list.map(n => sum += n); };
  const settings = data.settings.map((s, i) => ({
    ...s, key: "setting " + i, hue: "s" + i % 8, dash: [[], [7, 4], [2, 3]][Math.floor(i / 4) % 3],
    sum: total(s.calls.map((n, at) => n + s.looks[at])),
  }));
  const played = settings.filter(s => s.start.length);
  const end = s => { // the last bin may be shorter
    const last = s.start.at(-1);
    return data.duration > last ? Math.min(last + step, data.duration) : last + step;
  };
  const whole = Math.max(data.duration, ...played.map(end));

  // Words.
  const count = n => n >= 1e6 ? +(n / 1e6).toFixed(2) + "M" : n >= 1e4 ? +(n / 1e3).toFixed(1) + "k" : String(n);
  const span = s => s === 0 ? "0s" : s < 1 ? Math.round(s * 1000) + "ms" : s < 60 ? +s.toFixed(1) + "s" : clock(s);
  const sizes = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]].slice(whole > 172800 ? 0 : 1);
  function clock(seconds) {
    if (seconds < 60) return seconds ? +seconds.toFixed(1) + "s" : "0";
    const words = [];
    let rest = Math.round(seconds);
    for (const [name, size] of sizes) {
      if (rest >= size) words.push(Math.floor(rest / size) + name);
      rest %= size;
    }
    return words.join(" ");
  }

  // Colours come from the style sheet, so that it alone knows light and dark.
  let colours = {};
  const colour = name => colours[name] ??= getComputedStyle(root).getPropertyValue("--" + name).trim();

  // element makes one; text in it is never taken for HTML.
  function element(name, properties, ...children) {
    const e = Object.assign(document.createElement(name), properties);
    e.append(...children);
    return e;
  }
  const caption = (title, note) => element("figcaption", {}, element("span", { className: "title" }, title), note);

  // swatch shows in a legend how a line looks.
  function swatch(line) {
    const svg = document.getElementById("swatch").content.firstElementChild.cloneNode(true);
    const path = svg.firstElementChild;
    path.setAttribute("d", line.fill ? "M0 3H18V10H0Z" : "M0 5H18");
    Object.assign(path.style, {
      stroke: `var(--${line.hue})`, strokeWidth: line.width + .5, strokeDasharray: line.dash.join(" "),
      fill: line.fill ? `color-mix(in srgb, var(--${line.hue}) 35%, transparent)` : "none",
    });
    return svg;
  }

  function legend(lines) {
    const outputs = lines.map(() => element("output"));
    const buttons = lines.map((line, i) => {
      const label = element("span", { className: "label" }, line.label);
      const button = element("button", { type: "button", title: line.label }, swatch(line), label, outputs[i]);
      button.dataset.key = line.key;
      button.ariaPressed = "true";
      button.addEventListener("click", () => toggle(line.key));
      return button;
    });
    return [element("div", { className: "legend" }, ...buttons), outputs];
  }

  function axes(format) {
    const look = {
      stroke: () => colour("muted"), font: "12px system-ui, sans-serif",
      grid: { stroke: () => colour("line"), width: 1 }, ticks: { show: false },
    };
    const times = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 1209600, 2419200];
    const wholes = [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8].flatMap(n => [n, 2 * n, 5 * n]);
    return [
      { ...look, incrs: times, values: (u, at) => at.map(clock), space: 56, size: 26, gap: 4 },
      { ...look, incrs: format === count ? wholes : undefined, values: (u, at) => at.map(n => n ? format(n) : "0"), space: 32, size: 52, gap: 6 },
    ];
  }

  // under returns the index of the bin at the cursor.
  function under(u) {
    if (u.cursor.left < 0) return null;
    const at = u.valToIdx(u.posToVal(u.cursor.left, "x"));
    return Math.max(0, u.data[0][at] > u.posToVal(u.cursor.left, "x") ? at - 1 : at);
  }

  // highest returns the highest of a list between the times shown.
  function highest(start, list) {
    let most = 0;
    for (let i = 0; i < list.length; i++) {
      if (list[i] > most && start[i] < shown[1] && (start[i + 1] ?? whole) > shown[0]) most = list[i];
    }
    return most;
  }

  // chart draws lines into a figure. values returns the data for the times shown,
  // note says what they are, top where the y scale ends.
  function chart(parent, { title, note, lines, values, height, format, top, bands }) {
    const place = element("div", { className: "plot", tabIndex: 0, role: "img", ariaLabel: title });
    const [noted, when] = [element("span", { className: "note" }), element("span", { className: "when", hidden: true })];
    const [buttons, outputs] = legend(lines);
    parent.append(element("figure", {}, caption(title, noted), buttons, place));

    // say writes the values at the cursor and its time below it, or the highest.
    function say(u) {
      const at = under(u);
      when.hidden = at == null;
      when.textContent = clock(u.data[0][at ?? 0]);
      when.style.left = Math.min(u.over.offsetLeft + u.cursor.left, u.width - when.offsetWidth / 2) + "px";
      outputs.forEach((output, i) => {
        const n = at == null ? highest(u.data[0], u.data[i + 1]) : u.data[i + 1][at];
        output.className = at == null ? "rest" : "";
        output.textContent = n == null ? "" : (at == null ? "max " : "") + format(n);
      });
    }
    const plot = new uPlot({
      width: Math.max(place.clientWidth, 200), height, padding: [8, 14, 0, 0],
      legend: { show: false },
      scales: { x: { time: false }, y: { range: u => [0, top(u)] } },
      axes: axes(format), bands,
      series: [{}, ...lines.map(line => ({
        stroke: () => colour(line.hue), width: line.width, dash: line.dash, fill: line.fill && (() => colour(line.hue) + line.fill),
        paths: uPlot.paths.stepped({ align: 1 }), points: { show: false },
      }))],
      cursor: {
        y: false, points: { size: 7 }, drag: { dist: 4 }, dataIdx: under,
        sync: { key: "load", setSeries: false, filters: { pub: type => type === "mousemove" || type === "mouseleave" } },
      },
      hooks: { setCursor: [say], setScale: [(u, key) => key === "x" && zoom(u.scales.x.min, u.scales.x.max)] },
    }, values(), place);
    plot.over.after(when);
    const all = { plot, lines, place, height, values, update: () => { noted.textContent = note(); say(plot); } };
    charts.push(all);
    new ResizeObserver(() => fit(all)).observe(place);
    hands(plot, place);
  }

  function fit({ plot, place, height }) {
    const width = root.classList.contains("print") ? paper : place.clientWidth;
    if (width > 0 && width !== plot.width) {
      leave(plot);
      plot.setSize({ width, height });
      leave(plot); // its points were put back
    }
  }
  const leave = plot => plot.setCursor({ left: -10, top: -10 });

  // hands lets arrow keys move the cursor, and fingers zoom.
  function hands(plot, place) {
    place.addEventListener("keydown", event => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      const xs = plot.data[0];
      const from = under(plot) ?? plot.valToIdx(shown[0]) - by;
      const at = Math.min(xs.length - 1, Math.max(0, from + by * (event.shiftKey ? 10 : 1)));
      plot.setCursor({ left: plot.valToPos(xs[at], "x") + .01, top: 10 }, true, true);
    });
    place.addEventListener("blur", () => charts.forEach(c => leave(c.plot)));
    for (const [touch, mouse] of [["pointerdown", "mousedown"], ["pointermove", "mousemove"], ["pointerup", "mouseup"]]) {
      plot.over.addEventListener(touch, event => {
        if (event.pointerType !== "touch") return;
        plot.over.dispatchEvent(new MouseEvent(mouse, { clientX: event.clientX, clientY: event.clientY, movementX: 1, bubbles: true }));
      });
    }
  }

  function toggle(key) {
    hidden.delete(key) || hidden.add(key);
    for (const { plot, lines } of charts) {
      lines.forEach((line, i) => line.key === key && plot.setSeries(i + 1, { show: !hidden.has(key) }));
    }
    for (const button of document.querySelectorAll(".legend button")) button.ariaPressed = String(!hidden.has(button.dataset.key));
    show(...shown); // y scales are shared
  }

  // zoom follows a plot that shows another part of the time.
  let shown = [0, whole];
  let busy = false;
  function zoom(min, max) {
    if (!busy && min != null && (min !== shown[0] || max !== shown[1])) {
      show(Math.max(0, Math.floor(min / step) * step), Math.min(whole, Math.ceil(max / step) * step));
    }
  }
  const bar = document.getElementById("zoom");
  function show(min, max) {
    busy = true;
    shown = [min, max];
    for (const { plot, values, update } of charts) {
      plot.batch(() => {
        plot.setData(values(), false);
        plot.setScale("x", { min, max });
      });
      update();
    }
    busy = false;
    bar.hidden = min <= 0 && max >= whole;
    bar.firstElementChild.textContent = `${clock(min)} to ${clock(max)}`;
  }
  bar.querySelector("button").addEventListener("click", () => show(0, whole));
  addEventListener("keydown", event => event.key === "Escape" && show(0, whole));

  function section(title, note, pairs) {
    const plots = element("div", { className: pairs ? "plots pairs" : "plots" });
    document.getElementById("plots").append(element("section", {}, element("h2", {}, title), element("p", { className: "note" }, note), plots));
    return plots;
  }

  const kinds = s => [
    { key: "demand", label: "demand", hue: "load", width: 1, dash: [], fill: "55" },
    { key: "owned", label: "owned", hue: s.hue, width: 2, dash: [] },
    { key: "target", label: "target", hue: "ink", width: 1, dash: [5, 3] },
    { key: "free", label: "free", hue: s.hue, width: 1, dash: [2, 2] },
  ];

  function addresses() {
    const place = section("Addresses over time", "Demand is pods that are to have an address, owned is what the nodes have " +
      "(tinted: more than the demand), target is what the pools should have, and free could be handed out at once. All settings have the same scale. " +
      "Click a name to hide its line; drag across a plot to zoom, double-click to zoom out.");
    const top = () => 1.06 * Math.max(4, ...played.flatMap(s => kinds(s).map(k => hidden.has(k.key) ? 0 : highest(s.start, s[k.key]))));
    for (const s of settings) {
      if (!s.start.length) {
        place.append(element("figure", {}, caption(s.name, element("span", { className: "note" }, "nothing was recorded"))));
        continue;
      }
      const values = [[...s.start, end(s)], ...kinds(s).map(k => closed(s[k.key]))];
      const note = s.pods ? `${s.waited.toLocaleString("en")} of ${s.pods.toLocaleString("en")} pods waited` : "no pods came";
      chart(place, {
        title: s.name, note: () => note, height: 190, format: count, top,
        lines: kinds(s), values: () => values, bands: [{ series: [2, 1], fill: () => colour(s.hue) + "2e" }],
      });
    }
  }

  // folds returns how many bins are drawn as one, so that single ones don't make a
  // thicket of lines.
  function folds() {
    const bins = (shown[1] - shown[0]) / step;
    const even = [1, 2, 5, 10, 15, 20, 30, 60, 120, 240, 300, 600, 900, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400].map(t => t / step);
    return even.find(n => Number.isInteger(n) && bins / n <= 100) ?? Math.ceil(bins / 100);
  }
  function fold(list, n, join) {
    const out = [];
    for (let i = 0; i < list.length; i += n) out.push(join(list.slice(i, i + n)));
    return out;
  }

  // compare draws one number of all settings. Bins are joined if join is given.
  function compare(place, { title, note, key, format, join, least = 4 }) {
    if (!played.some(s => s[key].some(n => n > 0))) {
      place.append(element("figure", {}, caption(title, element("span", { className: "note" }, "0 all the time"))));
      return;
    }
    const bins = () => join ? folds() : 1;
    const first = bins => bins[0];
    chart(place, {
      title, note: () => note.replace("BIN", span(bins() * step)), height: 220, format,
      top: u => 1.06 * Math.max(least, ...played.map((s, i) => hidden.has(s.key) ? 0 : highest(u.data[0], u.data[i + 1]))),
      lines: played.map(s => ({ key: s.key, label: s.name, hue: s.hue, width: 1.5, dash: s.dash })),
      values: () => uPlot.join(played.map(s => [
        [...fold(s.start, bins(), first), end(s)], closed(fold(s[key], bins(), join ?? first))])),
    });
  }

  function draw() {
    if (!played.length) return;
    addresses();
    const most = bins => Math.max(...bins);
    const add = bins => bins.reduce((a, b) => a + b);
    const mean = bins => Math.round(add(bins) / bins.length * 10) / 10;
    const waits = section("Waits", "Pods without an address, and how long the slowest of them had waited when it got one.", true);
    compare(waits, { title: "Pods waiting", note: "most at once within BIN", key: "waiting", format: count, join: most });
    compare(waits, { title: "Longest wait", note: "that ended within BIN", key: "longest", format: span, join: most, least: .1 });
    const calls = section("Calls to the cloud", "Clouds count calls that change something most strictly; the others only look.", true);
    compare(calls, { title: "Calls that change something", note: "within BIN", key: "calls", format: count, join: add });
    compare(calls, { title: "All calls so far", note: "those that look among them", key: "sum", format: count });
    const idle = section("Idle addresses", "Addresses on nodes that no pod has: the price of being ready.");
    compare(idle, { title: "Idle addresses", note: "on average within BIN", key: "idle", format: count, join: mean });
    show(0, whole);
  }

  // On paper all is light, open, and as wide as the paper.
  const paper = 690;
  function repaint() {
    colours = {};
    charts.forEach(c => { fit(c); leave(c.plot); c.plot.redraw(false); });
  }
  addEventListener("beforeprint", () => {
    root.classList.add("print");
    document.querySelectorAll("main details").forEach(d => { d.open = true; });
    repaint();
  });
  addEventListener("afterprint", () => {
    root.classList.remove("print");
    repaint();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);

  draw();
})();
