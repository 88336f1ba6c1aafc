# shellcheck shell=bash disable=SC2034  # the variables are for those who source this
# Sourced by tests/run.sh and examples/quickstart.sh: the distribution packages a build needs, and their installation.
# Nothing here runs apt when nothing is missing, and no plan that would change a kernel or a boot loader is carried out.

weft_build_packages=(
  ca-certificates ccache cmake g++ git ninja-build pkg-config
  libcli11-dev libfmt-dev libhwloc-dev libhwy-dev libsodium-dev libspdlog-dev liburing-dev nlohmann-json3-dev
)
weft_test_packages=(libgtest-dev procps python3)

weft_say() { printf '%s\n' "$*"; }

# weft_missing_packages NAME...: prints those that are not installed.
weft_missing_packages() {
  local name
  for name in "$@"; do
    if [[ "$(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null || true)" != installed ]]; then
      printf '%s\n' "$name"
    fi
  done
}

# weft_apt ARGS...: apt-get as root, quiet, asking nothing.
weft_apt() {
  local -a prefix=()
  if [[ $EUID -ne 0 ]]; then prefix=(sudo); fi
  "${prefix[@]}" env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 \
    apt-get -q -y -o Dpkg::Use-Pty=0 "$@" </dev/null
}

# weft_update_lists: apt-get update, once in a run.
weft_lists_updated=no
weft_update_lists() {
  if [[ $weft_lists_updated == no ]]; then
    weft_apt update >/dev/null || weft_say "packages: apt-get update failed; trying with the lists at hand"
    weft_lists_updated=yes
  fi
}

# weft_may_install: whether this user can install packages without being asked anything.
weft_may_install() {
  [[ $EUID -eq 0 ]] || { command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [[ -t 0 ]]; }; }
}

# weft_install NAME...: installs what is missing of these; 1 if that fails or may not be done.
weft_install() {
  local -a missing
  local plan
  mapfile -t missing < <(weft_missing_packages "$@")
  if [[ ${#missing[@]} -eq 0 ]]; then return 0; fi
  if ! weft_may_install; then
    weft_say "packages: missing: ${missing[*]}"
    weft_say "packages: neither root nor sudo; have somebody run:"
    weft_say "  apt-get install --no-install-recommends ${missing[*]}"
    return 1
  fi
  weft_say "packages: installing ${missing[*]}"
  weft_update_lists
  if ! plan="$(weft_apt -s install --no-install-recommends "${missing[@]}" 2>&1)"; then
    weft_say "$plan" | tail -n 15
    weft_say "packages: this distribution cannot install them"
    return 1
  fi
  local boot='linux-(image|modules|headers)|grub|shim|initramfs|dracut|systemd-boot|udev|kmod'
  if grep -Eq "^(Inst|Remv) ($boot)" <<<"$plan"; then
    weft_say "packages: refused: the plan would touch a kernel or boot loader:"
    grep -E '^(Inst|Remv) ' <<<"$plan"
    return 1
  fi
  weft_apt install --no-install-recommends "${missing[@]}" >/dev/null
}

# weft_require_packages NAME...: as weft_install, but ends the script with exit code 2 when it cannot be done.
weft_require_packages() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    weft_say "packages: not a Debian or Ubuntu system; taking it that these are installed: $*"
    return 0
  fi
  weft_install "$@" || exit 2
}

# weft_find_clang: sets weft_clang to clang++-19, else to the newest clang++ of this distribution, else to nothing,
# and weft_clang_note to what there is to say about it.
weft_find_clang() {
  local version newest
  weft_clang=""
  weft_clang_note=""
  for version in 19 newest; do
    if [[ $version == newest ]]; then
      newest="$(apt-cache search --names-only '^clang-[0-9]+$' 2>/dev/null | sed -E 's/^clang-([0-9]+).*/\1/' |
                sort -n | tail -n 1)"
      if [[ -z $newest ]]; then break; fi
      version=$newest
      weft_clang_note="clang-19 is not to be had here, using clang-$version"
    fi
    if command -v "clang++-$version" >/dev/null &&
       compgen -G "/usr/lib/llvm-$version/lib/clang/*/lib/linux/libclang_rt.tsan-*.a" >/dev/null; then
      weft_clang="clang++-$version"
      if ! command -v "llvm-symbolizer-$version" >/dev/null && ! weft_install "llvm-$version"; then
        weft_say "packages: without llvm-$version sanitizer findings may come without names and lines"
      fi
      return 0
    fi
    command -v apt-get >/dev/null || continue
    if ! apt-cache show "clang-$version" >/dev/null 2>&1 && weft_may_install; then weft_update_lists; fi
    apt-cache show "clang-$version" >/dev/null 2>&1 || continue
    if weft_install "clang-$version" "libclang-rt-$version-dev" "llvm-$version"; then
      weft_clang="clang++-$version"
      return 0
    fi
  done
  weft_clang_note="no clang++ can be installed here"
}
