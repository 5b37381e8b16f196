/** The page: reads its record, and joins the parts. */

import { theme } from "./dom.js";
import { drawNetwork } from "./drawing.js";
import { startLab } from "./lab.js";
import { fillJacobians, stepThrough } from "./program.js";
import { prepareSetup, takeUp } from "./setup.js";
import { moveThrough } from "./training.js";
import { showViews } from "./views.js";

document.documentElement.dataset.script = ""; // the style shows what needs this script
const record = JSON.parse(document.getElementById("record").textContent);
record.setup = prepareSetup(record);
record.colours = record.numbers = 0; // count changes of the theme and of the numbers: what was drawn before is drawn again
record.stamp = () => `${record.colours} ${record.numbers}`;
record.pixels = pixelsOf(record.ledger.x);

let drawing = { move: () => {}, renew: () => {} };
const program = stepThrough(record, (number) => drawing.move(number));
record.lab = startLab(record, (what) => {
  program.again(what);
  if (what === "all" || what % 3 === 1) drawing.renew();
});
const place = document.getElementById("drawing");
if (place) drawing = drawNetwork(place, record, (number) => program.choose(number));
showViews(record, program);
const narrow = matchMedia("(max-width: 1280px)");
if (narrow.matches && !record.setup?.reopened?.view) document.getElementById("drawing-pane")?.removeAttribute("open");

measureHead();
let width = innerWidth;
addEventListener("resize", () => {
  measureHead();
  if (innerWidth === width) return; // the bars of a phone's browser
  width = innerWidth;
  record.numbers += 1; // pictures and tables have as much room as there is now
  program.again();
});
const { reopened } = record.setup ?? {};
const linked = !reopened && location.hash.match(/^#line-(\d+)$/);
const same = record.lines.findLastIndex((line) => line.target === reopened?.target);
const opening = same >= 0 ? same : Number(linked?.[1] ?? record.opening);
program.choose(opening);
addEventListener("load", () => requestAnimationFrame(() => {
  measureHead();
  if (reopened) {
    program.choose(opening); // in panes of the size that they have now
    takeUp(record.setup);
  }
  if (!linked) return;
  scrollTo(0, 0); // the line is in its list: the browser has scrolled the whole page to it
  program.choose(Number(linked[1]));
}));
const drawTraining = moveThrough(record);
for (const part of document.querySelectorAll("#jacobians details")) {
  part.addEventListener("toggle", () => part.open && fillJacobians(record, part), { once: true });
}
for (const part of document.querySelectorAll("details")) {
  part.addEventListener("toggle", () => part.open && part.id === "drawing-pane" && program.again());
}

/** The letter and the size of the axis of an input that may be an image. */
function pixelsOf(entry) {
  return entry?.sizes.length === 2 ? { letter: entry.axes[1], count: entry.sizes[1] } : null;
}

/** How much of the window is above the panes, and how much of them is the training's. */
function measureHead() {
  const panes = document.querySelector(".panes");
  const above = panes.getBoundingClientRect().top + scrollY;
  const live = document.getElementById("live");
  const { style } = document.documentElement;
  style.setProperty("--above", `${Math.ceil(above) + 12}px`);
  const seen = Math.min(document.getElementById("cards").clientHeight, innerHeight);
  style.setProperty("--half", `${Math.floor(seen / 2)}px`); // of what is seen of a card: an entry's panel
  if (live) style.setProperty("--live", `${Math.ceil(live.offsetHeight) + 16}px`); // and the gap below it
}

/** In a notebook's frame a link would lead to the notebook's own address. */
if (location.protocol === "about:") {
  for (const link of document.querySelectorAll('a[href^="#"]:not(.jump, .line)')) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      document.querySelector(link.getAttribute("href")).scrollIntoView();
    });
  }
}

const button = document.getElementById("theme");
function nameTheme() {
  button.textContent = theme() === "dark" ? "Light" : "Dark";
  button.setAttribute("aria-label", `Use ${button.textContent.toLowerCase()} colours`);
}
function changed() {
  nameTheme();
  record.colours += 1;
  program.again();
  drawTraining();
  for (const part of document.querySelectorAll("#jacobians details[open]")) fillJacobians(record, part);
}
button.addEventListener("click", () => {
  document.documentElement.dataset.theme = theme() === "dark" ? "light" : "dark";
  changed();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => button.isConnected && changed()); // another page may be in place
nameTheme();
document.documentElement.dataset.ready = performance.now().toFixed(0);
