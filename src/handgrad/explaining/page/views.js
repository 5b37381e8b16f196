/** What is seen below the training: the network's program as a drawing, its units, or its setup. */

import { element } from "./dom.js";
import { chooseEntry } from "./program.js";
import { setupForm } from "./setup.js";
import { drawUnits } from "./units.js";

/** Put the three views into the pane of the network, where the page has a setup; a button beside the training leads to it. */
export function showViews(record, program) {
  const { setup, lab } = record;
  const pane = document.getElementById("drawing-pane");
  if (!setup || !lab || !pane) return;
  const [drawing, key] = [document.getElementById("drawing"), pane.querySelector(".key")];
  const units = element("div", { id: "units", class: "scroll" });
  const form = element("div", { class: "scroll" }, setupForm(setup));
  pane.append(units, form);
  const parts = { Layers: [drawing, key], Units: [units], "Set up": [form] };
  const buttons = Object.keys(parts).map((name) => element("button", { type: "button", class: "quiet" }, name));
  pane.querySelector("summary").after(element("div", { class: "views", role: "group", "aria-label": "What is shown of the network" }, ...buttons));
  const drawn = () => {
    if (setup.view !== "Units" || !pane.open) return;
    drawUnits(lab.program, units, (name, unit) => chooseUnit(record, program, name, unit));
  };
  const show = (view) => {
    setup.view = view;
    Object.entries(parts).forEach(([name, nodes], k) => {
      buttons[k].setAttribute("aria-pressed", name === view);
      for (const node of nodes) node.hidden = name !== view;
    });
    drawn();
  };
  buttons.forEach((button) => button.addEventListener("click", () => show(button.textContent)));
  pane.addEventListener("toggle", drawn);
  lab.views.push(drawn);
  const open = element("button", { type: "button", class: "quiet", id: "open-setup" }, "Set up…");
  open.addEventListener("click", () => {
    pane.open = true;
    show("Set up");
    pane.scrollIntoView({ block: "nearest" });
    document.getElementById("data-set").focus({ preventScroll: true });
  });
  document.querySelector("#live .live-bar").append(open);
  const sharp = element("input", { type: "checkbox", id: "sharp" });
  sharp.checked = setup.chosen.sharp;
  sharp.addEventListener("change", () => {
    lab.program.sharp = setup.chosen.sharp = sharp.checked;
    lab.again();
  });
  document.getElementById("live-key").after(element("label", { class: "sharp" }, sharp, "discretise"));
  show(setup.reopened?.view ?? "Layers");
  if (setup.reopened?.theme) document.documentElement.dataset.theme = setup.reopened.theme;
}

/** Go to the line that makes a unit, and choose its first entry there; of an input, to the first line that reads it. */
function chooseUnit(record, program, name, unit) {
  const made = record.lines.findIndex((line) => line.target === name && line.phase === "forward");
  const number = made >= 0 ? made : record.lines.findIndex((line) => line.reads.includes(name));
  program.choose(number);
  chooseEntry(record, document.getElementById(`card-${number}`), name, unit);
}
