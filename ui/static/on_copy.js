async (lang) => {
  const all = $WORDS;
  const words = all[lang] ?? all.en;
  const throughTextarea = () => {   // no clipboard without https
    const area = document.createElement("textarea");
    area.value = location.href;
    area.style.position = "fixed";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  };
  let done;
  try {
    await navigator.clipboard.writeText(location.href);
    done = true;
  } catch {
    done = throughTextarea();
  }
  return `<p role="status">${done ? words.done : words.failed}</p>`;
}
