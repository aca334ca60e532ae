// The theme is chosen before anything is drawn. Without a choice it is that of the system.
(function () {
  const chosen = localStorage.getItem("theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
})();
