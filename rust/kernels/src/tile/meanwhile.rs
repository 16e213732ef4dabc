//! What vectors do while tile registers multiply.

/// What is done with vectors while tile registers multiply: both go on at the same time, if they take turns.
pub trait Meanwhile {
    /// Does one of `steps` equal parts of what is left. Implementations are `inline(always)`, as [`Kernel::run`].
    ///
    /// [`Kernel::run`]: crate::arch::Kernel::run
    fn do_part(&mut self, steps: usize);
}
