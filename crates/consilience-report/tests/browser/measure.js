// Measures a page: what reaches over the edge, labels on labels, words that are hard to see, what a keyboard cannot reach.
(() => {
  const found = [];
  const name = e => e.tagName + (e.id ? "#" + e.id : "") + " " + (e.textContent || "").trim().slice(0, 40);
  const shown = e => e.checkVisibility ? e.checkVisibility() : true;
  const overflow = when => {
    const root = document.documentElement;
    if (root.scrollWidth > root.clientWidth) found.push(`${when}: the page is ${root.scrollWidth} wide in ${root.clientWidth}`);
  };
  overflow("folded");
  for (const d of document.querySelectorAll("details")) d.open = true;
  overflow("unfolded");
  for (const svg of document.querySelectorAll("svg")) {
    if (!shown(svg)) continue;
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].map(t => [t, t.getBoundingClientRect()]);
    texts.forEach(([t, a], i) => {
      if (parseFloat(getComputedStyle(t).fontSize) * frame.width / svg.viewBox.baseVal.width < 10.5) found.push("too small to read: " + name(t));
      if (a.left < frame.left - 2 || a.right > frame.right + 2 || a.bottom > frame.bottom + 2) found.push("over the edge of its figure: " + name(t));
      for (const [u, b] of texts.slice(i + 1)) {
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > 1 && down > 3) found.push(`in ${svg.getAttribute("aria-labelledby")}: "${t.textContent}" and "${u.textContent}" overlap`);
      }
    });
  }
  const light = c => {
    const v = c.match(/[\d.]+/g).map(Number);
    if (v.length > 3 && v[3] === 0) return null;
    const l = v.slice(0, 3).map(x => (x /= 255) <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * l[0] + 0.7152 * l[1] + 0.0722 * l[2];
  };
  const ground = e => {
    for (; e; e = e.parentElement) {
      const l = light(getComputedStyle(e).backgroundColor);
      if (l !== null) return l;
    }
    return 1;
  };
  const poor = new Set();
  for (const e of document.body.querySelectorAll("*")) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    if (!own || !shown(e) || ["title", "desc"].includes(e.tagName)) continue;
    const style = getComputedStyle(e);
    const a = light(e.tagName === "text" ? style.fill : style.color), b = ground(e);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.add(`contrast ${ratio.toFixed(1)}: ${e.tagName}.${e.getAttribute("class")}`);
  }
  found.push(...poor);
  for (const e of document.querySelectorAll(".scroll")) if (e.tabIndex < 0) found.push("not to be reached by keyboard: " + name(e));
  if (document.querySelectorAll("h1").length !== 1) found.push("not one h1");
  if (document.querySelector("script")) found.push("a script");
  const ids = [...document.querySelectorAll("[id]")].map(e => e.id);
  if (new Set(ids).size !== ids.length) found.push("an id twice");
  for (const a of document.querySelectorAll("a[href^='#']")) if (!document.getElementById(a.hash.slice(1))) found.push("a link to nothing: " + a.hash);
  return found;
})()
