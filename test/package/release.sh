#!/usr/bin/env bash
# That program, package, documents and charts have one version, which the CHANGELOG knows, and that scripts/release keeps
# it so. Run by CTest: test/package/release.sh SOURCE BUILD PROGRAM
set -euo pipefail
source=$1 build=$2 program=$3
work=$(mktemp -d "${TMPDIR:-/tmp}/chatelaine-release.XXXXXX")
trap 'rm -rf "$work"' EXIT
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b.example \
    GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b.example
failures=0
fail() {
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}
is() { [ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"; } # WHAT EXPECTED ACTUAL

# In a source tree:
version() { sed -n 's/^project(chatelaine VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt; }
headings() { sed -n 's/^## \[\([0-9.]*\)\] - [0-9]\{4\}-[0-9][0-9]-[0-9][0-9]$/\1/p' CHANGELOG.md; }
base() { sed -n 's/^LAST=v\([0-9.]*\) LAST_COMMIT=\([0-9a-f]\{40\}\)$/\1 \2/p' scripts/upgrade; }
# All that have one, each version once.
stated() {
    {
        version
        jq -r '.info.version' src/api/openapi.json
        grep -o '"title": "Chatelaine", "version": "[^"]*"' src/api/openapi.json | cut -d'"' -f8
        sed -En 's/^(v|appV)ersion: //p' docker/kubernetes/chart/Chart.yaml
        sed -En 's/.*(app.kubernetes.io\/version: "|image: "chatelaine:)([^"]*)"/\2/p' docker/kubernetes/manifests/*.yaml
    } | sort -u
}

cd "$source"
present=$(version)
is "all places" "$present" "$(stated)"
is "the program" "chatelaine $present" "$("$program" --version)"
is "the packages" "$present" "$(sed -n 's/^set(CPACK_DEBIAN_PACKAGE_VERSION "\(.*\)+deb.*")$/\1/p' "$build/CPackConfig.cmake")"
last=$(headings | head -n 1)
if [ "$present" = "$last" ]; then
    is "the base of upgrades" "$(headings | sed -n 2p)" "$(base | cut -d' ' -f1)"
else
    is "the greater one of what is built and what was released" "$present" "$(printf '%s\n' "$present" "$last" | sort -V | tail -n 1)"
    is "the base of upgrades" "$last" "$(base | cut -d' ' -f1)"
fi

# A repository with all that scripts/release touches.
mkdir "$work/clone"
cp --parents scripts/release scripts/upgrade CHANGELOG.md CMakeLists.txt src/api/openapi.json \
    docker/kubernetes/chart/Chart.yaml docker/kubernetes/manifests/*.yaml "$work/clone"
cd "$work/clone"
sed -i '/^## \[Unreleased\]/,/^## \[[0-9]/{/^## /!d}' CHANGELOG.md
git init --quiet
git add .
git commit --quiet --message begin

refused() { # REASON ARGUMENT…: nothing has happened
    local reason=$1 before
    shift
    before="$(git rev-parse HEAD) $(git status --porcelain) $(git tag)"
    if scripts/release "$@" >"$work/log" 2>&1; then fail "scripts/release $* is not refused"; fi
    grep -q -- "$reason" "$work/log" || fail "scripts/release $*: no '$reason' in: $(cat "$work/log")"
    is "after scripts/release $*" "$before" "$(git rev-parse HEAD) $(git status --porcelain) $(git tag)"
}
refused 'nothing under \[Unreleased\]' 7.0.0
sed -i 's/^## \[Unreleased\]$/&\n\n### Added\n\n- A bell.\n/' CHANGELOG.md
refused 'has changes' 7.0.0
git commit --quiet --all --message 'a bell'
touch new
refused 'has changes' 7.0.0
rm new
refused 'scripts/release VERSION'
refused 'three numbers' v7.0.0
refused 'three numbers' 7.0
refused 'three numbers' 7.00.0
refused 'not greater' "$last"
refused 'not greater' 0.0.9
refused 'a greater version, not' 7.0.0 7.0.0
refused 'a greater version, not' 7.0.0 next
git tag v7.0.0
refused 'already' 7.0.0
git tag --delete v7.0.0 >"$work/log"

scripts/release 7.0.0 >"$work/log"
grep -q 'git push origin v7.0.0' "$work/log" || fail "it does not say what comes next"
is "commits" 'version: 7.1.0 begins
changelog: 7.0.0 is a release' "$(git log -2 --format=%s)"
is "the tag" "$(git rev-parse HEAD~1)" "$(git rev-parse 'v7.0.0^{commit}')"
is "what is built now" 7.1.0 "$(stated)"
is "the base of upgrades now" "7.0.0 $(git rev-parse HEAD~1)" "$(base)"
git checkout --quiet v7.0.0
is "what was released" 7.0.0 "$(stated)"
is "headings" "7.0.0 $last" "$(headings | head -n 2 | xargs)"
is "its chapter" '### Added - A bell.' "$(sed -n '/^## \[7/,/^## \[[0-6]/{/^## /!p}' CHANGELOG.md | xargs)"
is "the chapter of what comes" '' "$(sed -n '/^## \[Unr/,/^## \[7/{/^## /!p}' CHANGELOG.md | xargs)"
git checkout --quiet -
refused 'nothing under \[Unreleased\]' 7.1.0

[ "$failures" = 0 ] || exit 1
echo "one version, and a release keeps it so"
