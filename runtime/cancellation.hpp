// Cancel scopes: how a request to stop reaches every wait below it.
//
// A scope is a node of a tree. Each coroutine runs in one (it inherits its parent's), each suspended wait is listed in
// the scope of its coroutine. cancel() tells all waits of the scope and of the scopes inside it. It is a request: a
// wait ends when nothing touches the caller's memory any more, and an operation that has already happened ends with
// its value. A cancel asked before a wait starts counts: the wait looks at requested() first.
//
// Thread: everything here belongs to one reactor's thread.
#pragma once

#include "weft/runtime/error.hpp"
#include "weft/runtime/intrusive_list.hpp"

namespace weft {

/// A wait that a scope can ask to end.
class Cancellable : public ListHook<Cancellable> {
 public:
  /// Called at most once for a wait, while it is listed. The wait is already off the scope's list. It must make the
  /// waiting coroutine ready with `reason` as soon as nothing holds the caller's memory, or ignore the request where
  /// the operation can no longer be stopped. It must not resume the coroutine from inside.
  virtual void on_cancel(Errc reason) noexcept = 0;

 protected:
  Cancellable() = default;
  ~Cancellable() = default;
};

/// See the top of the file. Pinned: coroutines and child scopes hold its address.
class CancelScope : public ListHook<> {
 public:
  CancelScope() noexcept = default;
  /// A scope inside `parent`: cancelled with it, at once if it is cancelled already. `parent` may be null.
  explicit CancelScope(CancelScope* parent) noexcept;
  /// Nothing may be left in it: no wait and no scope.
  ~CancelScope();

  /// Asks every wait of this scope and of the scopes inside it to end, and every later wait not to start. Only the
  /// first call counts. `reason` is Errc::cancelled or Errc::timed_out. Cost: one visit of each wait and scope inside;
  /// no recursion, so scopes may be nested as deep as memory allows.
  void cancel(Errc reason = Errc::cancelled) noexcept;

  /// Errc::ok while nobody has asked.
  [[nodiscard]] Errc requested() const noexcept { return requested_; }

  /// Lists a wait. Precondition: requested() is ok.
  void add(Cancellable& wait) noexcept { waits_.push_back(wait); }

 private:
  /// Marks this scope, and tells its own waits.
  void cancel_waits(Errc reason) noexcept;

  CancelScope* parent_ = nullptr;
  Errc requested_ = Errc::ok;
  IntrusiveList<Cancellable, Cancellable> waits_;
  IntrusiveList<CancelScope> children_;
};

}  // namespace weft
