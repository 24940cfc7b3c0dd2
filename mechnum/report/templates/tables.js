// Tables that sort, filter, copy and download; drawn from the JSON beside them.
const Tables = (() => {
  const step = 100;

  function show(value) {
    if (value === null || value === undefined) return "";
    if (typeof value === "boolean") return value ? "yes" : "no";
    if (typeof value !== "number") return String(value);
    const text = Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(4)));
    return text.replace("-", "\u2212");
  }

  function compare(left, right) {
    if (left === null) return right === null ? 0 : 1;
    if (right === null) return -1;
    if (typeof left === "number" && typeof right === "number") return left - right;
    return String(left).localeCompare(String(right), undefined, { numeric: true });
  }

  // Each word of the filter must be found in the row; `layer=2` or `total>0.5` ask one column.
  function matcher(text, names, columns) {
    const tests = text.trim().toLowerCase().split(/\s+/).filter(Boolean).map((word) => {
      const asked = /^(.+?)(<=|>=|=|<|>)(.+)$/.exec(word);
      const column = asked && names.findIndex((name) => name.toLowerCase() === asked[1]);
      if (asked && column >= 0) {
        const wanted = Number(asked[3]);
        return (row) => {
          const value = columns[column][row];
          if (Number.isNaN(wanted)) return asked[2] === "=" && String(value).toLowerCase() === asked[3];
          if (typeof value !== "number") return false;
          // What is asked for by = is what is shown.
          if (asked[2] === "=") return value === wanted || show(value) === show(wanted);
          return { "<": value < wanted, ">": value > wanted, "<=": value <= wanted, ">=": value >= wanted }[asked[2]];
        };
      }
      return (row) => columns.some((column) => show(column[row]).toLowerCase().includes(word.replace("-", "\u2212")) || String(column[row]).toLowerCase().includes(word));
    });
    return (row) => tests.every((test) => test(row));
  }

  function quoted(value, separator) {
    const text = value === null ? "" : String(value);
    return text.includes(separator) || /["\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }

  function delimited(names, columns, rows, separator) {
    const lines = [names, ...rows.map((row) => columns.map((column) => column[row]))];
    return lines.map((line) => line.map((cell) => quoted(cell, separator)).join(separator)).join("\n") + "\n";
  }

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Some browsers keep the clipboard from files opened from disk.
      const area = element("textarea", { class: "hidden" });
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    announce("Table copied");
  }

  function draw(host) {
    if (host.firstChild) return;
    const table = readJson(host.dataset.table);
    const names = Object.keys(table.columns);
    const columns = Object.values(table.columns);
    const all = columns.length ? [...columns[0].keys()] : [];
    const numeric = columns.map((column) => column.every((value) => value === null || typeof value === "number"));
    const file = host.dataset.table.replace(/-data$/, "");
    let rows = all;
    let sorted = { column: -1, direction: 1 };
    let shown = step;

    const count = element("span", { class: "count", role: "status" });
    const filter = element("input", {
      class: "filter", type: "search", "aria-label": `Filter ${table.title}`,
      placeholder: numeric[0] ? `Filter: words, or ${names[0]}=2` : "Filter",
      oninput: () => { shown = step; refresh(); },
    });
    const heads = names.map((name, index) => element("th", { scope: "col", class: numeric[index] ? "number" : "" },
      element("button", { type: "button", onclick: () => sort(index) }, name.replaceAll("_", " "))));
    // Pictures have no order to sort by.
    const pictured = table.maps ? [element("th", { scope: "col", class: "unsorted" }, table.maps.column)] : [];
    const body = element("tbody");
    const more = element("p", { class: "rest" }, element("button", { type: "button", onclick: () => { shown += 10 * step; fill(); } }, "Show more rows"));
    host.append(
      element("div", { class: "controls" }, filter,
        element("button", { type: "button", onclick: () => copy(delimited(names, columns, rows, "\t")) }, "Copy"),
        element("button", { type: "button", onclick: () => Files.save(`${file}.csv`, "text/csv", delimited(names, columns, rows, ",")) }, "CSV"),
        element("button", { type: "button", onclick: () => Files.save(`${file}.json`, "application/json", JSON.stringify(picked())) }, "JSON"),
        count),
      element("div", { class: "frame", tabindex: "0", role: "group", "aria-label": table.title },
        element("table", {}, element("caption", { class: "hidden" }, table.title),
          element("thead", {}, element("tr", {}, ...pictured, ...heads)), body)),
      more);

    function picked() {
      return Object.fromEntries(names.map((name, index) => [name, rows.map((row) => columns[index][row])]));
    }
    function sort(index) {
      const first = numeric[index] ? -1 : 1;
      const direction = sorted.column === index ? -sorted.direction : first;
      sorted = { column: index, direction };
      heads.forEach((head, at) => {
        if (at === index) head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
        else head.removeAttribute("aria-sort");
      });
      refresh();
    }
    function refresh() {
      const wanted = matcher(filter.value, names, columns);
      rows = all.filter(wanted);
      if (sorted.column >= 0) {
        const values = columns[sorted.column];
        // Missing values stay last in both directions.
        rows.sort((a, b) => (values[a] === null || values[b] === null ? 1 : sorted.direction) * compare(values[a], values[b]));
      }
      fill();
    }
    function fill() {
      const part = rows.slice(0, shown).map((row) => element("tr", {},
        ...(table.maps ? [OperandMaps.cell(table.maps, row)] : []),
        ...columns.map((column, index) => {
          const text = show(column[row]);
          return element("td", { class: numeric[index] ? "number" : text.length > 100 ? "long" : "" }, text);
        })));
      body.replaceChildren(...part);
      more.hidden = rows.length <= shown;
      const visible = Math.min(shown, rows.length);
      count.textContent = visible === all.length ? `${all.length} rows` : `${visible} of ${rows.length} rows`;
    }
    fill();
  }

  function start() {
    document.querySelectorAll(".data[data-open]").forEach(draw);
    document.querySelectorAll("details.more").forEach((details) => {
      details.addEventListener("toggle", () => { if (details.open) draw(details.querySelector(".data")); });
    });
    document.getElementById("all-data").addEventListener("click", () => {
      const everything = {};
      document.querySelectorAll("script.table-data").forEach((script) => {
        const table = JSON.parse(script.textContent);
        everything[script.id.replace(/-data$/, "")] = table;
      });
      Files.save("report-data.json", "application/json", JSON.stringify(everything));
    });
  }
  return { start };
})();
