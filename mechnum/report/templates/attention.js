// Attention patterns by CircuitsVis; the choice of layer and head is ours, so that keys reach it.
const AttentionView = (() => {
  const look = { minValue: 0, maxValue: 1, positiveColor: "#0b3f75", upperTriColor: "#e3e6ea" };
  let made = 0;

  // CircuitsVis makes a new root for each drawing, so each needs an element of its own.
  function pattern(host, tokens, attention, zoomed) {
    const id = `attention-view-${made++}`;
    host.replaceChildren(element("div", { id }));
    CircuitsVis.render(id, CircuitsVis.AttentionPattern, { tokens, attention, zoomed, showAxisLabels: zoomed, ...look });
  }

  function draw(host) {
    const { tokens, layers } = readJson(host.dataset.attention);
    const names = Object.keys(layers);
    const heads = element("div", { class: "heads", role: "group", "aria-label": "Heads" });
    const zoom = element("div", { class: "zoom", role: "img" });
    const choice = element("select", { onchange: () => showLayer(choice.value) },
      ...names.map((layer) => element("option", { value: layer }, layer)));
    choice.value = names.at(-1);
    // CircuitsVis draws no token larger than this.
    zoom.style.maxWidth = `min(36rem, calc(${8 * tokens.length}em + 4rem))`;
    const layer = element("label", { class: "layer" }, "Layer ", choice);
    layer.hidden = names.length === 1;
    host.append(layer, heads, zoom);

    function showHead(layer, head, button) {
      heads.querySelectorAll("button").forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
      zoom.setAttribute("aria-label", describe(layer, head));
      pattern(zoom, tokens, layers[layer][head], true);
    }
    // In words: where the last token looks most.
    function describe(layer, head) {
      const last = layers[layer][head].at(-1);
      const most = last.indexOf(Math.max(...last));
      return `Attention of head ${layer}.${head}: the last token attends most to position ${most} (${tokens[most]}), ${Math.round(100 * last[most])} %`;
    }
    function showLayer(layer) {
      const buttons = Object.keys(layers[layer]).map((head) => {
        const thumb = element("div", { class: "thumb" });
        const button = element("button", { type: "button", "aria-pressed": "false", title: describe(layer, head) }, thumb, `${layer}.${head}`);
        button.addEventListener("click", () => showHead(layer, head, button));
        return [button, thumb, head];
      });
      heads.replaceChildren(...buttons.map(([button]) => button));
      if (buttons.length) showHead(layer, buttons[0][2], buttons[0][0]);
      drawThumbs(layer, buttons);
    }
    // One after the other: of long prompts each takes a second, and the page is being read.
    function drawThumbs(layer, [first, ...rest]) {
      if (!first || !heads.contains(first[0])) return;
      pattern(first[1], tokens, layers[layer][first[2]], false);
      setTimeout(() => drawThumbs(layer, rest), 0);
    }
    showLayer(choice.value);
  }

  return { start: () => document.querySelectorAll("[data-attention]").forEach(draw) };
})();
