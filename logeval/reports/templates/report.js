// Sorting, and values under the pointer. All of the page reads without it.
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
    head.textContent = data.unit.replace("#", data.t[near].toLocaleString("en"));
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
