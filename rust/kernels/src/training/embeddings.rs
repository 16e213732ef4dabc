//! The gradient of a lookup, of rows of a table by ids: row i gets the sum of dy over the tokens with id i.

/// Adds dy [tokens, columns] to the rows `ids` of a table [rows, columns], in the order of the tokens; the row `without` gets
/// nothing (`padding_idx` in torch).
///
/// # Panics
///
/// If an id is outside the table.
///
/// # Examples
///
/// ```
/// let mut table = [0.0; 3];
/// wordpiece_kernels::training::add_to_table(&mut table, &[2, 0, 2], Some(0), &[1.0, 2.0, 3.0], 1);
/// assert_eq!(table, [0.0, 0.0, 4.0]);
/// ```
pub fn add_to_table(table: &mut [f32], ids: &[u32], without: Option<usize>, dy: &[f32], columns: usize) {
    for (id, dy) in ids.iter().zip(dy.chunks_exact(columns)) {
        let row = *id as usize;
        if Some(row) != without {
            table[row * columns..][..columns].iter_mut().zip(dy).for_each(|(to, x)| *to += x);
        }
    }
}
