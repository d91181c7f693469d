() => {
  const main = document.querySelector("#main");
  const running = document.querySelector("#running");
  (window.surgeryRuns ??= new Set()).add($NAME);
  main.dataset.operating = "true";
  // Gradio says its progress in English; what it says of the queue and of the time is read from there.
  const follow = () => {
    const line = running.querySelector(".badge");
    const said = running.querySelector(".progress-text")?.textContent ?? "";
    const [place] = said.match(/\d+\/\d+(?=\s*\|)/) ?? [];
    const [, seconds] = said.match(/([\d.]+)(?:\/[\d.]+)?s/) ?? [];
    const parts = [place && `${line.dataset.queue} ${place}`, seconds && `${seconds} s`];
    line.dataset.progress = parts.filter(Boolean).join(" · ");
    if (main.dataset.operating) setTimeout(follow, 200);
  };
  follow();
}
