// Maps in tables: drawn small in a cell, and opened in a dialog.
const OperandMaps = (() => {
  const drawings = new WeakMap();
  let themes = {};

  function colours() {
    return themes[Theme.mode()].layout.colorscale.diverging.map(([, colour]) =>
      [1, 3, 5].map((start) => parseInt(colour.slice(start, start + 2), 16)));
  }

  // A share from -1 to 1 between the colours of the scale.
  function shade(scale, share) {
    const place = (share + 1) / 2 * (scale.length - 1);
    const below = Math.min(Math.floor(place), scale.length - 2);
    return scale[below].map((from, channel) => from + (place - below) * (scale[below + 1][channel] - from));
  }

  function codesOf(map) {
    return Int8Array.from(atob(map.codes), (character) => character.charCodeAt(0));
  }

  function paint(canvas, maps, row) {
    const scale = colours();
    const codes = codesOf(Object.values(maps.views)[0][row]);
    const context = canvas.getContext("2d");
    const picture = context.createImageData(canvas.width, canvas.height);
    codes.forEach((code, at) => {
      if (code === maps.missing) return;
      picture.data.set([...shade(scale, code / maps.steps), 255], 4 * at);
    });
    context.putImageData(picture, 0, 0);
  }

  function cell(maps, row) {
    const canvas = element("canvas", { class: "map", width: maps.x.length, height: maps.y.length });
    drawings.set(canvas, () => paint(canvas, maps, row));
    paint(canvas, maps, row);
    const open = element("button", { type: "button", class: "open", "aria-label": `Open ${maps.names[row]}`, onclick: () => show(maps, row) }, canvas);
    return element("td", { class: "picture-cell" }, open);
  }

  function panel(maps, name, map) {
    const codes = codesOf(map);
    const z = maps.y.map((_, line) => maps.x.map((_, column) => {
      const code = codes[line * maps.x.length + column];
      return code === maps.missing ? null : code / maps.steps * map.end;
    }));
    const template = themes[Theme.mode()];
    const [x, y] = maps.titles;
    const end = map.end || 1;
    const data = [{
      type: "heatmap", z, x: maps.x, y: maps.y, zmin: -end, zmax: end, colorscale: template.layout.colorscale.diverging,
      colorbar: { thickness: 12, outlinewidth: 0 }, hovertemplate: `${x} = %{x}, ${y} = %{y}<br>%{z:.3g}<extra></extra>`,
    }];
    const layout = {
      template, height: 380, title: { text: name, font: { size: 14 } }, margin: { l: 48, r: 8, t: 40, b: 44 },
      xaxis: { title: { text: x }, constrain: "domain", showgrid: false, zeroline: false },
      yaxis: { title: { text: y }, autorange: "reversed", scaleanchor: "x", constrain: "domain", showgrid: false, zeroline: false },
    };
    const host = element("div", { class: "opened-map", role: "img", "aria-label": `${name} of ${maps.names}` });
    return [host, () => Plotly.newPlot(host, data, layout, { responsive: true, displayModeBar: false })];
  }

  function show(maps, row) {
    const panels = Object.entries(maps.views).map(([name, views]) => panel({ ...maps, names: maps.names[row] }, name, views[row]));
    const dialog = element("dialog", { class: "opened", "aria-label": maps.names[row], onclose: () => dialog.remove() },
      element("div", { class: "opened-head" }, element("h3", {}, maps.names[row]),
        element("button", { type: "button", onclick: () => dialog.close() }, "Close")),
      element("div", { class: "opened-maps" }, ...panels.map(([host]) => host)));
    document.body.append(dialog);
    dialog.showModal();
    panels.forEach(([, draw]) => draw());
  }

  function start() {
    themes = readJson("themes");
    Theme.onChange(() => document.querySelectorAll("canvas.map").forEach((canvas) => drawings.get(canvas)()));
  }
  return { start, cell };
})();
