// Light or dark: as the system, or as the reader chose before. Drawings follow by `redrawAll`.

function setUpTheme() {
  const button = document.getElementById("theme");
  const themes = ["auto", "light", "dark"];
  const show = (theme) => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
    redrawAll();
  };
  let current = "auto";
  try {
    current = localStorage.getItem("benchwright-theme") ?? "auto";
  } catch {} // a browser may forbid it to local files
  if (!themes.includes(current)) current = "auto";
  show(current);
  button.onclick = () => {
    current = themes[(themes.indexOf(current) + 1) % themes.length];
    try {
      localStorage.setItem("benchwright-theme", current);
    } catch {}
    show(current);
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
  const paint = (theme) => { // paper is white
    const chosen = button.textContent;
    show(theme);
    button.textContent = chosen;
  };
  addEventListener("beforeprint", () => paint("light"));
  addEventListener("afterprint", () => paint(current));
}
