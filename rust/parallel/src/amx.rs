//! Detection of AMX, whose registers the operating system must permit.

use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::sync::OnceLock;

/// Proof that the CPU has AMX tiles and their products of bfloat16 numbers, and that the system permits their use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amx(());

impl Amx {
    /// Returns the token if the CPU has the instructions and the system permits them.
    ///
    /// The first call asks the system, which then permits them for the whole process and the processes that it forks.
    pub fn new() -> Option<Amx> {
        static IS_USABLE: OnceLock<bool> = OnceLock::new();
        IS_USABLE.get_or_init(|| cpu_has_amx() && system_saves_tiles() && request_permission()).then_some(Amx(()))
    }
}

/// Whether the CPU reports AMX-TILE and AMX-BF16, and tiles of the size that the kernels are written for.
fn cpu_has_amx() -> bool {
    const BF16: u32 = 1 << 22;
    const TILE: u32 = 1 << 24;
    if __cpuid(0).eax < 0x1d {
        return false;
    }
    let features = __cpuid_count(7, 0).edx;
    // Palette 1: the bytes of a tile and of its rows, then the number of tiles and the rows of each.
    let palette = __cpuid_count(0x1d, 1);
    let is_usual = palette.eax >> 16 == 1024 && palette.ebx == (8 << 16 | 64) && palette.ecx & 0xffff == 16;
    features & (BF16 | TILE) == BF16 | TILE && is_usual
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
    fn what_the_system_reports_is_consistent() {
        // /proc/cpuinfo has the flags of the features that the system knows and saves.
        let Ok(flags) = std::fs::read_to_string("/proc/cpuinfo") else { return };
        let listed = flags.contains(" amx_tile") && flags.contains(" amx_bf16");
        assert!(listed || Amx::new().is_none(), "AMX is used, but the system does not list it");
        assert_eq!(Amx::new(), Amx::new());
    }
}
