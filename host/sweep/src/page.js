document.querySelectorAll("button[data-rate]").forEach((button) => {
  button.addEventListener("click", () => {
    const shown = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(shown));
    const group = button.closest("section").querySelector(`g[data-rate="${button.dataset.rate}"]`);
    group.style.display = shown ? "" : "none";
  });
});
