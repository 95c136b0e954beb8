// Filters over tables and cards: words, verdicts, places, and only what differs.
P.startTables = () => P.all("[data-filters]").forEach((box) => {
  const target = P.$(`[data-filtered="${CSS.escape(box.dataset.filters)}"]`);
  if (!target) return;
  box.hidden = false;
  const rows = P.all("tbody > tr, article", target), texts = rows.map((row) => row.textContent.toLowerCase());
  const words = P.$("[data-words]", box), where = P.$("[data-where]", box), varied = P.$("[data-varied]", box);
  const shown = P.$(".shown", box), what = shown.textContent.split(" ").at(-1) || "";
  const apply = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const boxes = P.all("[data-verdict]", box), verdicts = new Set(boxes.filter((b) => b.checked).map((b) => b.dataset.verdict));
    let count = 0;
    rows.forEach((row, i) => {
      const isIn = wanted.every((word) => texts[i].includes(word)) && (!boxes.length || verdicts.has(row.dataset.verdict))
        && (!where?.value || row.dataset.where === where.value) && (!varied?.checked || "isVaried" in row.dataset);
      row.hidden = !isIn;
      count += isIn;
    });
    shown.textContent = `${count} of ${rows.length} ${what || "fields"}`;
  };
  box.addEventListener("input", apply);
  box.addEventListener("change", apply);
  apply();
});
