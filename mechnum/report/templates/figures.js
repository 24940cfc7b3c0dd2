// Figures by plotly.js, in the page's theme.
const Figures = (() => {
  const config = {
    responsive: true,
    displayModeBar: false,
  };
  // On touch screens a drag over a figure scrolls the page.
  const dragmode = matchMedia("(pointer: coarse)").matches ? false : "zoom";
  let themes = {};
  const drawn = new Map();

  function draw(host) {
    const views = drawn.get(host) || readJson(host.dataset.figure);
    drawn.set(host, views);
    const chosen = host.closest("figure").querySelector(".switch input:checked");
    const view = views[chosen ? chosen.value : Object.keys(views)[0]];
    const mode = host.dataset.mode || Theme.mode();
    // plotly writes into what it is given; the views must stay as they came.
    const { data, layout } = structuredClone(view);
    layout.template = themes[mode];
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
    addEventListener("beforeprint", () => hosts.forEach((host) => { host.dataset.mode = "light"; draw(host); }));
    addEventListener("afterprint", () => hosts.forEach((host) => { delete host.dataset.mode; draw(host); }));
    drawRest([...hosts]);
  }
  return { start };
})();
