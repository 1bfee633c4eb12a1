// The history page draws nothing by script: only the theme is chosen here.

document.documentElement.classList.add("scripted");
const redrawAll = () => {};
setUpTheme();
