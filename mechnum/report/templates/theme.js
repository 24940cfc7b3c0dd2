"use strict";
// Light and dark: the reader's system decides until the reader does.
const Theme = (() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const listeners = [];
  const key = "mechnum-theme";

  // Storage can be forbidden for files opened from disk; the choice then lasts as long as the page.
  function stored() {
    try { return localStorage.getItem(key); } catch { return null; }
  }
  function store(mode) {
    try { localStorage.setItem(key, mode); } catch { /* see above */ }
  }
  function mode() {
    return root.dataset.theme || (system.matches ? "dark" : "light");
  }
  function tell() {
    const button = document.getElementById("theme");
    button.setAttribute("aria-pressed", String(mode() === "dark"));
    listeners.forEach((listener) => listener(mode()));
  }
  function start() {
    const choice = stored();
    if (choice === "light" || choice === "dark") root.dataset.theme = choice;
    document.getElementById("theme").addEventListener("click", () => {
      root.dataset.theme = mode() === "dark" ? "light" : "dark";
      store(root.dataset.theme);
      tell();
    });
    system.addEventListener("change", tell);
    tell();
  }
  return { start, mode, onChange: (listener) => listeners.push(listener) };
})();

function readJson(id) {
  return JSON.parse(document.getElementById(id).textContent);
}

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

// Screen readers hear what a button did.
function announce(text) {
  document.getElementById("status").textContent = text;
}
