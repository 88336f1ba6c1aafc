#include "shared_arena.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <utility>

#include "weft/coll/all_reduce.hpp"
#include "weft/coll/broadcast.hpp"
#include "weft/runtime/unique_fd.hpp"

namespace bench {
namespace {

constexpr std::size_t kPageBytes = 4096;

/// What rank 0 tells the others. Sent as it lies.
struct Invitation {
  std::array<char, 48> host{};            ///< identifies this boot of this kernel, and its process numbers
  std::array<unsigned char, 16> nonce{};  ///< stands at the beginning of the memory
  std::int64_t process = -1;
  std::int64_t descriptor = -1;  ///< -1: rank 0 has no memory to offer
};

std::array<char, 48> this_host() {
  std::array<char, 48> host{};
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  boot.resize(36, '-');
  std::array<char, 64> name{};
  const ssize_t length = ::readlink("/proc/self/ns/pid", name.data(), name.size());
  const std::string space = length > 5 ? std::string(name.data() + 5, static_cast<std::size_t>(length - 5)) : "?";
  const std::string text = boot + space.substr(0, 11);
  std::memcpy(host.data(), text.data(), text.size());
  return host;
}

std::size_t round_up(std::size_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

void* map(int fd, std::size_t bytes) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

weft::UniqueFd create(std::size_t bytes, Invitation& invitation) {
  weft::UniqueFd fd(::memfd_create("weft-bench", MFD_CLOEXEC));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return {};
  if (::getrandom(invitation.nonce.data(), invitation.nonce.size(), 0) != 16) return {};
  if (::pwrite(fd.get(), invitation.nonce.data(), 16, 0) != 16) return {};
  invitation.host = this_host();
  invitation.process = ::getpid();
  invitation.descriptor = fd.get();
  return fd;
}

weft::UniqueFd accept(const Invitation& invitation) {
  if (invitation.descriptor < 0 || invitation.host != this_host()) return {};
  const std::string path =
      "/proc/" + std::to_string(invitation.process) + "/fd/" + std::to_string(invitation.descriptor);
  weft::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  std::array<unsigned char, 16> nonce{};
  if (!fd || ::pread(fd.get(), nonce.data(), 16, 0) != 16 || nonce != invitation.nonce) return {};
  return fd;
}

}  // namespace

weft::Task<SharedArena> SharedArena::open(weft::Communicator& world, std::size_t bytes) {
  const std::size_t lines = static_cast<std::size_t>(world.size()) * sizeof(FlagLine);
  SharedArena arena;
  arena.data_offset_ = kPageBytes + round_up(lines);
  const std::size_t all = arena.data_offset_ + round_up(bytes);

  Invitation invitation;
  weft::UniqueFd fd;
  if (world.rank() == 0) fd = create(all, invitation);
  co_await weft::coll::broadcast(world, std::span(&invitation, 1), 0);
  if (world.rank() != 0) fd = accept(invitation);
  if (fd) arena.memory_ = map(fd.get(), all);
  if (arena.memory_ != nullptr) arena.mapped_bytes_ = all;

  std::int32_t mapped = arena.memory_ != nullptr ? 1 : 0;
  co_await weft::coll::all_reduce(world, std::span(&mapped, 1), weft::coll::min);
  if (mapped == 0) arena.reset();
  co_return arena;
}

SharedArena::SharedArena(SharedArena&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      mapped_bytes_(std::exchange(other.mapped_bytes_, 0)),
      data_offset_(other.data_offset_),
      taken_(other.taken_) {}

SharedArena& SharedArena::operator=(SharedArena&& other) noexcept {
  if (this != &other) {
    reset();
    memory_ = std::exchange(other.memory_, nullptr);
    mapped_bytes_ = std::exchange(other.mapped_bytes_, 0);
    data_offset_ = other.data_offset_;
    taken_ = other.taken_;
  }
  return *this;
}

SharedArena::~SharedArena() {
  reset();
}

void SharedArena::reset() noexcept {
  if (memory_ != nullptr) ::munmap(memory_, mapped_bytes_);
  memory_ = nullptr;
  mapped_bytes_ = 0;
}

FlagLine& SharedArena::line(weft::Rank rank) const noexcept {
  auto* const lines = reinterpret_cast<FlagLine*>(static_cast<std::byte*>(memory_) + kPageBytes);
  return lines[rank];
}

std::span<std::byte> SharedArena::data() const noexcept {
  return {static_cast<std::byte*>(memory_) + data_offset_, mapped_bytes_ - data_offset_};
}

}  // namespace bench
