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

Theme.start();
Files.start();
OperandMaps.start();
Tables.start();
followReading();
AttentionView.start();
Figures.start();
