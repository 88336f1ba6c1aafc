#include "weft/net/shm/shm_segment.hpp"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <mutex>
#include <string>
#include <vector>

#include "weft/runtime/error.hpp"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace weft::net {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

[[noreturn, gnu::cold]] void throw_errno(const char* what, std::size_t bytes, int error_number) {
  Errc code = errc_from_errno(error_number);
  if (error_number == EPERM || error_number == EACCES) code = Errc::unsupported;
  throw Error(code, "shared memory", std::string(what) + " (" + std::to_string(bytes) + " bytes wanted)", kNoRank,
              error_number);
}

[[noreturn, gnu::cold]] void throw_refused(const std::string& why) {
  throw Error(Errc::protocol, "shared memory", "refused what a peer has sent: " + why);
}

}  // namespace

/// One mmap, found again by the identity of the file behind it.
class SharedMemory::Mapping {
 public:
  Mapping(std::byte* data, std::size_t bytes, const struct stat& file) noexcept
      : data_(data), bytes_(bytes), device_(file.st_dev), inode_(file.st_ino) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { ::munmap(data_, bytes_); }

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] bool is(const struct stat& file, std::size_t bytes) const noexcept {
    return device_ == file.st_dev && inode_ == file.st_ino && bytes_ == bytes;
  }

 private:
  std::byte* data_;
  std::size_t bytes_;
  dev_t device_;
  ino_t inode_;
};

/// The mappings of this process. Two ranks that are threads must not map the same memory twice: what one writes the
/// other reads at another address, and a race detector then sees no order between what they do before and after.
/// Used at set-up only; inode numbers are unique as long as the mapping lives.
class MappingTable {
 public:
  static MappingTable& instance() {
    static MappingTable table;
    return table;
  }

  std::shared_ptr<SharedMemory::Mapping> map(int fd, std::size_t bytes, bool writable) {
    struct stat file {};
    if (::fstat(fd, &file) != 0) throw_errno("cannot look at it", bytes, errno);
    const std::lock_guard lock(mutex_);
    std::erase_if(mappings_, [](const auto& mapping) { return mapping.expired(); });
    for (const auto& known : mappings_) {
      if (auto mapping = known.lock(); mapping != nullptr && mapping->is(file, bytes)) return mapping;
    }
    // MAP_POPULATE: no page faults later, when messages flow.
    const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void* data = ::mmap(nullptr, bytes, protection, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (data == MAP_FAILED) throw_errno("cannot map it", bytes, errno);
    auto mapping = std::make_shared<SharedMemory::Mapping>(static_cast<std::byte*>(data), bytes, file);
    mappings_.push_back(mapping);
    return mapping;
  }

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<SharedMemory::Mapping>> mappings_;
};

SharedMemory::SharedMemory(UniqueFd fd, std::shared_ptr<Mapping> mapping) noexcept
    : fd_(std::move(fd)), mapping_(std::move(mapping)) {}

SharedMemory SharedMemory::create(const char* name, std::size_t bytes, Access access) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) throw_errno("cannot make it", bytes, errno);
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) throw_errno("cannot size it", bytes, errno);
  int reserved = 0;
  do {
    reserved = ::fallocate(fd.get(), 0, 0, static_cast<off_t>(bytes));
  } while (reserved != 0 && errno == EINTR);
  if (reserved != 0) throw_errno("cannot reserve it", bytes, errno);
  auto mapping = MappingTable::instance().map(fd.get(), bytes, true);
  int seals = kSizeSeals;
  if (access == Access::mutual) seals |= F_SEAL_SEAL;
  if (::fcntl(fd.get(), F_ADD_SEALS, seals) != 0) throw_errno("cannot seal it", bytes, errno);
  if (access == Access::owner_only) {
    // Our mapping stays writable, later ones cannot be. Kernels before 5.1 do not know this seal; receivers map
    // read-only anyway, so it only guards against a bug of theirs.
    (void)::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
  }
  return SharedMemory(std::move(fd), std::move(mapping));
}

SharedMemory SharedMemory::open(UniqueFd fd, std::size_t bytes, Access access) {
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0) throw_refused("a descriptor that is not a memfd");
  if ((seals & kSizeSeals) != kSizeSeals) throw_refused("memory that its owner could shrink");
  struct stat file {};
  if (::fstat(fd.get(), &file) != 0) throw_errno("cannot look at it", bytes, errno);
  if (file.st_size < 0 || static_cast<std::size_t>(file.st_size) != bytes) {
    throw_refused(std::to_string(file.st_size) + " bytes of memory instead of " + std::to_string(bytes));
  }
  auto mapping = MappingTable::instance().map(fd.get(), bytes, access == Access::mutual);
  return SharedMemory(UniqueFd(), std::move(mapping));
}

std::byte* SharedMemory::data() const noexcept {
  return mapping_->data();
}

}  // namespace weft::net
