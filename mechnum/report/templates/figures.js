// Figures by plotly.js, in the page's theme.
const Figures = (() => {
  const config = {
    responsive: true,
    displayModeBar: false,
  };
  // On touch screens a drag over a figure scrolls the page.
  const dragmode = matchMedia("(pointer: coarse)").matches ? false : "zoom";
  // Pixels between the margins of A4 and of Letter; figures do not learn the width of paper.
  const paperWidth = 660;
  let themes = {};
  let printing = false;
  const drawn = new Map();

  function draw(host) {
    const views = drawn.get(host) || readJson(host.dataset.figure);
    drawn.set(host, views);
    const chosen = host.closest("figure").querySelector(".switch input:checked");
    const view = views[chosen ? chosen.value : Object.keys(views)[0]];
    const mode = printing ? "light" : Theme.mode();
    // plotly writes into what it is given; the views must stay as they came.
    const { data, layout } = structuredClone(view);
    layout.template = themes[mode];
    if (printing) layout.width = Math.min(host.clientWidth, paperWidth);
    layout.dragmode = dragmode;
    return Plotly.react(host, data, layout, config);
  }

  // One figure after the other, so that the page can be read and scrolled from the start.
  function drawRest(hosts) {
    const next = hosts.shift();
    if (!next) {
      document.documentElement.dataset.drawn = "all";
      return;
    }
    if (!drawn.has(next)) draw(next);
    setTimeout(() => drawRest(hosts), 0);
  }

  function start() {
    const hosts = [...document.querySelectorAll(".plot")];
    if (hosts.length) themes = readJson("themes");
    for (const host of hosts) {
      const figure = host.closest("figure");
      figure.querySelector(".picture").addEventListener("click", () => {
        Plotly.downloadImage(host, { format: "svg", filename: figure.id, width: host.clientWidth, height: host.clientHeight });
        announce(`${figure.id}.svg saved`);
      });
      figure.querySelectorAll(".switch input").forEach((input) => {
        input.addEventListener("change", () => draw(host));
      });
    }
    Theme.onChange(() => drawn.forEach((_, host) => draw(host)));
    addEventListener("beforeprint", () => { printing = true; hosts.forEach(draw); });
    addEventListener("afterprint", () => { printing = false; hosts.forEach(draw); });
    drawRest([...hosts]);
  }
  return { start };
})();
