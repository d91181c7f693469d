(said) => {
  // A new result is a place to come back to; another view of it is not.
  const [kind, token] = said.split(" ");
  const url = new URL(location.href);
  if (!token || url.searchParams.get("s") === token) return;
  url.searchParams.set("s", token);
  history[kind === "push" ? "pushState" : "replaceState"]({ surgery: true }, "", url);
}
