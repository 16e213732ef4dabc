//! What DeBERTa computes besides the layers of BERT: relative positions, what masked tokens attend to, the convolution.
//!
//! The relative position of each distance depends on the model alone. It is computed up to the farthest distance that has
//! occurred, and kept: a batch that is no longer than one before finds it there.
//!
//! Masked tokens within a row are part of the computation in DeBERTa: their embeddings are 0, and as queries they weigh all
//! keys of their row equally, masked ones too, as the released code does.

use super::disentangled_scratch::DisentangledScratch;
use super::forward::{EncoderScratch, RunBody, Task};
use super::weights::Packed;
use crate::gemm::{Epilogue, linear};
use crate::matrix::{PANEL, Row, add_columns, panels};
use crate::neighbours::Neighbours;
use crate::plan::{Attention, Convolution, Residual};
use crate::tile::tiles;

impl Task<'_, '_> {
    /// Finds the relative positions of all distances.
    pub(super) fn find_relative_rows(&mut self) {
        let Some(relative) = &self.encoder.relative_positions else { return };
        let EncoderScratch { positions, disentangled, .. } = &mut *self.scratch;
        let farthest = positions.iter().max().map_or(0, |position| *position as usize);
        if farthest > disentangled.max_distance || disentangled.relative_rows.is_empty() {
            relative.fill(farthest, &mut disentangled.relative_rows);
            disentangled.max_distance = farthest;
        }
    }

    /// Sets the hidden states of masked tokens to 0.
    pub(super) fn clear_masked(&mut self) {
        let mut start = 0;
        let mut x = self.scratch.x.view_mut();
        for sequence in &self.sequences {
            for panel in x.rows(start + sequence.keys..start + sequence.tokens.len()).each_panel() {
                panel.fill(Row::ZERO);
            }
            start += sequence.tokens.len();
        }
    }

    /// Computes the context of masked tokens in layer number `index`: they see no token, so that their scores are equal,
    /// and the context is the mean of the values of all positions of the padded row.
    ///
    /// The hidden states of all masked tokens of a row are the same, so one of them stands for those that are not computed.
    pub(super) fn attend_to_all(&mut self, index: usize, attention: &Attention<Packed>, size: usize) {
        let columns = attention.heads * size;
        let EncoderScratch { qkv, context, positions, .. } = &mut *self.scratch;
        let values = qkv.view().panels(2 * panels(columns)..3 * panels(columns));
        let mut start = 0;
        for sequence in &mut self.sequences {
            let (visible, end) = (start + sequence.keys, start + sequence.tokens.len());
            let length = sequence.length;
            let share = 1.0 / length as f32;
            for panel in 0..if visible < end { panels(columns) } else { 0 } {
                let values = values.panel(panel);
                let mut sums = values[visible].0.map(|x| x * (length - sequence.keys) as f32);
                for value in &values[start..visible] {
                    for (sum, x) in sums.iter_mut().zip(value.0) {
                        *sum += x;
                    }
                }
                context.view_mut().panel(panel)[visible..end].fill(Row(sums.map(|sum| sum * share)));
            }
            if let Some(weights) = sequence.attentions.get_mut(index) {
                for head in weights.chunks_mut(length * length) {
                    for position in &positions[visible..end] {
                        head[*position as usize * length..][..length].fill(share);
                    }
                }
            }
            start = end;
        }
    }
}

impl RunBody for Convolution<Packed> {
    /// Computes activation(convolution(x)), where x is 0 beyond the ends of a sequence and for masked tokens.
    fn prepare(&self, task: &mut Task<'_, '_>) {
        let hidden = task.encoder.hidden;
        let width = panels(hidden);
        let EncoderScratch { x, positions, converted, disentangled, .. } = &mut *task.scratch;
        let DisentangledScratch { neighbours, convolved, .. } = disentangled;
        let x = x.view();
        convolved.reshape(task.rows, hidden);
        let mut start = 0;
        for sequence in &task.sequences {
            let all = start..start + sequence.tokens.len();
            let visible = &positions[start..start + sequence.keys];
            let of_sequence = Neighbours { width: self.width, columns: hidden, visible };
            for part in tiles(all.len(), task.together.feed_forward) {
                let mut to = neighbours.reshape(part.len(), self.width * width * PANEL).view_mut();
                let positions = &positions[start + part.start..start + part.end];
                of_sequence.gather(x.rows(start..start + sequence.keys), positions, &mut to);
                let mut out = convolved.view_mut();
                let out = out.rows(start + part.start..start + part.end);
                let epilogue = Epilogue::Activation(self.activation);
                linear(task.execution, neighbours.view(), &self.dense, epilogue, out, converted);
            }
            start = all.end;
        }
    }

    /// Computes x = after(x + the output of the convolution), which was computed from the input of the layer.
    fn run(&self, task: &mut Task<'_, '_>, _: usize, residual: &Residual<Packed>) {
        let (hidden, instruction_set) = (task.encoder.hidden, task.execution.instruction_set);
        let EncoderScratch { x, disentangled, .. } = &mut *task.scratch;
        // The activation of the padding columns need not be 0.
        add_columns(disentangled.convolved.view(), x.view_mut(), hidden);
        if let Some(norm) = &residual.after {
            norm.apply(instruction_set, &mut x.view_mut());
        }
    }
}
