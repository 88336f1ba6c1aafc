// Goal: only memory that cannot be taken away from under its receiver is mapped; threads of one process share one
// mapping; nothing stays mapped.
#include "weft/net/shm/shm_segment.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstring>

#include "net/shm/shm_rank.hpp"

namespace weft::net {
namespace {

Errc open_code(int fd, std::size_t bytes) {
  try {
    SharedMemory memory = SharedMemory::open(UniqueFd(::dup(fd)), bytes, SharedMemory::Access::mutual);
    return Errc::ok;
  } catch (const Error& error) {
    return error.code();
  }
}

TEST(ShmSegment, NewMemoryIsZeroedAndSealed) {
  const SharedMemory memory = SharedMemory::create("weft-test", 8192, SharedMemory::Access::mutual);
  for (std::size_t i = 0; i < 8192; ++i)
    ASSERT_EQ(memory.data()[i], std::byte{0});
  EXPECT_NE(::ftruncate(memory.fd(), 4096), 0);
  EXPECT_NE(::ftruncate(memory.fd(), 16384), 0);
  EXPECT_EQ(open_code(memory.fd(), 8192), Errc::ok);
}

TEST(ShmSegment, TheSameMemoryIsMappedOnceInAProcess) {
  SharedMemory memory = SharedMemory::create("weft-test", 8192, SharedMemory::Access::mutual);
  SharedMemory again = SharedMemory::open(UniqueFd(::dup(memory.fd())), 8192, SharedMemory::Access::mutual);
  EXPECT_EQ(memory.data(), again.data());
  // Expect: it stays as long as anybody has it, and no longer.
  memory = SharedMemory();
  again.data()[0] = std::byte{1};
  EXPECT_EQ(test::weft_mappings(), 1U);
  again = SharedMemory();
  EXPECT_EQ(test::weft_mappings(), 0U);
}

TEST(ShmSegment, TheOwnersMemoryCannotBeMappedWritableByOthers) {
  const SharedMemory memory = SharedMemory::create("weft-test", 4096, SharedMemory::Access::owner_only);
  memory.data()[0] = std::byte{7};
  void* const writable = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd(), 0);
  EXPECT_EQ(writable, MAP_FAILED);
  void* const readable = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, memory.fd(), 0);
  ASSERT_NE(readable, MAP_FAILED);
  EXPECT_EQ(*static_cast<std::byte*>(readable), std::byte{7});
  ::munmap(readable, 4096);
}

TEST(ShmSegment, AnythingElseIsRefused) {
  const SharedMemory memory = SharedMemory::create("weft-test", 8192, SharedMemory::Access::mutual);
  EXPECT_EQ(open_code(memory.fd(), 4096), Errc::protocol);
  const UniqueFd unsealed(::memfd_create("weft-test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), 8192), 0);
  EXPECT_EQ(open_code(unsealed.get(), 8192), Errc::protocol);
  ASSERT_EQ(::fcntl(unsealed.get(), F_ADD_SEALS, F_SEAL_GROW), 0);
  EXPECT_EQ(open_code(unsealed.get(), 8192), Errc::protocol);
  const UniqueFd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(open_code(file.get(), 8192), Errc::protocol);
}

TEST(ShmSegment, WhenDescriptorsRunOutTheErrorSaysHowMuchWasWanted) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  Errc code = Errc::ok;
  std::string text;
  try {
    const SharedMemory memory = SharedMemory::create("weft-test", 8192, SharedMemory::Access::mutual);
  } catch (const Error& error) {
    code = error.code();
    text = error.what();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(code, Errc::exhausted);
  EXPECT_NE(text.find("8192 bytes"), std::string::npos) << text;
}

}  // namespace
}  // namespace weft::net
