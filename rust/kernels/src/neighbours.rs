//! The neighbours of tokens in their sequence, side by side: the inputs of a convolution as a dense layer.

use crate::matrix::{Row, View, ViewMut, panels};

/// Which tokens are neighbours.
#[derive(Clone, Copy)]
pub(crate) struct Neighbours<'a> {
    /// How many neighbours a token has, itself included; an odd number.
    pub width: usize,
    /// The number of columns of a token.
    pub columns: usize,
    /// The positions of the visible tokens, in ascending order. Others, and those beyond the ends, are vectors of 0.
    pub visible: &'a [u32],
}

impl Neighbours<'_> {
    /// Returns which of the visible tokens is a neighbour of a position, counted from the one before it on.
    fn find(&self, position: u32, tap: usize) -> Option<usize> {
        let position = (position as usize + tap).checked_sub(self.width / 2)?;
        self.visible.binary_search(&(position as u32)).ok()
    }

    /// Writes the neighbours of tokens at some positions, each beginning at a panel; `x` are the visible tokens.
    pub(crate) fn gather(&self, x: View<'_>, positions: &[u32], to: &mut ViewMut<'_>) {
        let width = panels(self.columns);
        for (row, position) in positions.iter().enumerate() {
            for tap in 0..self.width {
                let found = self.find(*position, tap);
                for panel in 0..width {
                    to.panel(tap * width + panel)[row] = found.map_or(Row::ZERO, |found| x.panel(panel)[found]);
                }
            }
        }
    }

    /// Adds the gradients of the neighbours of tokens at some positions to the gradients of the visible tokens.
    pub(crate) fn scatter(&self, dneighbours: View<'_>, positions: &[u32], dx: &mut ViewMut<'_>) {
        let width = panels(self.columns);
        for (row, position) in positions.iter().enumerate() {
            for tap in 0..self.width {
                let Some(found) = self.find(*position, tap) else { continue };
                for panel in 0..width {
                    let from = dneighbours.panel(tap * width + panel)[row];
                    dx.panel(panel)[found].0.iter_mut().zip(from.0).for_each(|(to, x)| *to += x);
                }
            }
        }
    }
}
