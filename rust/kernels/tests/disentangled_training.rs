//! Disentangled attention that can be differentiated, on every instruction set, against its formulas in float64, one pair of
//! a query and a key at a time.

mod common;

use common::{Random, matrix, wide};
use wordpiece_kernels::disentangled::{RelativePositions, RelativeScores, RelativeTerms};
use wordpiece_kernels::training::*;
use wordpiece_kernels::{InstructionSet, Matrix, PANEL, Row, panels};
use wordpiece_parallel::testing::{instruction_sets, skips_exhaustive_test};

/// A task of some sequences, and the terms that its scores have.
struct Case {
    heads: usize,
    size: usize,
    /// The positions of each sequence's tokens, and how many may be attended to.
    sequences: Vec<(Vec<u32>, usize)>,
    relative: RelativePositions,
    terms: [bool; 2],
    rate: f64,
}

/// What is computed: the context, the gradients of queries, keys and values, each [rows, H], and the gradients of Kʳ
/// and Qʳ [2K, H].
#[derive(Default)]
struct Found {
    context: Vec<f64>,
    dqkv: [Vec<f64>; 3],
    dterms: [Vec<f64>; 2],
}

/// What is given, in the same shapes, and the gradient of the context.
struct Given {
    qkv: [Vec<f32>; 3],
    tables: [Vec<f32>; 2],
    dcontext: Vec<f32>,
}

impl Case {
    fn rows(&self) -> usize {
        self.sequences.iter().map(|(positions, _)| positions.len()).sum()
    }

    fn hidden(&self) -> usize {
        self.heads * self.size
    }

    fn count(&self) -> usize {
        1 + self.terms.iter().filter(|there| **there).count()
    }

    fn given(&self) -> Given {
        let mut random = Random((self.rows() * 10 + self.size) as u64);
        let (n, table) = (self.rows() * self.hidden(), 2 * self.relative.span * self.hidden());
        Given {
            qkv: [(); 3].map(|()| random.numbers(n)),
            tables: [(); 2].map(|()| random.numbers(table)),
            dcontext: random.numbers(n),
        }
    }

    fn mask(&self) -> Option<Mask> {
        Dropout { seed: 5, step: 6, micro_batch: 7 }.at(Site::AttentionWeights, 2, self.rate)
    }

    /// Returns the sequences as the kernels have them; each has another number in the batch.
    fn each_sequence(&self) -> Vec<Rows> {
        let mut start = 0;
        let numbered = self.sequences.iter().enumerate();
        let of = |(number, (positions, keys)): (usize, &(Vec<u32>, usize))| {
            let tokens = start..start + positions.len();
            start = tokens.end;
            Rows { tokens, keys: *keys, number: 3 + number }
        };
        numbered.map(of).collect()
    }

    /// Follows the definition.
    fn expected(&self, given: &Given) -> Found {
        let (hidden, mask) = (self.hidden(), self.mask());
        let [q, k, v] = given.qkv.each_ref().map(|x| wide(x));
        let tables = given.tables.each_ref().map(|x| wide(x));
        let dc = wide(&given.dcontext);
        let scale = 1.0 / ((self.size * self.count()) as f64).sqrt();
        let mut to = Found {
            context: vec![0.0; q.len()],
            dqkv: [(); 3].map(|()| vec![0.0; q.len()]),
            dterms: [(); 2].map(|()| vec![0.0; tables[0].len()]),
        };
        for (rows, (positions, _)) in self.each_sequence().iter().zip(&self.sequences) {
            let n = rows.tokens.len();
            for head in 0..self.heads {
                let at = |row: usize| (rows.tokens.start + row) * hidden + head * self.size;
                let product = |x: &[f64], i: usize, y: &[f64], j: usize| -> f64 {
                    (0..self.size).map(|column| x[i + column] * y[j + column]).sum()
                };
                for i in 0..n {
                    let visible = i < rows.keys;
                    let place = |j: usize| {
                        let distance = i64::from(positions[i]) - i64::from(positions[j]);
                        self.relative.row(distance) * hidden + head * self.size
                    };
                    let score = |j: usize| {
                        let mut sum = product(&q, at(i), &k, at(j));
                        sum += if self.terms[0] { product(&q, at(i), &tables[0], place(j)) } else { 0.0 };
                        sum += if self.terms[1] { product(&k, at(j), &tables[1], place(j)) } else { 0.0 };
                        sum * scale
                    };
                    // A masked query sees all tokens alike.
                    let seen = if visible { rows.keys } else { n };
                    let scores: Vec<f64> = (0..seen).map(|j| if visible { score(j) } else { 0.0 }).collect();
                    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let e: Vec<f64> = scores.iter().map(|x| (x - most).exp()).collect();
                    let p: Vec<f64> = e.iter().map(|x| x / e.iter().sum::<f64>()).collect();
                    let kept = |j: usize| {
                        mask.map_or(1.0, |mask| {
                            f64::from(mask.columns(mask.state(rows.number, i), (head << 20) | j).0[0])
                        })
                    };
                    let dp: Vec<f64> = (0..seen).map(|j| kept(j) * product(&dc, at(i), &v, at(j))).collect();
                    let mean: f64 = p.iter().zip(&dp).map(|(p, dp)| p * dp).sum();
                    for j in 0..seen {
                        let weight = p[j] * kept(j);
                        let ds = if visible { scale * p[j] * (dp[j] - mean) } else { 0.0 };
                        for column in 0..self.size {
                            let (i, j, r) = (at(i) + column, at(j) + column, place(j) + column);
                            to.context[i] += weight * v[j];
                            to.dqkv[2][j] += weight * dc[i];
                            to.dqkv[0][i] += ds * k[j];
                            to.dqkv[1][j] += ds * q[i];
                            if self.terms[0] {
                                to.dqkv[0][i] += ds * tables[0][r];
                                to.dterms[0][r] += ds * q[i];
                            }
                            if self.terms[1] {
                                to.dqkv[1][j] += ds * tables[1][r];
                                to.dterms[1][r] += ds * k[j];
                            }
                        }
                    }
                }
            }
        }
        to
    }

    fn found(&self, given: &Given, set: InstructionSet) -> Found {
        let (all, hidden, span) = (self.rows(), self.hidden(), self.relative.span);
        let width = panels(hidden);
        let mut qkv = Matrix::default();
        qkv.reshape(all, 3 * width * PANEL).data_mut().fill(Row::ZERO);
        for (part, x) in given.qkv.iter().enumerate() {
            let from = matrix(x, all, hidden);
            qkv.data_mut()[part * width * all..(part + 1) * width * all].copy_from_slice(from.data());
        }
        // The kernels have relative positions in the opposite order.
        let reversed = given.tables.each_ref().map(|table| {
            let numbers: Vec<f32> = table.chunks(hidden).rev().flatten().copied().collect();
            matrix(&numbers, 2 * span, hidden)
        });
        let tables = [0, 1].map(|term| self.terms[term].then(|| reversed[term].view()));
        let packed = RelativeTerms::of_rows(set, tables, self.heads, self.size, false);
        let most = self.sequences.iter().flat_map(|(positions, _)| positions).max().map_or(0, |most| *most as usize);
        let distances = -(most as i64)..=most as i64;
        let rows: Vec<u32> = distances.map(|distance| (2 * span - 1 - self.relative.row(-distance)) as u32).collect();
        let scores = RelativeScores {
            terms: self.terms.contains(&true).then_some(&packed),
            rows: &rows,
            max_distance: most,
            count: self.count(),
        };
        let heads = Heads {
            count: self.heads,
            size: self.size,
            bias: None,
            relative: Some(RelativeHeads { scores, tables }),
            window: None,
            mask: self.mask(),
        };
        let (mut context, mut dqkv) = (Matrix::default(), Matrix::default());
        context.reshape(all, hidden).data_mut().fill(Row::ZERO);
        dqkv.reshape(all, 3 * width * PANEL).data_mut().fill(Row::ZERO);
        let dcontext = matrix(&given.dcontext, all, hidden);
        let mut statistics = vec![[0.0; 2]; self.heads * all];
        let mut scratch = AttentionScratch::default();
        let of_head = panels(self.size) * 2 * span;
        let mut sums = PositionSums {
            terms: self.terms.map(|there| vec![Row::ZERO; if there { self.heads * of_head } else { 0 }]),
            ..PositionSums::default()
        };
        for (rows, (positions, _)) in self.each_sequence().iter().zip(&self.sequences) {
            let to = &mut context.view_mut();
            let sequence = SequenceHeads { heads, rows, positions, qkv: qkv.view() };
            attend(set, sequence, to, &mut statistics, &mut scratch);
        }
        for (rows, (positions, _)) in self.each_sequence().iter().zip(&self.sequences) {
            let (to, of_context) = (&mut dqkv.view_mut(), [context.view(), dcontext.view()]);
            let sequence = SequenceHeads { heads, rows, positions, qkv: qkv.view() };
            attend_backward(set, sequence, &statistics, of_context, to, &mut sums, &mut scratch);
        }
        let scale = 1.0 / ((self.size * self.count()) as f64).sqrt();
        let number = |data: &[Row], rows: usize, row: usize, column: usize| {
            f64::from(data[column / PANEL * rows + row].0[column % PANEL])
        };
        let of_rows = |data: &[Row]| -> Vec<f64> {
            (0..all).flat_map(|row| (0..hidden).map(move |column| number(data, all, row, column))).collect()
        };
        let dterms = sums.terms.each_ref().map(|sums| {
            let mut to = vec![0.0; 2 * span * hidden];
            for (i, to) in to.iter_mut().enumerate().filter(|_| !sums.is_empty()) {
                let (row, column) = (2 * span - 1 - i / hidden, i % hidden);
                let head = column / self.size;
                *to = scale * number(&sums[head * of_head..][..of_head], 2 * span, row, column % self.size);
            }
            to
        });
        Found {
            context: of_rows(context.data()),
            dqkv: [0, 1, 2].map(|part| of_rows(&dqkv.data()[part * width * all..(part + 1) * width * all])),
            dterms,
        }
    }
}

fn assert_close(name: &str, set: InstructionSet, case: usize, found: &[f64], expected: &[f64]) {
    let largest = expected.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
    assert_eq!(found.len(), expected.len());
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let distance = (found - expected).abs();
        assert!(distance < 5e-6 * largest, "{}: case {case}: {name}[{i}] is {found}, not {expected}", set.name());
    }
}

/// Sequences with gaps, masked tokens, and more queries than a block; buckets, distances of their own, and few of both.
fn cases() -> Vec<Case> {
    let gaps = |keys: u32, masked: u32| -> (Vec<u32>, usize) {
        // After a stretch of masked positions each third position is masked as well.
        let seen: Vec<u32> = (0..).map(|i| 4 + i).filter(|i| i % 3 != 0).take(keys as usize).collect();
        let others = (0..).filter(|i| !seen.contains(i)).take(masked as usize);
        (seen.iter().copied().chain(others).collect(), keys as usize)
    };
    let plain = |length: u32| ((0..length).collect::<Vec<_>>(), length as usize);
    let few = skips_exhaustive_test("disentangled attention") || cfg!(miri);
    let sequences = if few {
        vec![vec![gaps(5, 3), plain(34)]]
    } else {
        vec![vec![plain(1)], vec![gaps(5, 3), plain(34)], vec![plain(100), gaps(40, 20), plain(2)]]
    };
    // The last has more buckets than distances for some of them, so that distances leave buckets out.
    let kinds = [(16, Some(64)), (4, Some(40)), (200, None), (3, None), (96, Some(100))];
    let mut cases = Vec::new();
    for sequences in sequences {
        for (span, longest) in kinds {
            for terms in [[true, true], [true, false], [false, true], [false, false]] {
                for (heads, size, rate) in [(2, 32, 0.0), (3, 8, 0.3), (1, 64, 0.25)] {
                    let relative = RelativePositions { span, longest };
                    cases.push(Case { heads, size, sequences: sequences.clone(), relative, terms, rate });
                }
            }
        }
    }
    cases
}

#[test]
fn context_and_gradients_equal_their_formulas() {
    for (number, case) in cases().iter().enumerate() {
        let given = case.given();
        let expected = case.expected(&given);
        for set in instruction_sets() {
            let found = case.found(&given, set);
            assert_close("context", set, number, &found.context, &expected.context);
            for (name, part) in [("dq", 0), ("dk", 1), ("dv", 2)] {
                assert_close(name, set, number, &found.dqkv[part], &expected.dqkv[part]);
            }
            assert_close("dKʳ", set, number, &found.dterms[0], &expected.dterms[0]);
            assert_close("dQʳ", set, number, &found.dterms[1], &expected.dterms[1]);
        }
    }
}
