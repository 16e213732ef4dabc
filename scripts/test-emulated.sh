#!/usr/bin/env bash
# Runs the tests of the Rust crates for another processor, under QEMU's user-mode emulation.
#
#     scripts/test-emulated.sh aarch64    64-bit Arm: the NEON code
#     scripts/test-emulated.sh s390x      big-endian: the portable code
#     scripts/test-emulated.sh i686       32-bit: the portable code (runs natively on x86-64)
#
# CRATES="wordpiece-arrow wordpiece" runs the tests of these crates. With --install, nothing is run.
#
# What is missing is installed, and named before it is: a cross compiler, its C library and qemu-user from Debian's (or
# Ubuntu's) packages, and Rust's standard library for the target from rustup. Where rustup has none, Debian's own
# compiler is taken (rustc-web, cargo-web, libstd-rust-web-dev; aarch64 only). Installing needs root and apt-get; without
# them the tests are skipped with a message, and the exit status is 0.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

name=${1:?"usage: scripts/test-emulated.sh aarch64 | s390x | i686"}
required=scalar
case $name in
    aarch64)
        target=aarch64-unknown-linux-gnu debian=arm64 compiler=aarch64-linux-gnu-gcc emulator=qemu-aarch64
        packages=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)
        required=scalar,neon,neon-bf16,neon-i8mm
        export WORDPIECE_REQUIRE_BYTE_PATHS=scalar,neon-plain,sdot,smmla
        ;;
    s390x)
        target=s390x-unknown-linux-gnu debian=s390x compiler=s390x-linux-gnu-gcc emulator=qemu-s390x
        packages=(gcc-s390x-linux-gnu libc6-dev-s390x-cross qemu-user)
        ;;
    i686)
        target=i686-unknown-linux-gnu debian=i386 compiler=i686-linux-gnu-gcc emulator=
        packages=(gcc-i686-linux-gnu libc6-dev-i386-cross)
        ;;
    *)
        echo "unknown processor $name: aarch64, s390x or i686" >&2
        exit 2
        ;;
esac

skip() {
    echo "test-$name: skipped: $1"
    exit 0
}

install_packages() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null ||
        skip "needs $*; install them, or run this as root where apt-get is"
    echo "test-$name: installing $*"
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "$@" >/dev/null || skip "apt-get cannot install $*"
}

if ! command -v "$compiler" >/dev/null || { [ -n "$emulator" ] && ! command -v "$emulator" >/dev/null; }; then
    install_packages "${packages[@]}"
fi

cargo=(cargo)
if ! [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then
    if command -v rustup >/dev/null && echo "test-$name: installing Rust's standard library for $target" &&
        rustup target add "$target"; then
        :
    elif [ "$name" = aarch64 ]; then
        command -v dpkg >/dev/null && [ "$(id -u)" = 0 ] && dpkg --add-architecture "$debian" ||
            skip "needs Rust's standard library for $target: rustup target add $target"
        install_packages rustc-web cargo-web "libstd-rust-web-dev:$debian"
        # Debian's compiler beside the one in use: what either built is of no use to the other.
        export PATH="/usr/bin:$PATH" CARGO_TARGET_DIR=target/debian
        cargo=(/usr/bin/cargo)
    else
        skip "needs Rust's standard library for $target: rustup target add $target"
    fi
fi

[ "${2:-}" != --install ] || exit 0

variable=$(echo "$target" | tr 'a-z-' 'A-Z_')
export "CARGO_TARGET_${variable}_LINKER=$compiler"
export "CC_${target//-/_}=$compiler"
# Static programs need no dynamic loader of the other architecture. Do not give qemu a root with -L instead: with it, even
# a small program with threads hangs (QEMU 7.2).
export "CARGO_TARGET_${variable}_RUSTFLAGS=-C target-feature=+crt-static"
[ -z "$emulator" ] || export "CARGO_TARGET_${variable}_RUNNER=$emulator"
# Tests that walk every character take too long under emulation, and the same portable code is tested natively.
export WORDPIECE_EMULATED=1 WORDPIECE_REQUIRE_INSTRUCTION_SETS=$required
# The crates that use C libraries or threads differ by target; the binding is tested through Python, natively.
crates=${CRATES:-wordpiece-parallel wordpiece-kernels wordpiece-arrow wordpiece}
"${cargo[@]}" test --target "$target" --locked --lib --tests $(printf -- '-p %s ' $crates) "${@:2}"
if [ "$name" = aarch64 ] && [[ " $crates " = *" wordpiece-kernels "* ]]; then
    # The emulator's own CPU has every extension. Cortex-A72 has none, and Neoverse N1 the dot products of bytes.
    export WORDPIECE_REQUIRE_INSTRUCTION_SETS=scalar,neon
    for cpu in cortex-a72:scalar,neon-plain neoverse-n1:scalar,neon-plain,sdot; do
        echo "test-$name: products on ${cpu%%:*}"
        QEMU_CPU=${cpu%%:*} WORDPIECE_REQUIRE_BYTE_PATHS=${cpu#*:} \
            "${cargo[@]}" test --target "$target" --locked -p wordpiece-kernels --test int8 --test arm "${@:2}"
    done
fi
echo "test-$name: passed"
