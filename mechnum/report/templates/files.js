// Files that readers save: made from tables, or carried by the page for other programs.
const Files = (() => {
  function save(name, type, text) {
    const address = URL.createObjectURL(new Blob([text], { type }));
    const link = element("a", { href: address, download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
    announce(`${name} saved`);
  }

  function start() {
    document.querySelectorAll("button[data-file]").forEach((button) => {
      const { file, name } = button.dataset;
      const type = name.endsWith(".json") ? "application/json" : "application/xml";
      button.addEventListener("click", () => save(name, type, readJson(file)));
    });
  }
  return { save, start };
})();
