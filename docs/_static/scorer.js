// How the documentation's search orders what it finds: as Sphinx does, with the pages for who changes handgrad last.
var internal = /^(architecture|changelog|contributing|decisions|security|how-to\/add-|reference\/)/;

var Scorer = {
  score: ([docname, , , , score]) => (internal.test(docname) ? score / 20 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
