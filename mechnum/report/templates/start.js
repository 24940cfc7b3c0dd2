// The contents mark the section that is being read.
function followReading() {
  const links = new Map([...document.querySelectorAll(".contents a")].map((link) => [link.hash.slice(1), link]));
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      links.forEach((link) => link.removeAttribute("aria-current"));
      links.get(entry.target.closest("section").id)?.setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-10% 0px -80% 0px" });
  // A part is read where its own header is; below that, its sections are.
  const read = "main > section:not(.part), .part > header, .part > section";
  document.querySelectorAll(read).forEach((place) => observer.observe(place));
}

// What draws figures comes compressed, which halves the page.
async function unpackLibraries() {
  for (const carried of document.querySelectorAll("script.library")) {
    const bytes = Uint8Array.from(atob(carried.textContent), (character) => character.charCodeAt(0));
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    carried.replaceWith(element("script", {}, await new Response(unpacked).text()));
  }
}

Theme.start();
Files.start();
OperandMaps.start();
Tables.start();
followReading();
unpackLibraries().then(() => {
  AttentionView.start();
  Figures.start();
});
