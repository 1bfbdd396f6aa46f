// What the theme leaves out for those who read with a keyboard or a screen reader.
addEventListener("DOMContentLoaded", () => {
  const name = (selector, attribute, value) =>
    document.querySelectorAll(selector).forEach((element) => element.setAttribute(attribute, value));
  name(".sidebar-drawer", "aria-label", "All pages");
  name(".toc-drawer", "aria-label", "This page");
  name(".caption[role=heading]", "aria-level", "2");
  // The empty corner of a table is the head of nothing.
  name("th:empty, th:has(> p:only-child:empty)", "role", "cell");
  // What scrolls sideways can be reached by the Tab key, and nothing else.
  const boxes = document.querySelectorAll("pre, .table-wrapper, .jp-OutputArea");
  const mark = () => boxes.forEach((box) => (box.tabIndex = box.scrollWidth > box.clientWidth ? 0 : -1));
  new ResizeObserver(mark).observe(document.documentElement);
});
