#include "weft/runtime/reactor_pool.hpp"

#include <algorithm>
#include <exception>
#include <future>
#include <optional>
#include <semaphore>
#include <thread>

#include "weft/runtime/event.hpp"
#include "weft/runtime/topology.hpp"

namespace weft {

/// One thread and its reactor. The reactor is made on its own thread, so that its memory is near the core.
class ReactorPool::Member {
 public:
  Member(ReactorOptions options, std::optional<unsigned> processor, std::size_t index)
      : drain_item_(drain_), stop_item_(stop_) {
    std::promise<void> ready;
    std::future<void> is_ready = ready.get_future();
    thread_ = std::thread([this, options, processor, index, &ready] { live(options, processor, index, ready); });
    try {
      is_ready.get();
    } catch (...) {
      thread_.join();
      throw;
    }
  }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  ~Member() {
    drain();
    stop();
  }

  [[nodiscard]] Reactor& reactor() noexcept { return *reactor_; }

  /// Blocks until no guest is left. The reactor goes on.
  void drain() noexcept {
    if (drained_ || !thread_.joinable()) return;
    reactor_->post(drain_item_);
    is_drained_.acquire();
    drained_ = true;
  }

  void stop() noexcept {
    if (!thread_.joinable()) return;
    reactor_->post(stop_item_);
    thread_.join();
  }

 private:
  class SetEvent final : public MailboxItem {
   public:
    explicit SetEvent(Event& event) noexcept : event_(event) {}
    void deliver() noexcept override { event_.set(); }

   private:
    Event& event_;
  };

  /// Suspends until the reactor has no guest.
  struct GuestsGone {
    Reactor& reactor;
    [[nodiscard]] bool await_ready() const noexcept { return reactor.guests() == 0; }
    template <WeftPromise P>
    void await_suspend(std::coroutine_handle<P> waiting) const noexcept {
      reactor.wait_for_guests(waiting.promise());
    }
    void await_resume() const noexcept {}
  };

  Task<void> live_until_stopped() {
    co_await drain_.wait();
    const GuestsGone guests_gone{*reactor_};
    co_await guests_gone;
    is_drained_.release();
    co_await stop_.wait();
  }

  void live(const ReactorOptions& options, std::optional<unsigned> processor, std::size_t index,
            std::promise<void>& ready) {
    try {
      name_this_thread("weft-" + std::to_string(index));
      if (processor.has_value()) {
        const Outcome bound = bind_this_thread(*processor);
        if (!bound.ok()) {
          throw Error(bound.code, "reactor pool", "cannot bind to processor " + std::to_string(*processor), kNoRank,
                      bound.native);
        }
      }
      reactor_ = std::make_unique<Reactor>(options);
    } catch (...) {
      ready.set_exception(std::current_exception());
      return;
    }
    ready.set_value();
    reactor_->run(live_until_stopped());
  }

  Event drain_;
  Event stop_;
  SetEvent drain_item_;
  SetEvent stop_item_;
  std::binary_semaphore is_drained_{0};
  bool drained_ = false;
  std::unique_ptr<Reactor> reactor_;
  std::thread thread_;
};

ReactorPool::ReactorPool(const ReactorPoolOptions& options) {
  const std::vector<unsigned> processors = available_processors();
  const unsigned cores = available_cores();
  const std::size_t count = options.reactors != 0 ? options.reactors : cores;
  ReactorOptions reactor = options.reactor;
  if (count > cores) reactor.idle.spin = Duration::zero();
  const bool bind = options.bind && count <= processors.size();
  for (std::size_t index = 0; index < count; ++index) {
    const std::optional<unsigned> processor = bind ? std::optional<unsigned>(processors[index]) : std::nullopt;
    members_.push_back(std::make_unique<Member>(reactor, processor, index));
  }
}

ReactorPool::~ReactorPool() { stop(); }

Reactor& ReactorPool::reactor(std::size_t index) noexcept {
  WEFT_ASSERT(index < members_.size(), "ReactorPool: no such reactor");
  return members_[index]->reactor();
}

void ReactorPool::stop() noexcept {
  // A task keeps its reactor from draining as long as anything that it has submitted elsewhere runs. So when each
  // reactor has been without guests once, none is left and none can come.
  for (const std::unique_ptr<Member>& member : members_) member->drain();
  for (const std::unique_ptr<Member>& member : members_) member->stop();
}

}  // namespace weft
