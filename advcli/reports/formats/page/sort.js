"use strict";
// A click on a header sorts the table by that column, another click turns the order; fields without a number go last both ways.
for (const table of document.querySelectorAll("table")) {
  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, column) => {
    header.querySelector("button").addEventListener("click", () => {
      const direction = header.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      const key = (row) => {
        const field = row.cells[column];
        return "value" in field.dataset ? parseFloat(field.dataset.value) : field.textContent;
      };
      const rows = [...table.tBodies[0].rows].map((row) => [key(row), row]);
      rows.sort(([a], [b]) => {
        if (typeof a === "string" || typeof b === "string") return direction * String(a).localeCompare(String(b), undefined, { numeric: true });
        if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
        return direction * (a < b ? -1 : a > b ? 1 : 0);
      });
      headers.forEach((other) => other.removeAttribute("aria-sort"));
      header.setAttribute("aria-sort", direction === 1 ? "ascending" : "descending");
      table.tBodies[0].append(...rows.map(([, row]) => row));
    });
  });
}
