// Sorting, values under the pointer, the choice of a query, and folds on small screens. All of the page reads without it.
"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = row => {
        const cell = row.cells[column];
        return cell.dataset.key !== undefined ? Number(cell.dataset.key) : cell.textContent.trim();
      };
      const compare = (a, b) => {
        if (a === "" || b === "") return (a === "") - (b === "");  // what is missing stays last
        const order = typeof a === "number" && typeof b === "number"
          ? a - b : String(a).localeCompare(String(b), "en", {numeric: true});
        return down ? -order : order;
      };
      body.append(...[...body.rows].sort((a, b) => compare(key(a), key(b))));
    });
  });
}

for (const chart of document.querySelectorAll("svg[data-chart]")) {
  const data = JSON.parse(chart.dataset.chart), panel = chart.parentElement;
  const cursor = document.createElementNS("http://www.w3.org/2000/svg", "line");
  cursor.setAttribute("stroke", "currentColor");
  cursor.setAttribute("opacity", "0.4");
  cursor.setAttribute("y1", data.top);
  cursor.setAttribute("y2", data.bottom);
  let tip = null;
  const leave = () => { tip?.remove(); cursor.remove(); tip = null; };
  chart.addEventListener("pointerleave", leave);
  chart.addEventListener("pointermove", event => {
    const box = chart.getBoundingClientRect(), view = chart.viewBox.baseVal;
    const scale = view.width / box.width, x = view.x + (event.clientX - box.left) * scale;
    let near = 0;
    data.x.forEach((at, i) => { if (Math.abs(at - x) < Math.abs(data.x[near] - x)) near = i; });
    cursor.setAttribute("x1", data.x[near]);
    cursor.setAttribute("x2", data.x[near]);
    chart.append(cursor);
    if (!tip) {
      tip = document.createElement("div");
      tip.className = "tip";
      panel.append(tip);
    }
    const head = document.createElement("div");
    head.textContent = data.t[near].toLocaleString("en") + " searches";
    const lines = data.lines.map(([name, colour, values]) => [values[near], name, colour]);
    lines.sort((a, b) => b[0] - a[0]);
    tip.replaceChildren(head, ...lines.map(([value, name, colour]) => {
      const line = document.createElement("div"), dot = document.createElement("i");
      dot.style.background = colour;
      line.append(dot, name + " " + value.toLocaleString("en"));
      return line;
    }));
    const left = (data.x[near] - view.x) / scale;
    tip.style.top = "1.8rem";
    tip.style.left = Math.max(0, left + 12 + tip.offsetWidth > box.width
      ? left - tip.offsetWidth - 12 : left + 12) + "px";
  });
}

for (const section of document.querySelectorAll("section")) {
  const marked = [...section.querySelectorAll("[data-query]")];
  const queries = [...new Set(marked.map(one => one.dataset.query))];
  if (queries.length < 2) continue;
  const label = document.createElement("label"), select = document.createElement("select");
  label.className = "picker";
  select.add(new Option("all", ""));
  queries.sort((a, b) => a.localeCompare(b, "en", {numeric: true}));
  queries.forEach(query => select.add(new Option(query, query)));
  label.append("Query ", select);
  section.querySelector(".head, summary").after(label);
  select.addEventListener("change", () => {
    for (const one of marked) {
      one.hidden = select.value !== "" && one.dataset.query !== select.value;
    }
    for (const fold of section.querySelectorAll("details.more")) {
      const there = [...fold.querySelectorAll("[data-query]")];
      if (there.length) fold.open = there.some(one => one.dataset.query === select.value);
    }
    for (const panels of section.querySelectorAll(".panels.small")) {
      panels.classList.toggle("one", select.value !== "");
    }
  });
}

const background = document.querySelectorAll("details.background");
if (matchMedia("(max-width: 40rem)").matches) background.forEach(one => { one.open = false; });
addEventListener("beforeprint", () => {
  document.querySelectorAll("details.background, .verdict details").forEach(one => { one.open = true; });
});
for (const link of document.querySelectorAll("a[href^='#']")) {
  link.addEventListener("click", () => {
    const target = document.querySelector(link.hash);
    for (const fold of target.querySelectorAll(":scope > details.background")) fold.open = true;
    for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
  });
}
