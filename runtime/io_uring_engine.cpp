#include "weft/runtime/io_uring_engine.hpp"

#if WEFT_WITH_IO_URING

#if defined(__SANITIZE_THREAD__)
#define WEFT_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEFT_THREAD_SANITIZER 1
#endif
#endif
#ifdef WEFT_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <new>
#include <vector>

#include "weft/runtime/detail/watch_table.hpp"

namespace weft {
namespace {

// A submission is an add or a remove of a descriptor, rare and never urgent: 64 entries are one page, and a burst of
// more submits in between.
constexpr unsigned kSubmissionEntries = 64;
// A completion is an edge of one descriptor. 512 (two pages) hold several edges each of some hundred busy descriptors
// between two looks at the ring; when they do not suffice the kernel keeps the rest in memory of its own and ends the
// multishot, which is then armed again. Nothing is lost, it only costs a system call.
constexpr unsigned kCompletionEntries = 512;
// Events delivered by one call: bounds the turn; what is left stays in the ring.
constexpr unsigned kBatch = 64;

// Completions of cancel requests carry this key, which no watch has.
constexpr std::uint64_t kNoWatch = 0;

constexpr unsigned kInterest = POLLIN | POLLOUT | POLLRDHUP;

// DEFER_TASKRUN: an edge is only noted, and becomes a completion when this thread looks at the ring. So a busy reactor
// that receives by plain calls pays next to nothing for its watches. It needs a ring that serves one thread, and one
// that starts disabled, because the thread is not known when it is made. Linux 6.1.
constexpr unsigned kOneThread = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_R_DISABLED;
// The next best of Linux 5.19: an edge becomes a completion at the next system call, whichever. 0.5 us more for each
// arrival at a busy socket.
constexpr unsigned kCooperative = IORING_SETUP_COOP_TASKRUN;

// liburing maps and unmaps its rings by bare system calls, which the thread sanitizer does not see. These two tell it
// that a mapping comes after every earlier one at its address has gone; else it takes two owners' writes for a race.
#ifdef WEFT_THREAD_SANITIZER
char rings_of_all_threads;
void before_unmapping() noexcept { __tsan_release(&rings_of_all_threads); }
void after_mapping() noexcept { __tsan_acquire(&rings_of_all_threads); }
#else
void before_unmapping() noexcept {}
void after_mapping() noexcept {}
#endif

/// 0 or a negative errno.
int open_ring(io_uring& ring, unsigned flags) noexcept {
  io_uring_params parameters{};
  // TASKRUN_FLAG tells a look at the ring that edges are noted which are no completions yet.
  parameters.flags = IORING_SETUP_CQSIZE | IORING_SETUP_TASKRUN_FLAG | flags;
  parameters.cq_entries = kCompletionEntries;
  const int status = ::io_uring_queue_init_params(kSubmissionEntries, &ring, &parameters);
  if (status == 0) ::io_uring_ring_dontfork(&ring);  // a forked child must not write into the parent's rings
  after_mapping();
  return status;
}

void close_ring(io_uring& ring) noexcept {
  before_unmapping();
  ::io_uring_queue_exit(&ring);
}

// Numbers, because a thread's id may come back with another thread.
std::atomic<std::uint64_t> threads_seen{0};
thread_local const std::uint64_t this_thread = threads_seen.fetch_add(1, std::memory_order_relaxed) + 1;

// One multishot poll a descriptor. Without IORING_POLL_ADD_LEVEL it reports once for what holds when it is armed and
// then once for each wake-up of the descriptor: edges.
//
// A ring serves one thread, that of the first poll() or wait(); an engine may be made on another one, so nothing is
// submitted before. Where somebody else comes later (a reactor that is taken down by the thread which joined its own),
// the ring is given up and another one made when it is needed.
class IoUringEngine final : public IoEngine {
 public:
  IoUringEngine(const io_uring& ring, unsigned flags) noexcept : ring_(ring), flags_(flags) {}
  IoUringEngine(const IoUringEngine&) = delete;
  IoUringEngine& operator=(const IoUringEngine&) = delete;
  ~IoUringEngine() override {
    if (open_) close_ring(ring_);
  }

  [[nodiscard]] const char* name() const noexcept override { return "io_uring"; }
  [[nodiscard]] Outcome add(int fd, IoHandler& handler) noexcept override;
  void remove(int fd) noexcept override;
  bool poll() noexcept override;
  bool wait(Duration timeout) noexcept override;

 private:
  /// Makes the ring this thread's.
  void take_ring() noexcept;
  /// Closes the ring; every live watch is to be armed again.
  void leave_ring() noexcept;
  /// A free submission entry, or nullptr when the kernel takes no more at present.
  io_uring_sqe* next_sqe() noexcept;
  /// Turns to_cancel_ and to_arm_ into submission entries.
  void stage() noexcept;
  bool deliver() noexcept;
  enum class Reaped : std::uint8_t { nothing, stale, events };
  /// One batch of completions.
  Reaped reap() noexcept;
  void on_completion(std::uint64_t key, std::int32_t result, std::uint32_t flags) noexcept;

  io_uring ring_;
  unsigned flags_;
  bool open_ = true;
  std::uint64_t owner_ = 0;  ///< number of the thread whose ring it is; 0: not yet anybody's
  detail::WatchTable watches_;
  std::vector<std::uint64_t> to_arm_;     ///< live watches without a poll in the kernel
  std::vector<std::uint64_t> to_cancel_;  ///< keys whose poll must end
};

Outcome IoUringEngine::add(int fd, IoHandler& handler) noexcept {
  if (::fcntl(fd, F_GETFD) < 0) return Outcome{Errc::io, kNoRank, EBADF};
  try {
    // Each list holds a watch at most once: room for all of them, so that remove() and re-arming never allocate.
    const std::size_t room = watches_.size() + to_cancel_.size() + 1;
    if (to_arm_.capacity() < room) to_arm_.reserve(2 * room);
    if (to_cancel_.capacity() < room) to_cancel_.reserve(2 * room);
    to_arm_.push_back(watches_.insert(fd, handler));
  } catch (const std::bad_alloc&) {
    return Outcome{Errc::exhausted, kNoRank, ENOMEM};
  }
  return Outcome{};
}

void IoUringEngine::remove(int fd) noexcept {
  const std::uint64_t key = watches_.erase(fd);
  if (key == 0) return;
  if (const auto waiting = std::find(to_arm_.begin(), to_arm_.end(), key); waiting != to_arm_.end()) {
    to_arm_.erase(waiting);
    return;
  }
  // At once: the poll holds the open file, and until it has ended a close() of the descriptor would not reach the peer.
  if (owner_ != this_thread) [[unlikely]] {
    leave_ring();
    return;
  }
  to_cancel_.push_back(key);
  stage();
  ::io_uring_submit(&ring_);
  ::io_uring_get_events(&ring_);  // the cancelled poll lets go when its completion is made, and that is now
}

void IoUringEngine::take_ring() noexcept {
  if (owner_ != 0) leave_ring();
  if (!open_) {
    const int status = open_ring(ring_, flags_);
    WEFT_ASSERT(status == 0, "io_uring: no second ring for a reactor that has changed its thread");
    open_ = true;
  }
  if ((flags_ & IORING_SETUP_R_DISABLED) != 0) {
    // Not io_uring_enable_rings(): the shared library of liburing 2.3 forgot to export it.
    ::syscall(__NR_io_uring_register, ring_.ring_fd, IORING_REGISTER_ENABLE_RINGS, nullptr, 0U);
  }
  owner_ = this_thread;
}

void IoUringEngine::leave_ring() noexcept {
  if (open_) close_ring(ring_);
  open_ = false;
  owner_ = 0;
  to_cancel_.clear();
  to_arm_.clear();
  watches_.for_each_key([this](std::uint64_t key) { to_arm_.push_back(key); });
}

io_uring_sqe* IoUringEngine::next_sqe() noexcept {
  if (io_uring_sqe* sqe = ::io_uring_get_sqe(&ring_)) return sqe;
  ::io_uring_submit(&ring_);
  return ::io_uring_get_sqe(&ring_);
}

void IoUringEngine::stage() noexcept {
  while (!to_cancel_.empty()) {
    io_uring_sqe* sqe = next_sqe();
    if (sqe == nullptr) return;  // out of kernel memory: the next call tries again
    ::io_uring_prep_cancel64(sqe, to_cancel_.back(), 0);
    ::io_uring_sqe_set_data64(sqe, kNoWatch);
    to_cancel_.pop_back();
  }
  while (!to_arm_.empty()) {
    io_uring_sqe* sqe = next_sqe();
    if (sqe == nullptr) return;
    ::io_uring_prep_poll_multishot(sqe, detail::WatchTable::fd_of(to_arm_.back()), kInterest);
    ::io_uring_sqe_set_data64(sqe, to_arm_.back());
    to_arm_.pop_back();
  }
}

bool IoUringEngine::poll() noexcept {
  if (owner_ != this_thread) [[unlikely]]
    take_ring();
  if (!to_arm_.empty() || !to_cancel_.empty()) [[unlikely]]
    stage();
  if (::io_uring_sq_ready(&ring_) != 0) [[unlikely]]
    ::io_uring_submit(&ring_);
  return deliver();
}

bool IoUringEngine::wait(Duration timeout) noexcept {
  if (timeout <= Duration::zero()) return poll();
  if (owner_ != this_thread) [[unlikely]]
    take_ring();
  stage();
  // -ETIME and -EINTR need no care: waits may end early, and what has arrived is delivered either way.
  io_uring_cqe* first = nullptr;
  if (timeout == Duration::max()) {
    ::io_uring_submit_and_wait_timeout(&ring_, &first, 1, nullptr, nullptr);
  } else {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
    __kernel_timespec limit{.tv_sec = seconds.count(), .tv_nsec = (timeout - seconds).count()};
    ::io_uring_submit_and_wait_timeout(&ring_, &first, 1, &limit, nullptr);
  }
  return deliver();
}

bool IoUringEngine::deliver() noexcept {
  // Completions of watches that are gone say nothing, and must not hide what is behind them.
  Reaped reaped = Reaped::stale;
  while (reaped == Reaped::stale)
    reaped = reap();
  return reaped == Reaped::events;
}

IoUringEngine::Reaped IoUringEngine::reap() noexcept {
  // Also enters the kernel when it has completions that it could not put into the ring yet.
  std::array<io_uring_cqe*, kBatch> ready;
  const unsigned count = ::io_uring_peek_batch_cqe(&ring_, ready.data(), kBatch);
  if (count == 0) return Reaped::nothing;
  struct Completion {
    std::uint64_t key;
    std::int32_t result;
    std::uint32_t flags;
  };
  // Copied, so that handlers may submit and the kernel may go on filling the ring.
  std::array<Completion, kBatch> completions;
  for (unsigned i = 0; i < count; ++i)
    completions[i] = {ready[i]->user_data, ready[i]->res, ready[i]->flags};
  ::io_uring_cq_advance(&ring_, count);
  Reaped reaped = Reaped::stale;
  for (unsigned i = 0; i < count; ++i) {
    const Completion& completion = completions[i];
    if (completion.key == kNoWatch || watches_.find(completion.key) == nullptr) continue;
    on_completion(completion.key, completion.result, completion.flags);
    reaped = Reaped::events;
  }
  return reaped;
}

void IoUringEngine::on_completion(std::uint64_t key, std::int32_t result, std::uint32_t flags) noexcept {
  const bool ended = (flags & IORING_CQE_F_MORE) == 0;
  const bool fatal = result < 0 && result != -ECANCELED && result != -ENOMEM && result != -EAGAIN;
  // -ECANCELED with a live watch: the thread that armed the poll has ended. Arming again reports what holds then.
  if (ended && !fatal) to_arm_.push_back(key);
  IoEvents events;
  if (result >= 0) {
    events = detail::events_from_poll_mask(static_cast<std::uint32_t>(result));
  } else if (fatal) {
    events = IoEvents{.readable = true, .writable = true, .hangup = true};  // the next call tells its errno
  } else {
    return;
  }
  watches_.find(key)->on_io(events);
}

const char* why_refused(int error) noexcept {
  switch (error) {
    case EPERM:
    case EACCES: return "a security filter or kernel.io_uring_disabled forbids it";
    case ENOSYS: return "this kernel does not have it";
    case EINVAL: return "this kernel is older than 5.19";
    case ENOMEM: return "there is no memory for it, or `ulimit -l` is too low";
    default: return "io_uring_setup failed";
  }
}

}  // namespace

IoUringAttempt try_make_io_uring_engine() {
  io_uring ring{};
  unsigned flags = kOneThread;
  int status = open_ring(ring, flags);
  if (status == -EINVAL) {
    flags = kCooperative;
    status = open_ring(ring, flags);
  }
  if (status < 0) return IoUringAttempt{nullptr, -status, why_refused(-status)};
  return IoUringAttempt{std::make_unique<IoUringEngine>(ring, flags), 0, ""};
}

}  // namespace weft

#else

namespace weft {

IoUringAttempt try_make_io_uring_engine() {
  return IoUringAttempt{nullptr, 0, "Weft was built without liburing"};
}

}  // namespace weft

#endif
