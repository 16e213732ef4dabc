//! Detection of AMX, whose registers the operating system must permit.

use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::sync::OnceLock;

/// Proof that the CPU has AMX tiles and their products of bfloat16 numbers, and that the system permits their use. It
/// carries the token of an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amx {
    int8: Option<AmxInt8>,
}

/// Proof that the CPU has the products of int8 numbers (AMX-INT8) as well as everything that [`Amx`] proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AmxInt8(());

impl Amx {
    /// Returns the token if the CPU has the instructions and the system permits them, with the token of AMX-INT8 if it has
    /// that.
    ///
    /// The first call asks the system, which then permits them for the whole process and the processes that it forks.
    pub fn new() -> Option<Amx> {
        static USABLE: OnceLock<Option<Amx>> = OnceLock::new();
        *USABLE.get_or_init(|| {
            // Miri does not interpret the instructions, nor those that find out about them.
            let amx = if cfg!(miri) { None } else { Amx::reported() }?;
            (system_saves_tiles() && request_permission()).then_some(amx)
        })
    }

    /// Returns what the CPU reports, if that includes tiles of the size that the kernels are written for.
    fn reported() -> Option<Amx> {
        if __cpuid(0).eax < 0x1d || !has_usual_tiles() {
            return None;
        }
        Amx::from_features(__cpuid_count(7, 0).edx)
    }

    /// Returns what leaf 7 of CPUID reports in EDX: AMX-BF16, AMX-TILE and, separately, AMX-INT8.
    fn from_features(features: u32) -> Option<Amx> {
        const BF16: u32 = 1 << 22;
        const TILE: u32 = 1 << 24;
        const INT8: u32 = 1 << 25;
        let int8 = (features & INT8 != 0).then_some(AmxInt8(()));
        (features & (BF16 | TILE) == BF16 | TILE).then_some(Amx { int8 })
    }

    /// Returns the token of AMX-INT8 (products of int8 tiles) if the CPU has it.
    #[inline(always)]
    pub fn int8(self) -> Option<AmxInt8> {
        self.int8
    }
}

/// Whether there are eight tiles of 16 rows of 64 bytes.
fn has_usual_tiles() -> bool {
    // Palette 1: the bytes of a tile and of its rows, then the number of tiles and the rows of each.
    let palette = __cpuid_count(0x1d, 1);
    palette.eax >> 16 == 1024 && palette.ebx == (8 << 16 | 64) && palette.ecx & 0xffff == 16
}

/// Whether the system saves the tiles and their configuration when it switches threads: bits 17 and 18 of XCR0.
fn system_saves_tiles() -> bool {
    const OSXSAVE: u32 = 1 << 27;
    if __cpuid(1).ecx & OSXSAVE == 0 {
        return false;
    }
    let low: u32;
    // SAFETY: OSXSAVE says that the instruction may be used; it writes these two registers only.
    unsafe { asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") _, options(nomem, nostack, preserves_flags)) }
    low >> 17 & 3 == 3
}

/// Asks Linux (5.16 and later) for the permission to use tiles; other systems are not supported.
fn request_permission() -> bool {
    #[cfg(target_os = "linux")]
    {
        const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
        const XFEATURE_XTILEDATA: libc::c_long = 18;
        // SAFETY: this request reads its two numbers and no memory. A kernel that does not know it returns an error.
        unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
    }
    #[cfg(not(target_os = "linux"))]
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_product_has_a_bit_of_its_own() {
        let (bf16, tile, int8) = (1 << 22, 1 << 24, 1 << 25);
        assert!(Amx::from_features(bf16 | tile).is_some_and(|amx| amx.int8().is_none()));
        assert!(Amx::from_features(bf16 | tile | int8).is_some_and(|amx| amx.int8().is_some()));
        for without in [0, bf16, tile, int8, bf16 | int8, tile | int8, !bf16, !tile] {
            assert_eq!(Amx::from_features(without), None, "{without:#x}");
        }
    }

    #[test]
    fn what_the_system_reports_is_consistent() {
        // /proc/cpuinfo has the flags of the features that the system knows and saves.
        let Ok(flags) = std::fs::read_to_string("/proc/cpuinfo") else { return };
        let listed = flags.contains(" amx_tile") && flags.contains(" amx_bf16");
        assert!(listed || Amx::new().is_none(), "AMX is used, but the system does not list it");
        let has_int8 = Amx::new().is_some_and(|amx| amx.int8().is_some());
        assert!(flags.contains(" amx_int8") || !has_int8, "AMX-INT8 is used, but the system does not list it");
        assert_eq!(Amx::new(), Amx::new());
    }
}
