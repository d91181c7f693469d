() => {
  const name = $NAME;   // of what came to its end; null for all
  if (name) window.surgeryRuns?.delete(name);
  else window.surgeryRuns?.clear();
  if (!window.surgeryRuns?.size) delete document.querySelector("#main").dataset.operating;
}
