//! Detection of SIMD instruction sets, and the capability tokens that prove it.
//!
//! A *capability token* is a small `Copy` type whose only constructor checks the CPU: a value of [`Avx2`] exists only in a
//! process whose CPU has AVX2. Code that needs the instructions accepts a token by value, and its `unsafe` blocks and calls
//! of `#[target_feature]` functions are sound because of it. Nothing here computes anything: each crate implements its own
//! trait of vector operations for the tokens.
//!
//! ```
//! # #[cfg(target_arch = "x86_64")] {
//! use wordpiece_parallel::instruction_set::Avx2;
//!
//! #[target_feature(enable = "avx2,fma")]
//! fn sum_with_avx2(x: &[f32]) -> f32 {
//!     x.iter().sum()
//! }
//!
//! fn sum(_token: Avx2, x: &[f32]) -> f32 {
//!     // SAFETY: an `Avx2` token exists only on CPUs with AVX2 and FMA.
//!     unsafe { sum_with_avx2(x) }
//! }
//!
//! if let Some(token) = Avx2::new() {
//!     assert_eq!(sum(token, &[1.0, 2.0]), 3.0);
//! }
//! # }
//! ```
//!
//! # Levels and extensions
//!
//! [`InstructionSet`] has few levels, each a set of features that real CPUs have together; loops are compiled once for each.
//! Features beyond a level are *extensions*: a level's token carries an optional token for each one, such as
//! `Avx512::bf16` or `Avx2::vnni`, and the few operations that gain from it are chosen at run time. The constructor of `Amx`
//! also asks the operating system for permission. `docs/design.md` has the steps to add either.
//!
//! # Cost
//!
//! The standard library caches what the CPU reports, so constructing a token costs a few loads. Crates still detect once
//! for each tokenizer or model and keep the result.

/// Declares a token without extensions.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! token {
    ($(#[$documentation:meta])* $name:ident) => {
        $(#[$documentation])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name(());
    };
}

#[cfg(target_arch = "x86_64")]
pub use crate::amx::{Amx, AmxInt8};
#[cfg(target_arch = "x86_64")]
pub use x86::{Avx2, Avx512, AvxVnni, Bf16, Vbmi2, Vnni, Vpopcnt};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Amx;

    token! {
        /// Proof that the CPU has AVX-VNNI (dot products of bytes in 256 bits) as well as everything that [`Avx2`] proves.
        AvxVnni
    }

    token! {
        /// Proof that the CPU has AVX512-VNNI as well as everything that [`Avx512`] proves.
        Vnni
    }

    /// Proof that the CPU has AVX2, FMA, BMI1, BMI2, LZCNT and POPCNT: every CPU with AVX2 that is in use has all six. It
    /// carries the token of an extension.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Avx2 {
        vnni: Option<AvxVnni>,
    }

    token! {
        /// Proof that the CPU has AVX512-VBMI and AVX512-VBMI2 as well as everything that [`Avx512`] proves.
        Vbmi2
    }

    token! {
        /// Proof that the CPU has AVX512-BF16 as well as everything that [`Avx512`] proves.
        Bf16
    }

    token! {
        /// Proof that the CPU has AVX512-VPOPCNTDQ as well as everything that [`Avx512`] proves.
        Vpopcnt
    }

    /// Proof that the CPU has AVX-512 F, BW, DQ and VL, and everything that [`Avx2`] proves; it carries the tokens of the
    /// extensions.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Avx512 {
        avx2: Avx2,
        vbmi2: Option<Vbmi2>,
        bf16: Option<Bf16>,
        amx: Option<Amx>,
        vnni: Option<Vnni>,
        vpopcnt: Option<Vpopcnt>,
    }

    impl Avx2 {
        /// Returns the token if the CPU supports these instructions, with the token of AVX-VNNI if it supports that.
        pub fn new() -> Option<Avx2> {
            // Miri interprets only some of the intrinsics.
            let is_supported = !cfg!(miri)
                && is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("popcnt");
            let has_vnni = is_x86_feature_detected!("avxvnni");
            is_supported.then(|| Avx2 { vnni: has_vnni.then_some(AvxVnni(())) })
        }

        /// Returns the token of AVX-VNNI (dot products of bytes) if the CPU has it.
        #[inline(always)]
        pub fn vnni(self) -> Option<AvxVnni> {
            self.vnni
        }

        /// Returns the same level without its extension, so that tests reach the code of CPUs that have none.
        #[doc(hidden)]
        pub fn without_extensions(self) -> Avx2 {
            Avx2 { vnni: None }
        }
    }

    impl Avx512 {
        /// Returns the token if the CPU supports these instructions, with the tokens of all extensions that it supports.
        pub fn new() -> Option<Avx512> {
            let avx2 = Avx2::new()?;
            let is_supported = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            let has_vbmi2 = is_x86_feature_detected!("avx512vbmi") && is_x86_feature_detected!("avx512vbmi2");
            let has_bf16 = is_x86_feature_detected!("avx512bf16");
            let has_vnni = is_x86_feature_detected!("avx512vnni");
            is_supported.then(|| Avx512 {
                avx2,
                vbmi2: has_vbmi2.then_some(Vbmi2(())),
                bf16: has_bf16.then_some(Bf16(())),
                amx: Amx::new(),
                vnni: has_vnni.then_some(Vnni(())),
                vpopcnt: is_x86_feature_detected!("avx512vpopcntdq").then_some(Vpopcnt(())),
            })
        }

        /// Returns the token of the level below: every CPU with AVX-512 has AVX2.
        #[inline(always)]
        pub fn avx2(self) -> Avx2 {
            self.avx2
        }

        /// Returns the token of VBMI and VBMI2 (compressing bytes, permuting bytes) if the CPU has them.
        #[inline(always)]
        pub fn vbmi2(self) -> Option<Vbmi2> {
            self.vbmi2
        }

        /// Returns the token of AVX512-BF16 (dot products of bfloat16 pairs) if the CPU has it.
        #[inline(always)]
        pub fn bf16(self) -> Option<Bf16> {
            self.bf16
        }

        /// Returns the token of AMX (products of bfloat16 tiles) if the CPU has it and the system permits it.
        #[inline(always)]
        pub fn amx(self) -> Option<Amx> {
            self.amx
        }

        /// Returns the same level without AMX, so that its pairs are multiplied by vectors.
        pub fn without_amx(self) -> Avx512 {
            Avx512 { amx: None, ..self }
        }

        /// Returns the token of AVX512-VNNI (dot products of bytes) if the CPU has it.
        #[inline(always)]
        pub fn vnni(self) -> Option<Vnni> {
            self.vnni
        }

        /// Returns the token of AVX512-VPOPCNTDQ (counting the bits of words) if the CPU has it.
        #[inline(always)]
        pub fn vpopcnt(self) -> Option<Vpopcnt> {
            self.vpopcnt
        }

        /// Returns the same level without its extensions, so that tests reach the code of CPUs that have none.
        #[doc(hidden)]
        pub fn without_extensions(self) -> Avx512 {
            let avx2 = self.avx2.without_extensions();
            Avx512 { avx2, vbmi2: None, bf16: None, amx: None, vnni: None, vpopcnt: None }
        }
    }
}

#[cfg(target_arch = "aarch64")]
token! {
    /// Proof that the CPU has products of pairs of bfloat16 numbers (BFDOT) as well as NEON.
    NeonBf16
}

#[cfg(target_arch = "aarch64")]
token! {
    /// Proof that the CPU has the dot products of bytes (`sdot`) as well as [`Neon`].
    DotProduct
}

#[cfg(target_arch = "aarch64")]
token! {
    /// Proof that the CPU has the products of int8 matrices (`smmla`) as well as [`Neon`].
    Int8Matrix
}

#[cfg(target_arch = "aarch64")]
token! {
    /// Proof that the CPU has the products of bfloat16 matrices (BFMMLA) as well as NEON.
    Bf16Matrix
}

/// Proof that the CPU has NEON, which all 64-bit Arm CPUs that run an operating system have; it carries the tokens of the
/// extensions.
#[cfg(target_arch = "aarch64")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neon {
    bf16: Option<NeonBf16>,
    dot_product: Option<DotProduct>,
    int8_matrix: Option<Int8Matrix>,
    bf16_matrix: Option<Bf16Matrix>,
}

#[cfg(target_arch = "aarch64")]
impl Neon {
    /// Returns the token if the CPU supports these instructions, with the tokens of all extensions that it supports.
    pub fn new() -> Option<Neon> {
        // One feature has both instructions.
        let has_bf16 = std::arch::is_aarch64_feature_detected!("bf16");
        let (bf16, bf16_matrix) = (has_bf16.then_some(NeonBf16(())), has_bf16.then_some(Bf16Matrix(())));
        let dot_product = std::arch::is_aarch64_feature_detected!("dotprod").then_some(DotProduct(()));
        let int8_matrix = std::arch::is_aarch64_feature_detected!("i8mm").then_some(Int8Matrix(()));
        // Miri interprets only some of the intrinsics.
        let is_supported = !cfg!(miri) && std::arch::is_aarch64_feature_detected!("neon");
        is_supported.then_some(Neon { bf16, dot_product, int8_matrix, bf16_matrix })
    }

    /// Returns the token of BFDOT (products of pairs of bfloat16 numbers) if the CPU has it.
    #[inline(always)]
    pub fn bf16(self) -> Option<NeonBf16> {
        self.bf16
    }

    /// Returns the token of `sdot` (dot products of bytes) if the CPU has it.
    #[inline(always)]
    pub fn dot_product(self) -> Option<DotProduct> {
        self.dot_product
    }

    /// Returns the token of `smmla` (products of int8 matrices) if the CPU has it.
    #[inline(always)]
    pub fn int8_matrix(self) -> Option<Int8Matrix> {
        self.int8_matrix
    }

    /// Returns the token of BFMMLA (products of bfloat16 matrices) if the CPU has it.
    #[inline(always)]
    pub fn bf16_matrix(self) -> Option<Bf16Matrix> {
        self.bf16_matrix
    }

    /// Returns the same level without products of matrices, so that tests reach the code of CPUs that have only dot
    /// products.
    #[doc(hidden)]
    pub fn without_matrices(self) -> Neon {
        Neon { int8_matrix: None, bf16_matrix: None, ..self }
    }

    /// Returns the same level without its extensions, so that tests reach the code of CPUs that do not have them.
    #[doc(hidden)]
    pub fn without_extensions(self) -> Neon {
        Neon { bf16: None, dot_product: None, int8_matrix: None, bf16_matrix: None }
    }
}

/// The instruction sets that loops are compiled for, the best last. A value exists only on a CPU that has the instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionSet {
    /// Portable Rust; available on every CPU.
    Scalar,
    /// x86-64 with AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// x86-64 with AVX-512 F, BW, DQ and VL, and the extensions that the token carries.
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    /// 64-bit Arm with NEON.
    #[cfg(target_arch = "aarch64")]
    Neon(Neon),
}

impl InstructionSet {
    /// The names of all instruction sets that this build knows, whether the CPU has them or not; the best last.
    pub const NAMES: &[&str] = if cfg!(target_arch = "x86_64") {
        &["scalar", "avx2", "avx512"]
    } else if cfg!(target_arch = "aarch64") {
        &["scalar", "neon"]
    } else {
        &["scalar"]
    };

    /// Returns all instruction sets of this CPU, the best last; the first is [`InstructionSet::Scalar`].
    pub fn all_available() -> Vec<InstructionSet> {
        #[cfg(target_arch = "x86_64")]
        let simd = [Avx2::new().map(InstructionSet::Avx2), Avx512::new().map(InstructionSet::Avx512)];
        #[cfg(target_arch = "aarch64")]
        let simd = [Neon::new().map(InstructionSet::Neon)];
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let simd: [Option<InstructionSet>; 0] = [];
        std::iter::once(InstructionSet::Scalar).chain(simd.into_iter().flatten()).collect()
    }

    /// Returns those instruction sets of this CPU for which `is_used` holds, and `Scalar` in any case; the best last.
    ///
    /// For code that is written for only some of them, or that needs an extension:
    ///
    /// ```
    /// use wordpiece_parallel::InstructionSet;
    ///
    /// let sets = InstructionSet::available_where(|set| match set {
    ///     #[cfg(target_arch = "x86_64")]
    ///     InstructionSet::Avx512(token) => token.vbmi2().is_some(), // without it, AVX2 is as good
    ///     _ => true,
    /// });
    /// assert_eq!(sets[0], InstructionSet::Scalar);
    /// ```
    pub fn available_where(is_used: impl Fn(InstructionSet) -> bool) -> Vec<InstructionSet> {
        let mut sets = InstructionSet::all_available();
        sets.retain(|&set| set == InstructionSet::Scalar || is_used(set));
        sets
    }

    /// Returns the best instruction set of this CPU.
    pub fn detect() -> InstructionSet {
        InstructionSet::detect_where(|_| true)
    }

    /// Returns the best instruction set of this CPU for which `is_used` holds, or `Scalar`.
    pub fn detect_where(is_used: impl Fn(InstructionSet) -> bool) -> InstructionSet {
        InstructionSet::available_where(is_used).pop().unwrap_or(InstructionSet::Scalar)
    }

    /// Returns this level with each set of extensions that changes how bytes are multiplied, named, the best first: what
    /// CPUs of this level have at most, and what those have that lack them. For tests, which run the code of both.
    #[doc(hidden)]
    pub fn byte_paths(self) -> Vec<(&'static str, InstructionSet)> {
        match self {
            InstructionSet::Scalar => vec![("scalar", self)],
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2(token) => {
                let without = ("avx2-plain", InstructionSet::Avx2(token.without_extensions()));
                token.vnni().map(|_| ("avx-vnni", self)).into_iter().chain([without]).collect()
            }
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512(token) => {
                let without = ("avx512-plain", InstructionSet::Avx512(token.without_extensions()));
                token.vnni().map(|_| ("avx512-vnni", self)).into_iter().chain([without]).collect()
            }
            #[cfg(target_arch = "aarch64")]
            InstructionSet::Neon(token) => {
                let sdot = ("sdot", InstructionSet::Neon(token.without_matrices()));
                let without = ("neon-plain", InstructionSet::Neon(token.without_extensions()));
                let smmla = token.int8_matrix().map(|_| ("smmla", self));
                smmla.into_iter().chain(token.dot_product().map(|_| sdot)).chain([without]).collect()
            }
        }
    }

    /// Returns the name by which tests, benchmarks and users refer to it: one of [`InstructionSet::NAMES`].
    pub fn name(self) -> &'static str {
        match self {
            InstructionSet::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512(_) => "avx512",
            #[cfg(target_arch = "aarch64")]
            InstructionSet::Neon(_) => "neon",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::InstructionSet;

    #[test]
    fn available_sets_have_different_known_names_and_the_best_is_detected() {
        let sets = InstructionSet::all_available();
        let names: Vec<_> = sets.iter().map(|set| set.name()).collect();
        let known: Vec<_> = InstructionSet::NAMES.iter().copied().filter(|name| names.contains(name)).collect();
        assert_eq!(names, known, "in the order of the names");
        assert_eq!(sets[0], InstructionSet::Scalar);
        assert_eq!(sets.last(), Some(&InstructionSet::detect()));
        assert_eq!(InstructionSet::available_where(|_| false), [InstructionSet::Scalar]);
        assert_eq!(InstructionSet::detect_where(|_| false), InstructionSet::Scalar);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn extensions_come_with_their_level() {
        use super::{Avx2, Avx512};
        if let Some(avx512) = Avx512::new() {
            assert_eq!(Some(avx512.avx2()), Avx2::new());
            let without = avx512.without_extensions();
            assert!(without.vbmi2().is_none() && without.bf16().is_none() && without.amx().is_none());
            assert!(without.vnni().is_none() && without.avx2().vnni().is_none() && without.vpopcnt().is_none());
            assert_eq!(avx512.without_amx().bf16(), avx512.bf16());
        }
    }

    #[cfg(target_arch = "aarch64")]
    #[test]
    #[cfg_attr(miri, ignore = "Miri runs the portable code only")]
    fn levels_without_extensions_lack_them() {
        let neon = super::Neon::new().expect("all CPUs with an operating system have NEON");
        let without = neon.without_matrices();
        assert!(without.int8_matrix().is_none() && without.bf16_matrix().is_none());
        assert!(without.bf16() == neon.bf16() && without.dot_product() == neon.dot_product());
        let names: Vec<_> = InstructionSet::Neon(neon).byte_paths().into_iter().map(|path| path.0).collect();
        assert_eq!(names.contains(&"smmla"), neon.int8_matrix().is_some());
        assert_eq!(names.contains(&"sdot"), neon.dot_product().is_some());
        let plain = InstructionSet::Neon(neon.without_extensions());
        assert_eq!(plain.byte_paths(), [("neon-plain", plain)]);
        let InstructionSet::Neon(plain) = plain else { unreachable!() };
        assert!(plain.bf16().is_none() && plain.bf16_matrix().is_none());
    }
}
