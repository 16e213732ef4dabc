//! Which CPU this is: its name for people, and its vendor for rules that the feature flags do not decide.

/// Returns the name of the CPU as it reports it, such as "AMD EPYC 9654 96-Core Processor"; on other architectures than
/// x86-64 the name of the architecture.
pub fn name() -> String {
    imp::brand().unwrap_or_else(|| std::env::consts::ARCH.to_string())
}

/// Whether AVX512-BF16 multiplies pairs of bfloat16 numbers at twice the rate of float32.
///
/// All cores of AMD with AVX512-BF16 (Zen 4 and later) start as many `vdpbf16ps` in a cycle as `vfmadd231ps`; the cores
/// of Intel that have it (Cooper Lake, Sapphire Rapids and later) start half as many, so it gains nothing over float32.
/// The rule goes by the vendor, not by a measurement: which instructions compute must not depend on what else the
/// machine does.
pub fn has_fast_bf16_dot() -> bool {
    imp::vendor().is_some_and(|vendor| &vendor == b"AuthenticAMD" || &vendor == b"HygonGenuine")
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod imp {
    use std::arch::x86_64::__cpuid;

    /// Returns the vendor's name in CPUID leaf 0.
    pub(super) fn vendor() -> Option<[u8; 12]> {
        let leaf = __cpuid(0);
        let mut name = [0; 12];
        for (to, register) in name.chunks_mut(4).zip([leaf.ebx, leaf.edx, leaf.ecx]) {
            to.copy_from_slice(&register.to_le_bytes());
        }
        Some(name)
    }

    /// Returns the text in the CPUID leaves 0x8000_0002 to 0x8000_0004, with single spaces.
    pub(super) fn brand() -> Option<String> {
        if __cpuid(0x8000_0000).eax < 0x8000_0004 {
            return None;
        }
        let mut text = Vec::new();
        for leaf in 0x8000_0002..=0x8000_0004 {
            let leaf = __cpuid(leaf);
            for register in [leaf.eax, leaf.ebx, leaf.ecx, leaf.edx] {
                text.extend(register.to_le_bytes());
            }
        }
        let text = String::from_utf8_lossy(&text).replace('\0', " ");
        let words: Vec<&str> = text.split_whitespace().collect();
        (!words.is_empty()).then(|| words.join(" "))
    }
}

// Miri does not interpret the instruction CPUID.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod imp {
    pub(super) fn vendor() -> Option<[u8; 12]> {
        None
    }

    pub(super) fn brand() -> Option<String> {
        None
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_name_is_one_line_of_words() {
        let name = super::name();
        assert!(!name.is_empty() && name.trim() == name && !name.contains(['\0', '\n']), "{name:?}");
        assert!(!name.contains("  "), "{name:?}");
    }
}
