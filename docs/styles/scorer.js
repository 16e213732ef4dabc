// The search's usual scores, but for calls for other libraries: what this package does itself comes first.
var Scorer = {
  score: ([page, , , , score]) => (page.includes("integrations") ? score - 12 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
