(place) => {
  // The exercise that is open is part of the address, so that a reload and a link come back to it.
  const url = new URL(location.href);
  if ((url.searchParams.get("workshop") ?? "") === place) return;
  place ? url.searchParams.set("workshop", place) : url.searchParams.delete("workshop");
  history.replaceState({ surgery: true }, "", url);
}
