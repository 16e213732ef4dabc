#!/usr/bin/env bash
# Fail unless a tag names the version in pyproject.toml, and the text says how to install the package from PyPI:
#
#     scripts/check_release.sh v0.1.0
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
if [[ $1 != "v$version" ]]; then
    echo "error: the tag is $1, and the version in pyproject.toml is $version" >&2
    exit 1
fi
if grep -n 'the first release' README.md docs/start/install.md; then
    echo "error: these lines are for the time before the first release: docs/development/release.md, 'Once'" >&2
    exit 1
fi
for page in README.md docs/start/install.md; do
    if ! grep -q '^pip install wordpiece-bert$' "$page"; then
        echo "error: $page does not say 'pip install wordpiece-bert'" >&2
        exit 1
    fi
done
if ! grep -q "^## \[\?$version\b" CHANGELOG.md; then
    echo "error: CHANGELOG.md has no heading of version $version" >&2
    exit 1
fi
echo "$1: the tag, the text and CHANGELOG.md are those of a release"
